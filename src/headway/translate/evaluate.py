"""A translator measured on text: what it makes of the sources, scored against the references."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from headway.errors import MetricError
from headway.metrics.perplexity import perplexity
from headway.metrics.translation import TranslationScores, score_translations
from headway.translate.decoding import Decoding
from headway.translate.marked import translate_marked
from headway.translate.translator import Translator


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Translations with their scores.

    ``perplexity`` is per target token, EOS counted, without smoothing, over ``num_tokens``; None where it was not
    computed. ``num_cut``: translations that reached the length limit. ``warnings``: all, those of the scores too.
    """

    translations: tuple[str, ...]
    scores: TranslationScores
    perplexity: float | None = None
    num_tokens: int = 0
    num_cut: int = 0
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON; the translations are left out."""
        table = self.scores.to_dict()
        table["perplexity"] = self.perplexity if self.perplexity != math.inf else None  # JSON has no infinity
        table["num_tokens"] = self.num_tokens
        table["num_cut"] = self.num_cut
        table["warnings"] = list(self.warnings)
        return table


def evaluate(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    target_language: str = "",
    tokenize: str = "auto",
    lowercase: bool = False,
    decoding: Decoding | None = None,
    batch_tokens: int | None = None,
    tags: Sequence[str] | None = None,
    quick: bool = False,
) -> Evaluation:
    """Translate the sources by the path that users take, placeholders kept, and score the text against the references.

    ``quick`` leaves out what takes long: TER, the 95 % intervals and perplexity. Absent settings are the model's.
    ``tags`` has the tag of each source, as in ``Translator.translate``.
    Raises MetricError for unequal counts, no lines or an unknown tokenizer, before anything is translated.
    """
    if len(sources) != len(references):
        raise MetricError(
            f"translate/evaluate: {len(sources):,} source lines against {len(references):,} reference lines; "
            f"equal counts are wanted. Restore the files as they were: scoring never cuts the longer one."
        )
    # A wrong tokenizer or an empty file is told now, not after an hour of translating.
    score_translations(
        references[:1], references[:1], target_language=target_language, tokenize=tokenize, confidence=False
    )
    marked = translate_marked(translator, sources, decoding=decoding, batch_tokens=batch_tokens, tags=tags)
    translations, found = tuple(each.text for each in marked), [each.translation for each in marked]
    scores = score_translations(
        translations,
        references,
        target_language=target_language,
        tokenize=tokenize,
        lowercase=lowercase,
        confidence=not quick,
        include_ter=not quick,
    )
    warnings = list(scores.warnings)
    num_cut = sum(translation.is_cut for translation in found)
    if num_cut:
        warnings.append(f"{num_cut:,} of {len(found):,} translations reached the length limit and may be incomplete.")
    num_mended = sum(bool(each.notes) for each in marked)
    if num_mended:
        warnings.append(
            f"{num_mended:,} of {len(found):,} translations lost or invented placeholders, URLs or the like, and were "
            "mended, as headway translate mends them."
        )
    num_unknown = sum(translation.num_unknown for translation in found)
    if num_unknown:
        warnings.append(f"{num_unknown:,} source tokens are not in the vocabulary; the model saw UNK in their place.")
    tags = [translator.tag] * len(sources) if tags is None else tags
    value, num_tokens = (None, 0) if quick else _perplexity(translator, sources, references, tags, warnings=warnings)
    if value == math.inf:
        warnings.append("Perplexity is infinite: the model gives some reference tokens the probability 0.")
    return Evaluation(translations, scores, value, num_tokens, num_cut, tuple(warnings))


def _perplexity(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    tags: Sequence[str],
    *,
    warnings: list[str],
) -> tuple[float | None, int]:
    """Return perplexity and tokens of the pairs that the model has positions for; the others are counted aloud."""
    pairs = list(zip(sources, references, tags, strict=True))
    limit = translator.max_output_tokens
    if limit is not None:
        lengths = [
            max(len(source) + bool(tag), len(target)) + 1  # EOS
            for source, target, tag in zip(
                translator.source_tokenizer.encode_batch(sources),
                translator.target_tokenizer.encode_batch(references),
                tags,
                strict=True,
            )
        ]
        pairs = [pair for pair, length in zip(pairs, lengths, strict=True) if length <= limit]
        if len(pairs) < len(lengths):
            warnings.append(
                f"Perplexity leaves out {len(lengths) - len(pairs):,} of {len(lengths):,} pairs: "
                f"they have more tokens than the {limit:,} positions the model learned."
            )
    sources, references, tags = ([pair[side] for pair in pairs] for side in range(3))
    scores = translator.score(sources, references, tags=tags)
    num_tokens = sum(score.num_tokens for score in scores)
    if not num_tokens:
        return None, 0
    return perplexity(sum(score.log_prob for score in scores), num_tokens), num_tokens
