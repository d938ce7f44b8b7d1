"""One sentence through a model, and where every head looked on the way.

Shapes: B = 1 sentence, H heads, T queries, S keys.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import numpy as np
import torch
from torch import Tensor

from headway.data.batch import Batch, forced_batch
from headway.errors import InspectionError
from headway.inspection.attention_layer import attention_layers
from headway.inspection.axis import Axis, axis_of, merge
from headway.inspection.ground import grounds
from headway.inspection.look import look
from headway.inspection.record import AXES, AttentionRecord, Head, WordLink
from headway.inspection.subject import Subject
from headway.model.predictor import recorded, target_log_probs
from headway.model.transformer import Transformer
from headway.text.tokenizer import BOS_ID, EOS_ID, UNK_ID
from headway.translate.translation import Translation

SHOWN = 60  # characters of a part that an error names


def explain(subject: Subject, sentence: str, *, target: str | None = None, tag: str | None = None) -> AttentionRecord:
    """The attention of every layer and head, for the target that the model's own search chooses, or for a given one.

    The target goes through the model once more, all positions at once, with a recorder on every attention; the search
    is not watched. White space around both texts does not count. Raises InspectionError for a sentence without words,
    of several lines, or longer than the model takes in one piece, TextError for a lone surrogate, TranslationError
    for an unknown tag.
    """
    translator = subject.translator if tag is None else subject.translator.tagged(tag)
    sentence = sentence.strip()
    _check_sentence(subject, sentence)
    if target is None:
        (found,) = translator.translate([sentence])
        (source_ids,), _ = translator.encode([sentence], [""])
        target_ids, target_text, score = (*found.token_ids, EOS_ID), found.text, found.score
    else:
        found, score, target_text = Translation(target), None, target.strip()
        (source_ids,), (target_ids,) = translator.encode([sentence], [target_text])
        _check_target(target_text, len(target_ids), subject.longest_target)
    log_probs, weights = record_attention(subject.model, forced_batch([source_ids], [target_ids], subject.device))
    axes = _axes(subject, sentence, target_text, source_ids=source_ids, target_ids=target_ids)
    heads = tuple(
        head
        for (kind, layer), weights_HTS in weights.items()
        for head in _heads(kind, layer, weights_HTS, axes=axes, window=subject.model.window)
    )
    return AttentionRecord(
        sentence,
        target_text,
        is_given=target is not None,
        is_cut=found.is_cut,
        score=score,
        log_probs=log_probs,
        axes=axes,
        heads=heads,
        alignment=_alignment(heads, axes["target_out"], axes["source"]),
        num_unknown=list(source_ids).count(UNK_ID),
    )


@torch.inference_mode()
def record_attention(
    model: Transformer, batch: Batch
) -> tuple[tuple[float, ...], Mapping[tuple[str, int], np.ndarray]]:
    """One forced pass of one pair: the log-probability of each target token, and the weights (H, T, S) of each layer.

    Weights are in float64, by kind and layer.
    """
    layers = attention_layers(model)
    with ExitStack() as stack:
        heard = [stack.enter_context(recorded(layer.attention)) for layer in layers]
        logits_BTV = model(batch.source_BS, batch.source_mask_BS, batch.target_in_BT)
    log_probs_BT = target_log_probs(logits_BTV, batch.target_out_BT)
    return tuple(log_probs_BT[0].tolist()), {
        (layer.kind, layer.layer): _of_one(weights[0]) for layer, weights in zip(layers, heard, strict=True)
    }


def _of_one(weights_BHTS: Tensor) -> np.ndarray:
    """The weights of the first sentence as numbers of NumPy."""
    return weights_BHTS[0].double().cpu().numpy()


def _check_sentence(subject: Subject, sentence: str) -> None:
    if not sentence:
        raise InspectionError(
            "inspection/explanation: the sentence has no words; blank text comes back as it is, without the model. "
            "Give a sentence."
        )
    if "\n" in sentence:
        raise InspectionError(
            "inspection/explanation: the sentence holds a line end; lines are translated one by one. Give one line."
        )
    parts = subject.translator.parts(sentence)
    if len(parts) > 1:
        tokens = len(subject.translator.source_tokenizer.encode(sentence)) + 1
        shown = parts[0] if len(parts[0]) <= SHOWN else parts[0][:SHOWN] + "…"
        raise InspectionError(
            f"inspection/explanation: the sentence has {tokens:,} tokens, EOS counted; the model was trained on "
            f"{subject.max_source_tokens:,} at most, and would translate it in {len(parts)} parts. Give one of these, "
            f"the first is {shown!r}."
        )


def _check_target(target: str, num_tokens: int, longest: int) -> None:
    if "\n" in target:
        raise InspectionError(
            "inspection/explanation: the target holds a line end; an output line cannot. Give one line."
        )
    if num_tokens > longest:
        raise InspectionError(
            f"inspection/explanation: the target has {num_tokens:,} tokens, EOS counted; the model writes {longest:,} "
            "at most. Give a shorter one."
        )


def _axes(
    subject: Subject, sentence: str, target: str, *, source_ids: Sequence[int], target_ids: Sequence[int]
) -> dict[str, Axis]:
    """The three: the source, the target as it is read (BOS first), and as it is written (EOS last)."""
    translator = subject.translator
    tags = set(translator.source_tokenizer.tags.values())
    num_tags = 1 if source_ids[0] in tags else 0
    own = target_ids[:-1]
    return {
        "source": axis_of(
            translator.source_tokenizer,
            source_ids[num_tags:-1],
            sentence,
            before=source_ids[:num_tags],
            after=[EOS_ID],
        ),
        "target_in": axis_of(translator.target_tokenizer, own, target, before=[BOS_ID]),
        "target_out": axis_of(translator.target_tokenizer, own, target, after=[EOS_ID]),
    }


def _heads(
    kind: str, layer: int, weights_HTS: np.ndarray, *, axes: Mapping[str, Axis], window: int | None
) -> list[Head]:
    queries, keys = (axes[name] for name in AXES[kind])
    of_tokens, of_words = grounds(kind, queries, keys, window=window)
    merged_HTS = merge(weights_HTS, queries, keys)
    return [
        Head(kind, layer, number, words=look(merged_TS, of_words), tokens=look(weights_TS, of_tokens))
        for number, (weights_TS, merged_TS) in enumerate(zip(weights_HTS, merged_HTS, strict=True), start=1)
    ]


def _alignment(heads: Sequence[Head], targets: Axis, sources: Axis) -> tuple[WordLink, ...]:
    """Each word of the target with the source word that the last layer's heads together looked at most.

    The layer and the mean over its heads are those of ``headway translate --alignment``. Control tokens take no part.
    """
    cross = [head for head in heads if head.kind == "cross"]
    mean_TS = np.mean([head.words.weights_TS for head in cross if head.layer == cross[-1].layer], axis=0)
    places = [place for place, word in enumerate(sources.words) if not word.is_control]
    if not places:
        return ()
    return tuple(
        WordLink(source, target, float(mean_TS[target, source]))
        for target, word in enumerate(targets.words)
        if not word.is_control
        for source in [places[int(mean_TS[target, places].argmax())]]
    )
