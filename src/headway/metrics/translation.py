"""BLEU, chrF and TER of translations, by sacreBLEU: the same numbers and signatures as its own command gives."""

import json
import logging
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from headway.errors import MetricError
from headway.metrics.tokenised import looks_tokenised

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER
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
    name = _choose_tokenizer(tokenize, target_language, warnings)
    num_bootstrap = _affordable(num_bootstrap, len(references), warnings) if confidence else 0
    with _heard(warnings):
        bleu, chrf, ter = _metrics(name, target_language, lowercase)
        bleu_score = bleu.corpus_score(hypotheses, [references], n_bootstrap=num_bootstrap)
        chrf_score = chrf.corpus_score(hypotheses, [references], n_bootstrap=num_bootstrap)
        scores = [
            _metric_score("BLEU", bleu_score, str(bleu.get_signature()), num_bootstrap),
            _metric_score("chrF", chrf_score, str(chrf.get_signature()), num_bootstrap),
        ]
        if include_ter:
            ter_score = ter.corpus_score(hypotheses, [references], n_bootstrap=num_bootstrap)
            scores.append(_metric_score("TER", ter_score, str(ter.get_signature()), num_bootstrap))
    _warn_of_tokens(warnings, name, hypothesis=hypotheses, reference=references)
    return TranslationScores(
        bleu=scores[0],
        chrf=scores[1],
        ter=scores[2] if include_ter else None,
        length_ratio=bleu_score.sys_len / bleu_score.ref_len if bleu_score.ref_len else 0.0,
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
    from sacrebleu.significance import PairedTest  # noqa: PLC0415 - loaded when scores are asked for

    _check_counts(references, baseline=baseline, system=system)
    warnings: list[str] = []
    name = _choose_tokenizer(tokenize, target_language, warnings)
    num_bootstrap = _affordable(num_bootstrap, len(references), warnings)
    if not num_bootstrap:
        raise MetricError(
            f"metrics/translation: a paired test of {len(references):,} sentences does not fit in memory; "
            f"wanted at most {MAX_RESAMPLED_LINES // MIN_BOOTSTRAP:,}. Test a sample of them."
        )
    with _heard(warnings):
        bleu, chrf, ter = _metrics(name, target_language, lowercase)
        metrics = {"BLEU": bleu, "chrF": chrf} | ({"TER": ter} if include_ter else {})
        test = PairedTest(
            [("baseline", baseline), ("system", system)],
            metrics,
            [references],
            test_type="bs",
            n_samples=num_bootstrap,
        )
        signatures, results = test()
    _warn_of_tokens(warnings, name, baseline=baseline, system=system, reference=references)
    return PairedComparison(
        # sacreBLEU renames chrF to chrF2 (its beta); the order stays.
        metrics=tuple(
            _comparison(metric, results[key], signature=str(signatures[key]), equal=list(baseline) == list(system))
            for metric, key in zip(metrics, signatures, strict=True)
        ),
        num_sentences=len(references),
        num_bootstrap=num_bootstrap,
        warnings=tuple(warnings),
    )


def _comparison(name: str, results: "Sequence[str | Result]", *, signature: str, equal: bool) -> MetricComparison:
    """Departure: equal outputs have p 1, where sacreBLEU's count of larger differences gives 1 / (resamples + 1)."""
    baseline, system = results
    assert not isinstance(baseline, str)
    assert not isinstance(system, str)
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


def _choose_tokenizer(tokenize: str, target_language: str, warnings: list[str]) -> str:
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


def _metrics(tokenizer: str, target_language: str, lowercase: bool) -> "tuple[BLEU, CHRF, TER]":
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 - loaded when scores are asked for
    from sacrebleu.metrics.chrf import CHRF  # noqa: PLC0415
    from sacrebleu.metrics.ter import TER  # noqa: PLC0415

    asian = _language(target_language) in ASIAN_TER
    return (
        BLEU(lowercase=lowercase, tokenize=tokenizer, force=True),  # force: our own warning is the more exact one
        CHRF(lowercase=lowercase),
        TER(normalized=asian, asian_support=asian),
    )


def _metric_score(name: str, score: object, signature: str, num_bootstrap: int) -> MetricScore:
    from sacrebleu.metrics.base import Score  # noqa: PLC0415 - loaded when scores are asked for

    assert isinstance(score, Score)
    low = high = None
    if num_bootstrap > 1:
        # The public way to mean and half-width; they are absent where every resample scored 0.
        fields = json.loads(score.format(width=12, signature=signature, is_json=True))
        mean, half = fields.get("confidence_mean", 0.0), fields.get("confidence_var", 0.0)
        low, high = mean - half, mean + half
    return MetricScore(name=name, value=float(score.score), low=low, high=high, signature=signature)


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
