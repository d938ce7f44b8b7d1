"""BLEU, chrF and TER of translations, by sacreBLEU: the same numbers and signatures as its own command gives."""

import logging
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from headway.errors import MetricError
from headway.metrics.tokenised import looks_tokenised

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric
    from sacrebleu.significance import Result

DEFAULT_TOKENIZER = "13a"
# Languages written without spaces between words need another one: the first of the list that is installed.
TOKENIZERS = {
    "zh": ("zh",),
    "zho": ("zh",),
    "cmn": ("zh",),
    "yue": ("zh",),
    "ja": ("ja-mecab", "char"),
    "jpn": ("ja-mecab", "char"),
    "ko": ("ko-mecab", "char"),
    "kor": ("ko-mecab", "char"),
    "th": ("char",),
    "lo": ("char",),
    "km": ("char",),
    "my": ("char",),
}
INSTALLS = {"ja-mecab": 'pip install "sacrebleu[ja]"', "ko-mecab": 'pip install "sacrebleu[ko]"'}
ASIAN_TER = frozenset({"zh", "zho", "cmn", "yue", "ja", "jpn"})  # TER counts their characters, not their lines
MAX_RESAMPLED_LINES = 20_000_000  # sacreBLEU holds them all at once: some 1.5 GB for chrF
MIN_BOOTSTRAP = 100


@dataclass(frozen=True, slots=True)
class MetricScore:
    """One score out of 100 with its 95 % interval (None: not asked for) and the signature to publish with it."""

    name: str
    value: float
    low: float | None
    high: float | None
    signature: str


@dataclass(frozen=True, slots=True)
class TranslationScores:
    """The scores of one output. ``length_ratio`` is tokens of the output by tokens of the reference, as BLEU counts."""

    bleu: MetricScore
    chrf: MetricScore
    ter: MetricScore | None
    length_ratio: float
    num_sentences: int
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric of two outputs. ``p_value``: how often chance alone would give a difference as large as this."""

    name: str
    baseline: float
    system: float
    p_value: float
    signature: str


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """A paired bootstrap test of an output against a baseline on the same sentences (Koehn 2004)."""

    metrics: tuple[MetricComparison, ...]
    num_sentences: int
    num_bootstrap: int
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        return asdict(self)


def score_translations(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    target_language: str = "",
    tokenize: str = "auto",
    lowercase: bool = False,
    confidence: bool = True,
    num_bootstrap: int = 1000,
    include_ter: bool = True,
) -> TranslationScores:
    """Score whole, detokenised sentences, one reference each.

    ``tokenize`` is BLEU's tokenizer: a name sacreBLEU knows, or auto, which follows the target language. Intervals are
    sacreBLEU's bootstrap (mean and half-width of the middle 95 %), with its fixed seed. TER is the slow one of the
    three. Raises MetricError for unequal counts, no sentences, or a tokenizer that is unknown or not installed.
    """
    _check_counts(references, hypothesis=hypotheses)
    warnings: list[str] = []
    name = choose_tokenizer(tokenize, target_language, warnings)
    num_bootstrap = _affordable(num_bootstrap, len(references), warnings) if confidence else 0
    with _heard(warnings):
        metrics = _metrics(name, target_language, lowercase, include_ter=include_ter)
        scores = _scores(hypotheses, references, metrics, num_bootstrap)
        length_ratio = _length_ratio(name, lowercase, hypotheses, references)
    _warn_of_tokens(warnings, name, hypothesis=hypotheses, reference=references)
    return TranslationScores(
        bleu=scores["BLEU"],
        chrf=scores["chrF"],
        ter=scores.get("TER"),
        length_ratio=length_ratio,
        num_sentences=len(references),
        warnings=tuple(warnings),
    )


def compare_translations(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str],
    *,
    target_language: str = "",
    tokenize: str = "auto",
    lowercase: bool = False,
    num_bootstrap: int = 1000,
    include_ter: bool = True,
) -> PairedComparison:
    """Test whether two outputs differ by more than chance: sacreBLEU's paired bootstrap, with its fixed seed.

    Raises MetricError as ``score_translations`` does, and when there are too many sentences to resample.
    """
    _check_counts(references, baseline=baseline, system=system)
    warnings: list[str] = []
    name = choose_tokenizer(tokenize, target_language, warnings)
    num_bootstrap = _affordable(num_bootstrap, len(references), warnings)
    if not num_bootstrap:
        raise MetricError(
            f"metrics/translation: a paired test of {len(references):,} sentences does not fit in memory; "
            f"wanted at most {MAX_RESAMPLED_LINES // MIN_BOOTSTRAP:,}. Test a sample of them."
        )
    with _heard(warnings):
        metrics = _metrics(name, target_language, lowercase, include_ter=include_ter)
        results = _resample([baseline, system], references, metrics, num_bootstrap)
    _warn_of_tokens(warnings, name, baseline=baseline, hypothesis=system, reference=references)
    return PairedComparison(
        metrics=tuple(
            _comparison(metric, outputs, signature=signature, equal=list(baseline) == list(system))
            for metric, (signature, outputs) in results.items()
        ),
        num_sentences=len(references),
        num_bootstrap=num_bootstrap,
        warnings=tuple(warnings),
    )


def _scores(
    hypotheses: Sequence[str], references: Sequence[str], metrics: "Mapping[str, Metric]", num_bootstrap: int
) -> dict[str, MetricScore]:
    scores: dict[str, MetricScore] = {}
    if num_bootstrap < 2:
        for name, metric in metrics.items():
            score = metric.corpus_score(hypotheses, [references])
            scores[name] = MetricScore(name, float(score.score), None, None, str(metric.get_signature()))
        return scores
    for name, (signature, (result,)) in _resample([hypotheses], references, metrics, num_bootstrap).items():
        assert result.mean is not None
        assert result.ci is not None
        mean, half = float(result.mean), float(result.ci)
        scores[name] = MetricScore(name, float(result.score), mean - half, mean + half, signature)
    return scores


def _resample(
    outputs: Sequence[Sequence[str]], references: Sequence[str], metrics: "Mapping[str, Metric]", num_bootstrap: int
) -> "dict[str, tuple[str, list[Result]]]":
    """Return for each metric its signature and the results of each output; the first output is the baseline.

    One output is resampled by the paired test too: ``corpus_score`` computes the same interval, but stops with a
    TypeError when a resample holds no words at all (sacreBLEU 2.6.0).
    """
    from sacrebleu.significance import PairedTest, Result  # noqa: PLC0415 - loaded when scores are asked for

    named = [(str(number), output) for number, output in enumerate(outputs)]
    signatures, found = PairedTest(named, metrics, [references], test_type="bs", n_samples=num_bootstrap)()
    # sacreBLEU renames chrF to chrF2 (its beta); the order stays.
    return {
        name: (str(signatures[key]), [result for result in found[key] if isinstance(result, Result)])
        for name, key in zip(metrics, signatures, strict=True)
    }


def _length_ratio(tokenizer: str, lowercase: bool, hypotheses: Sequence[str], references: Sequence[str]) -> float:
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - loaded when scores are asked for

    score = BLEU(lowercase=lowercase, tokenize=tokenizer, force=True).corpus_score(hypotheses, [references])
    return score.sys_len / score.ref_len if score.ref_len else 0.0


def _comparison(name: str, results: "Sequence[Result]", *, signature: str, equal: bool) -> MetricComparison:
    """Departure: equal outputs have p 1, where sacreBLEU's count of larger differences gives 1 / (resamples + 1)."""
    baseline, system = results
    assert system.p_value is not None
    return MetricComparison(
        name=name,
        baseline=float(baseline.score),
        system=float(system.score),
        p_value=1.0 if equal else float(system.p_value),
        signature=signature,
    )


def _check_counts(references: Sequence[str], **outputs: Sequence[str]) -> None:
    for side, lines in outputs.items():
        if len(lines) != len(references):
            raise MetricError(
                f"metrics/translation: {len(lines):,} {side} lines against {len(references):,} reference lines; "
                f"equal counts are wanted. Restore the files as they were: scoring never cuts the longer one."
            )
    if not references:
        raise MetricError("metrics/translation: 0 sentences to score; at least 1 is wanted. Give files with lines.")


def _language(code: str) -> str:
    """Return the language of a code such as zh-TW or pt_BR."""
    return re.split("[-_]", code)[0].lower()


def choose_tokenizer(tokenize: str, target_language: str, warnings: list[str]) -> str:
    """Return the name of a tokenizer that works here, and warn when it is a second choice."""
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - loaded when scores are asked for

    if tokenize != "auto" and tokenize not in BLEU.TOKENIZERS:
        raise MetricError(
            f"metrics/translation: no BLEU tokenizer is named {tokenize!r}; "
            f"wanted auto or one of {', '.join(BLEU.TOKENIZERS)}. Set --tokenize, or evaluate.tokenize in the recipe."
        )
    language = _language(target_language)
    wanted = TOKENIZERS.get(language, (DEFAULT_TOKENIZER,)) if tokenize == "auto" else (tokenize,)
    for name in wanted:
        try:
            with _heard(warnings if tokenize != "auto" else []):  # sacreBLEU has advice on an unusual choice
                BLEU(tokenize=name, trg_lang=language)
        except (RuntimeError, ImportError, OSError) as error:
            if name == wanted[-1]:
                raise MetricError(
                    f"metrics/translation: the BLEU tokenizer {name} cannot be used: {' '.join(str(error).split())}. "
                    f"Install what it needs, or set --tokenize."
                ) from error
            continue
        if name != wanted[0]:
            warnings.append(
                f"BLEU's tokenizer for {language}, {wanted[0]}, is not installed; {name} is used, and the score "
                f"compares only with scores of {name}. To install it: {INSTALLS[wanted[0]]}"
            )
        return name
    raise AssertionError("every list of tokenizers has a last one")


def _affordable(num_bootstrap: int, num_sentences: int, warnings: list[str]) -> int:
    """Return how many resamples fit in memory; 0 when too few for an interval."""
    most = MAX_RESAMPLED_LINES // num_sentences
    if num_bootstrap <= most:
        return num_bootstrap
    if most < MIN_BOOTSTRAP:
        warnings.append(f"No 95 % intervals: {num_sentences:,} sentences are too many to resample in memory.")
        return 0
    warnings.append(
        f"{most:,} bootstrap resamples instead of {num_bootstrap:,}: more of {num_sentences:,} sentences "
        f"do not fit in memory."
    )
    return most


def _metrics(tokenizer: str, target_language: str, lowercase: bool, *, include_ter: bool) -> "dict[str, Metric]":
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - loaded when scores are asked for
    from sacrebleu.metrics.chrf import CHRF  # noqa: PLC0415 - the same
    from sacrebleu.metrics.ter import TER  # noqa: PLC0415 - the same

    # force: our own warning of tokenised text is the more exact one.
    bleu = BLEU(lowercase=lowercase, tokenize=tokenizer, force=True)
    metrics: dict[str, Metric] = {"BLEU": bleu, "chrF": CHRF(lowercase=lowercase)}
    if include_ter:
        asian = _language(target_language) in ASIAN_TER
        metrics["TER"] = TER(normalized=asian, asian_support=asian)
    return metrics


def _warn_of_tokens(warnings: list[str], tokenizer: str, **sides: Sequence[str]) -> None:
    for side, lines in sides.items():
        reason = looks_tokenised(lines)
        if reason and tokenizer == "none":
            warnings.append(
                f"The {side} text looks tokenised: {reason}. It is scored as it is (tokenize none): "
                f"the score compares only with scores of text tokenised in the same way."
            )
        elif reason:
            warnings.append(
                f"The {side} text looks tokenised: {reason}. Score plain, detokenised text; "
                f"this score cannot be compared with published ones."
            )


@contextmanager
def _heard(warnings: list[str]) -> Generator[None, None, None]:
    """Collect what sacreBLEU logs as warnings, in place of printing it."""

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            warnings.append(record.getMessage())

    logger = logging.getLogger("sacrebleu")
    handler, propagated = Collector(logging.WARNING), logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated
