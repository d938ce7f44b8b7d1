"""The one entrance to every search.

Shapes: B sentences, S source positions, P prefix positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from headway.errors import TranslationError
from headway.search.beam import beam_search
from headway.search.constraint import Constraint, constrain
from headway.search.diverse import diverse_search
from headway.search.greedy import greedy_search
from headway.search.hypothesis import Hypothesis, check_hypotheses
from headway.search.phrase import Lexicon, Phrase, beam_width
from headway.search.phrases import phrase_search
from headway.search.predictor import Predictor
from headway.search.sample import sample_search
from headway.search.settings import SearchSettings, check_prefixes, check_settings
from headway.search.tree_form import TreeForm, check_form
from headway.search.well_formed import well_formed
from headway.text.tokenizer import PAD_ID

State = TypeVar("State")

EXTRA_TOKENS = 50  # Section 6.1 of the paper: input length + 50


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What each output must contain; some sentence asks for something."""

    lexicon: Lexicon
    phrases_B: Sequence[Sequence[Phrase]]


def search(
    predictor: Predictor[State],
    source_BS: Tensor,
    source_mask_BS: Tensor,
    *,
    settings: SearchSettings | None = None,
    max_output_length_B: Sequence[int] | None = None,
    prefix_B: Sequence[Sequence[int]] | None = None,
    phrases_B: Sequence[Sequence[Phrase]] | None = None,
    lexicon: Lexicon | None = None,
    form: TreeForm | None = None,
) -> list[list[Hypothesis]]:
    """The ``n_best`` hypotheses of each source, best first, no two alike (fewer where fewer exist).

    ``settings`` say which search; absent, the paper's beam. Of samples, equal ones are one hypothesis with their
    ``count``. ``max_output_length_B`` counts EOS; absent, it is the source length (EOS counted) + 50, or the prefix
    length + 50 where that is more. A hypothesis that has to end at the limit is flagged ``is_cut``. ``prefix_B`` holds
    token ids that each output must begin with; empty is free. ``phrases_B`` holds what each output must contain, by the
    bytes of the ``lexicon``'s tokens; one that cannot within the limit lacks ``phrases_met``. ``form``: every output is
    a tree over the leaves that it names for each sentence.
    A sentence's result does not depend on the others.
    Raises TranslationError for settings that cannot be met, ModelError where the model gives no finite probability.
    """
    settings = settings or SearchSettings()
    check_settings(settings)
    if source_BS.shape[0] == 0:
        return []
    wanted = _wanted(phrases_B, lexicon, settings)
    if max_output_length_B is None:
        max_output_length_B = _default_limits(source_mask_BS, prefix_B, wanted)
    constraint = _constrain(source_mask_BS, max_output_length_B, prefix_B, settings)
    if form is not None:
        check_form(form, max_output_length_B, settings, has_others=wanted is not None or any(prefix_B or ()))
        constraint = replace(constraint, trees=well_formed(form, source_BS.device))
    with torch.no_grad():
        if wanted is None:
            results = _search(predictor, source_BS, source_mask_BS, constraint=constraint, settings=settings)
        else:
            results = _search_by_width(
                predictor, source_BS, source_mask_BS, constraint=constraint, settings=settings, wanted=wanted
            )
    check_hypotheses(results)
    return results


def _search(
    predictor: Predictor[State],
    source_BS: Tensor,
    source_mask_BS: Tensor,
    *,
    constraint: Constraint,
    settings: SearchSettings,
) -> list[list[Hypothesis]]:
    """The search that the settings ask for."""
    if settings.sampling is not None and not settings.sampling.is_greedy:
        samples = sample_search(
            predictor, source_BS, source_mask_BS, constraint=constraint, settings=settings, sampling=settings.sampling
        )
        return [_merge_equal(hypotheses) for hypotheses in samples]
    if settings.width == 1:
        alpha = settings.length_penalty
        best = greedy_search(predictor, source_BS, source_mask_BS, constraint=constraint, alpha=alpha)
        count = 1 if settings.sampling is None else settings.n_best
        return [[replace(hypothesis, count=count)] for hypothesis in best]
    if settings.diversity is not None and settings.diversity.groups > 1:
        return diverse_search(
            predictor, source_BS, source_mask_BS, constraint=constraint, settings=settings, diversity=settings.diversity
        )
    return beam_search(predictor, source_BS, source_mask_BS, constraint=constraint, settings=settings)


def _search_by_width(
    predictor: Predictor[State],
    source_BS: Tensor,
    source_mask_BS: Tensor,
    *,
    constraint: Constraint,
    settings: SearchSettings,
    wanted: "_Wanted",
) -> list[list[Hypothesis]]:
    """Sentences with phrases together with those of as wide a beam, sentences without by themselves."""
    lexicon = wanted.lexicon
    found: dict[int, list[Hypothesis]] = {}
    groups: dict[int, list[int]] = {}
    for place, phrases in enumerate(wanted.phrases_B):
        width = beam_width(lexicon, phrases, settings.beam_size) if phrases else 0
        groups.setdefault(width, []).append(place)
    for width, places in groups.items():
        chosen = torch.tensor(places, device=source_BS.device)
        batch = (predictor, source_BS[chosen], source_mask_BS[chosen])
        own = constraint.select(chosen)
        if width:
            own_phrases = [wanted.phrases_B[place] for place in places]
            results = phrase_search(*batch, constraint=own, settings=settings, lexicon=lexicon, phrases_B=own_phrases)
        else:
            results = _search(*batch, constraint=own, settings=settings)
        found |= zip(places, results, strict=True)
    return [found[place] for place in range(len(wanted.phrases_B))]


def _merge_equal(samples: list[Hypothesis]) -> list[Hypothesis]:
    """Each output once, with how often it was drawn, the best score first."""
    different: dict[tuple[int, ...], Hypothesis] = {}
    for sample in samples:
        known = different.get(sample.token_ids)
        different[sample.token_ids] = sample if known is None else replace(known, count=known.count + 1)
    return sorted(different.values(), key=lambda hypothesis: -hypothesis.score)


def _wanted(
    phrases_B: Sequence[Sequence[Phrase]] | None, lexicon: Lexicon | None, settings: SearchSettings
) -> _Wanted | None:
    """What outputs must contain, None for nothing. Only a beam can be led to it."""
    if phrases_B is None or not any(phrases_B):
        return None
    assert lexicon is not None, "phrases need a lexicon"
    if settings.sampling is not None or settings.diversity is not None:
        other = "sampling" if settings.sampling is not None else "diversity groups"
        raise TranslationError(
            f"search/run: phrases need a beam, which {other} cannot share. Leave one of the two out."
        )
    return _Wanted(lexicon, phrases_B)


def _default_limits(
    source_mask_BS: Tensor, prefixes: Sequence[Sequence[int]] | None, wanted: _Wanted | None
) -> list[int]:
    """The source length + 50; or that of what must be in the output + 50, if that is more."""
    lengths = source_mask_BS.sum(dim=1).tolist()
    needed = [len(prefix) for prefix in prefixes] if prefixes is not None else [0] * len(lengths)
    if wanted is not None:
        phrase_lengths = [wanted.lexicon.fewest_tokens(phrases) for phrases in wanted.phrases_B]
        needed = [one + other for one, other in zip(needed, phrase_lengths, strict=True)]
    return [max(pair) + EXTRA_TOKENS for pair in zip(lengths, needed, strict=True)]


def _constrain(
    source_mask_BS: Tensor,
    limits: Sequence[int],
    prefixes: Sequence[Sequence[int]] | None,
    settings: SearchSettings,
) -> Constraint:
    """The limits and prefixes as tensors, checked against each other."""
    device = source_mask_BS.device
    num_sentences = source_mask_BS.shape[0]
    prefixes = [()] * num_sentences if prefixes is None else prefixes
    longest = max(len(prefix) for prefix in prefixes)
    check_prefixes(prefixes, limits, settings)
    padded = [[*prefix, *[PAD_ID] * (longest - len(prefix))] for prefix in prefixes]
    return constrain(
        torch.tensor(limits, dtype=torch.int64, device=device),
        torch.tensor(padded, dtype=torch.int64, device=device).view(num_sentences, longest),
        no_repeat_ngram=settings.no_repeat_ngram,
        reserved=settings.reserved,
    )
