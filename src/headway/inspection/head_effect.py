"""What each head is worth: the probability of given translations with the head switched off (Michel et al. 2019).

Shapes: B sentences of a batch, T target positions, H heads, X heads of all layers, N sentences in all.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor

from headway import __version__
from headway.data.batch import Batch, forced_batch
from headway.errors import InspectionError
from headway.inspection.attention_layer import AttentionLayer, attention_layers
from headway.inspection.subject import Subject
from headway.metrics.bootstrap import RESAMPLES, SEED, Estimate, ratio_intervals
from headway.metrics.translation import MetricComparison, choose_tokenizer, compare_translations
from headway.model.predictor import gated, target_log_probs
from headway.model.transformer import Transformer
from headway.nn.attention import allowed
from headway.nn.masks import key_mask
from headway.translate.marked import translate_marked
from headway.translate.translator import Translator, plan_batches

FORMAT_VERSION = 1
BATCH_TOKENS = 2048  # padded tokens of the longer side; their log-probabilities over the vocabulary exist at once

OnProgress = Callable[[int, int], None]
Ids = Sequence[int]


@dataclass(frozen=True, slots=True)
class HeadEffect:
    """What switching one head off does. ``change`` is that of the mean log-probability of a target token.

    ``bleu``: of translations without the head against those with it; None where it was not asked for.
    """

    kind: str
    layer: int
    head: int
    change: Estimate
    bleu: MetricComparison | None = None

    @property
    def name(self) -> str:
        """As ``headway.inspection.record.Head`` has it: ``encoder.2.3``."""
        return f"{self.kind}.{self.layer}.{self.head}"


@dataclass(frozen=True, slots=True)
class HeadEffects:
    """The effects of all heads of a model, each switched off alone.

    ``log_prob`` is the mean of a target token, EOS counted, with every head on. ``left_out``: pairs that lack a side,
    or are longer than the model's positions. ``warnings``: what there is to know of BLEU, where it was asked for.
    """

    log_prob: float
    num_sentences: int
    num_tokens: int
    left_out: int
    heads: tuple[HeadEffect, ...]
    num_bootstrap: int
    seed: int = SEED
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {
            "format": FORMAT_VERSION,
            "headway_version": __version__,
            "log_prob": self.log_prob,
            "num_sentences": self.num_sentences,
            "num_tokens": self.num_tokens,
            "left_out": self.left_out,
            "num_bootstrap": self.num_bootstrap,
            "seed": self.seed,
            "heads": [_plain(effect) for effect in self.heads],
            "warnings": list(self.warnings),
        }


def measure_effects(
    subject: Subject,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    tag: str | None = None,
    with_bleu: bool = False,
    tokenize: str = "auto",
    lowercase: bool = False,
    num_bootstrap: int = RESAMPLES,
    on_progress: OnProgress | None = None,
) -> HeadEffects:
    """Switch every head off in turn, and see what becomes of the probability of these targets, and of BLEU.

    The targets go through the model in forced passes, one for each head; heads of the decoder share the encoder's
    memory. ``with_bleu`` translates all sources once for each head, which takes by far the longest; ``tokenize`` and
    ``lowercase`` are as in ``headway.translate.evaluate.evaluate``, so that BLEU with every head is its figure.
    ``on_progress`` hears how many of how many pairs have been scored. Raises InspectionError where no pair is left,
    TranslationError for unequal counts or an unknown tag, MetricError for an unknown tokenizer, before anything is
    computed.
    """
    translator = subject.translator if tag is None else subject.translator.tagged(tag)
    if with_bleu:  # a wrong tokenizer is told now, not after hours of translating
        choose_tokenizer(tokenize, translator.target_language, [])
    pairs = _pairs(translator, sources, targets)
    left_out = len(sources) - len(pairs)
    if not pairs:
        raise InspectionError(
            f"inspection/head_effect: of {len(sources):,} pairs none is left to look at; {left_out:,} lack a side or "
            "are longer than the model's positions. Give a source and a target with text in the same lines."
        )
    sums_XN = _sums(subject, pairs, on_progress or _nobody)
    counts_N = [len(pair.target_ids) for pair in pairs]
    intervals = ratio_intervals(sums_XN[1:] - sums_XN[0], counts_N, num_bootstrap=num_bootstrap)
    comparisons: list[MetricComparison | None] = [None] * len(intervals)
    warnings: list[str] = []
    if with_bleu:
        bleu = _Bleu(tokenize, lowercase, num_bootstrap)
        comparisons = [*_comparisons(subject.model, translator, pairs, bleu=bleu, warnings=warnings)]
    return HeadEffects(
        float(sums_XN[0].sum()) / sum(counts_N),
        num_sentences=len(pairs),
        num_tokens=sum(counts_N),
        left_out=left_out,
        heads=tuple(
            HeadEffect(switch.layer.kind, switch.layer.layer, switch.head + 1, interval, bleu)
            for switch, interval, bleu in zip(_switches(subject.model), intervals, comparisons, strict=True)
        ),
        num_bootstrap=num_bootstrap,
        warnings=tuple(dict.fromkeys(warnings)),
    )


@dataclass(frozen=True, slots=True)
class _Bleu:
    """How translations are scored and compared."""

    tokenize: str
    lowercase: bool
    num_bootstrap: int


@dataclass(frozen=True, slots=True)
class _Pair:
    """Texts, and what the model reads of them."""

    source: str
    target: str
    source_ids: Ids
    target_ids: Ids


def _pairs(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> list[_Pair]:
    """The pairs that have both sides, and positions for them."""
    limit = translator.max_output_tokens
    return [
        pair
        for pair in map(_Pair, sources, targets, *translator.encode(sources, targets))
        if pair.source.strip()
        and pair.target.strip()
        and (limit is None or max(len(pair.source_ids), len(pair.target_ids)) <= limit)
    ]


@dataclass(frozen=True, slots=True)
class _Switch:
    """One head of one layer; ``head`` counts from 0."""

    layer: AttentionLayer
    head: int

    def off(self, device: torch.device) -> AbstractContextManager[None]:
        """Within the block, the head is off."""
        gate_H = torch.ones(self.layer.attention.num_heads, device=device)
        gate_H[self.head] = 0.0
        return gated(self.layer.attention, gate_H)


def _switches(model: Transformer) -> list[_Switch]:
    """Every head of a model."""
    return [_Switch(layer, head) for layer in attention_layers(model) for head in range(layer.attention.num_heads)]


@torch.inference_mode()
def _sums(subject: Subject, pairs: Sequence[_Pair], on_progress: OnProgress) -> np.ndarray:
    """The log-probability of each target (1 + X, N): first with every head on, then without each."""
    model, switches = subject.model, _switches(subject.model)
    sums_XN = np.zeros((1 + len(switches), len(pairs)))
    lengths = [max(len(pair.source_ids), len(pair.target_ids)) for pair in pairs]
    done = 0
    for places in plan_batches(lengths, batch_tokens=BATCH_TOKENS):
        batch = forced_batch(
            [pairs[place].source_ids for place in places], [pairs[place].target_ids for place in places], subject.device
        )
        mask_B11S = allowed(key_mask(batch.source_mask_BS))
        memory_BSD = model.encode(batch.source_BS, mask_B11S)
        sums_XN[0, places] = _batch_sums(model, batch, memory_BSD, mask_B11S)
        for row, switch in enumerate(switches, start=1):
            with switch.off(subject.device):
                in_encoder = switch.layer.kind == "encoder"
                own_BSD = model.encode(batch.source_BS, mask_B11S) if in_encoder else memory_BSD
                sums_XN[row, places] = _batch_sums(model, batch, own_BSD, mask_B11S)
        done += len(places)
        on_progress(done, len(pairs))
    return sums_XN


def _batch_sums(model: Transformer, batch: Batch, memory_BSD: Tensor, mask_B11S: Tensor | None) -> np.ndarray:
    """The log-probability of each target of a batch, given the encoder's memory: float64, (B)."""
    words_BS = model.source_stem.words(batch.source_BS)
    logits_BTV = model.output(model.decode(batch.target_in_BT, memory_BSD, mask_B11S, source_word_BS=words_BS))
    return target_log_probs(logits_BTV, batch.target_out_BT).double().sum(dim=1).cpu().numpy()


def _comparisons(
    model: Transformer, translator: Translator, pairs: Sequence[_Pair], *, bleu: _Bleu, warnings: list[str]
) -> list[MetricComparison]:
    """BLEU without each head against BLEU with all, by a paired test; by the path that users take."""
    device = next(model.parameters()).device
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]

    def translate() -> list[str]:
        return [marked.text for marked in translate_marked(translator, sources)]

    whole = translate()
    found: list[MetricComparison] = []
    for switch in _switches(model):
        with switch.off(device):
            without = translate()
        compared = compare_translations(
            whole,
            without,
            references,
            target_language=translator.target_language,
            tokenize=bleu.tokenize,
            lowercase=bleu.lowercase,
            num_bootstrap=bleu.num_bootstrap,
            include_ter=False,
        )
        found.append(next(metric for metric in compared.metrics if metric.name == "BLEU"))
        warnings += compared.warnings
    return found


def _plain(effect: HeadEffect) -> dict[str, object]:
    values: dict[str, object] = {
        "name": effect.name,
        "kind": effect.kind,
        "layer": effect.layer,
        "head": effect.head,
        "change": asdict(effect.change),
    }
    return values if effect.bleu is None else values | {"bleu": asdict(effect.bleu)}


def _nobody(_: int, __: int) -> None:
    """Hear nothing."""
