"""Beam search for outputs that contain given phrases (lexical constraints).

Hypotheses are ranked within banks: those that have come equally far with the phrases, counted in tokens of the phrases.
The beam takes the best of every bank, the furthest bank first, then the second best of every bank, and so on: dynamic
beam allocation (Post and Vilar 2018), in the vectorised form of Hu et al. (2019). Besides the most probable extensions
it looks at those that begin or go on with a phrase, and at the most probable one of each hypothesis. An output may end
when every phrase is in it as often as it is asked for; occurrences may overlap.
Departures: a phrase is recognised by its bytes, whatever tokens write it; and the beam is at least as wide as there
are banks (up to ``phrase.WIDEST``), so that phrases come in where they are most probable, not where the beam is full.

Shapes: B sentences, S source positions, N hypotheses of each, L likeliest extensions, M extensions looked at, C phrases
of a sentence (padded), X states of all phrases, V vocabulary, K suggestions of a state (in ``follow`` kept sentences),
J suggestions of a hypothesis.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from headway.search.beam import beam_search
from headway.search.candidates import Candidates, Live, best_places
from headway.search.constraint import Constraint
from headway.search.hypothesis import Hypothesis
from headway.search.phrase import Lexicon, Phrase, beam_width
from headway.search.predictor import Predictor
from headway.search.settings import SearchSettings
from headway.text.tokenizer import EOS_ID, PAD_ID

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class _Tables:
    """The automata of all phrases of a batch, one under the other; row 0 is that of no phrase."""

    next_XV: Tensor
    hits_XV: Tensor
    tokens_left_X: Tensor
    suggested_XK: Tensor


@dataclass(frozen=True, slots=True)
class PhraseChooser:
    """How far every hypothesis has come with every phrase of its sentence.

    ``state_BNC`` is the row of the phrase's automaton, ``count_BNC`` how often the phrase is there already, up to the
    ``needed_BC``; ``size_BC`` its size in tokens. ``is_done_B``: the sentence has an output with all its phrases.
    """

    tables: _Tables
    needed_BC: Tensor
    size_BC: Tensor
    state_BNC: Tensor
    count_BNC: Tensor
    is_done_B: Tensor

    def extend(self, live: Live, log_probs_BNV: Tensor, *, constraint: Constraint, step: int, size: int) -> Candidates:
        """The most probable extensions, and those that bring a phrase on, by place within the bank, then by bank."""
        scores_BNV = live.log_prob_BN[:, :, None] + log_probs_BNV
        constraint.forbid(scores_BNV, step)
        self._forbid_end(scores_BNV, constraint.limit_B <= step + 1)
        # A phrase may repeat what was there before; the rest may not.
        suggested_BNJ = self._suggested()
        suggested_score_BNJ = scores_BNV.gather(2, suggested_BNJ)
        constraint.forbid(scores_BNV, step, live.token_ids_BNT)
        num_live, vocab_size = scores_BNV.shape[1:]
        log_prob_BL, place_BL = best_places(scores_BNV.flatten(1), size)
        best_score_BN, best_BN = scores_BNV.max(dim=2)
        first_N = torch.arange(num_live, device=place_BL.device) * vocab_size
        places = [place_BL, first_N + best_BN, (first_N[:, None] + suggested_BNJ).flatten(1)]
        log_probs = [log_prob_BL, best_score_BN, suggested_score_BNJ.flatten(1)]
        return self._ordered(torch.cat(places, dim=1), torch.cat(log_probs, dim=1), vocab_size)

    def follow(self, ended: Candidates, going_on: Candidates, kept_K: Tensor) -> Self:
        """Where the hypotheses that go on stand, of the kept sentences."""
        state_BNC, count_BNC = self._after(going_on.parent_BC, going_on.token_BC)
        is_done_B = self.is_done_B | (ended.log_prob_BC > -torch.inf).any(dim=1)
        return replace(
            self,
            needed_BC=self.needed_BC[kept_K],
            size_BC=self.size_BC[kept_K],
            state_BNC=state_BNC[kept_K],
            count_BNC=count_BNC[kept_K],
            is_done_B=is_done_B[kept_K],
        )

    def _forbid_end(self, scores_BNV: Tensor, at_limit_B: Tensor) -> None:
        """No end without all phrases, but at the limit where there would be no output: then of those with the most."""
        num_met_BN = self.count_BNC.sum(dim=2)
        has_all_BN = num_met_BN == self.needed_BC.sum(dim=1)[:, None]
        without_B = at_limit_B & ~self.is_done_B & ~has_all_BN.any(dim=1)
        is_alive_BN = scores_BNV[:, :, EOS_ID] > -torch.inf
        most_B1 = num_met_BN.masked_fill(~is_alive_BN, -1).amax(dim=1, keepdim=True)
        may_end_BN = has_all_BN | (without_B[:, None] & (num_met_BN == most_B1))
        scores_BNV[:, :, EOS_ID] = scores_BNV[:, :, EOS_ID].masked_fill(~may_end_BN, -torch.inf)

    def _suggested(self) -> Tensor:
        """Tokens with which each hypothesis begins or goes on with a phrase that is still to come (B, N, C x K)."""
        tokens_BNCK = self.tables.suggested_XK[self.state_BNC]
        is_met_BNC = self.count_BNC >= self.needed_BC[:, None, :]
        return tokens_BNCK.masked_fill(is_met_BNC[:, :, :, None], PAD_ID).flatten(2)

    def _after(self, parent_BM: Tensor, token_BM: Tensor) -> tuple[Tensor, Tensor]:
        """States and counts of extensions."""
        parent_BMC = parent_BM[:, :, None].expand(-1, -1, self.needed_BC.shape[1])
        state_BMC = self.state_BNC.gather(1, parent_BMC)
        token_BM1 = token_BM[:, :, None]
        hits_BMC = self.tables.hits_XV[state_BMC, token_BM1]
        count_BMC = torch.minimum(self.count_BNC.gather(1, parent_BMC) + hits_BMC, self.needed_BC[:, None, :])
        return self.tables.next_XV[state_BMC, token_BM1].long(), count_BMC

    def _bank(self, parent_BM: Tensor, token_BM: Tensor) -> Tensor:
        """Tokens of phrases that extensions have: of whole phrases, and of the one that has come furthest."""
        state_BMC, count_BMC = self._after(parent_BM, token_BM)
        size_B1C = self.size_BC[:, None, :]
        begun_BMC = (size_B1C - self.tables.tokens_left_X[state_BMC]).clamp(min=0)
        begun_BMC = begun_BMC.masked_fill(count_BMC >= self.needed_BC[:, None, :], 0)
        return (count_BMC * size_B1C).sum(dim=2) + begun_BMC.amax(dim=2)

    def _ordered(self, place_BM: Tensor, log_prob_BM: Tensor, vocab_size: int) -> Candidates:
        """Each extension once, by its place within its bank, then the furthest bank first."""
        order_BM = log_prob_BM.argsort(dim=1, descending=True, stable=True)
        order_BM = order_BM.gather(1, place_BM.gather(1, order_BM).argsort(dim=1, stable=True))
        place_BM, log_prob_BM = place_BM.gather(1, order_BM), log_prob_BM.gather(1, order_BM)
        is_again_BM = torch.zeros_like(place_BM, dtype=torch.bool)
        is_again_BM[:, 1:] = place_BM[:, 1:] == place_BM[:, :-1]
        log_prob_BM = log_prob_BM.masked_fill(is_again_BM, -torch.inf)
        bank_BM = self._bank(place_BM // vocab_size, place_BM % vocab_size)
        order_BM = _by_bank(bank_BM, log_prob_BM)
        place_BM, log_prob_BM = place_BM.gather(1, order_BM), log_prob_BM.gather(1, order_BM)
        rank_M = -torch.arange(place_BM.shape[1], device=place_BM.device, dtype=log_prob_BM.dtype)
        rank_BM = rank_M.expand_as(log_prob_BM).masked_fill(log_prob_BM == -torch.inf, -torch.inf)
        return Candidates(place_BM // vocab_size, place_BM % vocab_size, log_prob_BM, rank_BM)


def phrase_search(
    predictor: Predictor[State],
    source_BS: Tensor,
    source_mask_BS: Tensor,
    *,
    constraint: Constraint,
    settings: SearchSettings,
    lexicon: Lexicon,
    phrases_B: Sequence[Sequence[Phrase]],
) -> list[list[Hypothesis]]:
    """The ``n_best`` hypotheses of each source that contain its phrases, best first.

    Where no output within the limit can have them all, those given have as many as could be placed, and are flagged.
    Each sentence needs phrases; its result depends on the width of the beam, so all need the same ``beam_width``.
    """
    (width,) = {beam_width(lexicon, phrases, settings.beam_size) for phrases in phrases_B}
    found = beam_search(
        predictor,
        source_BS,
        source_mask_BS,
        constraint=constraint,
        settings=replace(settings, beam_size=width),
        chooser=_open(lexicon, phrases_B, source_BS.device),
    )
    return [
        [replace(hypothesis, phrases_met=lexicon.contains(hypothesis.token_ids, phrases)) for hypothesis in hypotheses]
        for hypotheses, phrases in zip(found, phrases_B, strict=True)
    ]


def _open(lexicon: Lexicon, phrases_B: Sequence[Sequence[Phrase]], device: torch.device) -> PhraseChooser:
    """Every sentence with nothing of its phrases yet. Of equal phrases the spellings of the first count."""
    counted = [_counted(phrases) for phrases in phrases_B]
    automata = {phrase: lexicon.compile(phrase) for phrases in counted for phrase in phrases}
    row_of: dict[Phrase, int] = {}
    rows = 1
    for phrase, automaton in automata.items():
        row_of[phrase] = rows
        rows += len(automaton.tokens_left_L)
    parts = [(row_of[phrase], automaton) for phrase, automaton in automata.items()]
    tables = _Tables(
        next_XV=_stack([automaton.next_LV + row for row, automaton in parts], device),
        hits_XV=_stack([automaton.hits_LV for _, automaton in parts], device),
        tokens_left_X=_stack([automaton.tokens_left_L for _, automaton in parts], device),
        suggested_XK=_stack([automaton.suggested_LK for _, automaton in parts], device),
    )
    most = max(len(phrases) for phrases in counted)

    def table(value_of: dict[Phrase, int]) -> Tensor:
        padded = [[value_of[phrase] for phrase in phrases] + [0] * (most - len(phrases)) for phrases in counted]
        return torch.tensor(padded, dtype=torch.int64, device=device)

    needed = [[*phrases.values(), *[0] * (most - len(phrases))] for phrases in counted]
    state_BC = table(row_of)
    return PhraseChooser(
        tables,
        needed_BC=torch.tensor(needed, dtype=torch.int64, device=device),
        size_BC=table({phrase: int(automaton.tokens_left_L[0]) for phrase, automaton in automata.items()}),
        state_BNC=state_BC[:, None, :],
        count_BNC=torch.zeros_like(state_BC)[:, None, :],
        is_done_B=torch.zeros(len(counted), dtype=torch.bool, device=device),
    )


def _counted(phrases: Sequence[Phrase]) -> dict[Phrase, int]:
    """Each different phrase with how often it is asked for."""
    counts = Counter(phrase.content for phrase in phrases)
    first = {phrase.content: phrase for phrase in reversed(phrases)}
    return {first[content]: count for content, count in counts.items()}


def _stack(parts: list[np.ndarray], device: torch.device) -> Tensor:
    """The tables under a row of zeros: the automaton of no phrase, which stays where it is."""
    return torch.from_numpy(np.concatenate([np.zeros_like(parts[0][:1]), *parts])).to(device)


def _by_bank(bank_BM: Tensor, log_prob_BM: Tensor) -> Tensor:
    """The order by place within the bank, then by bank, the highest first; what is no extension at the end."""
    is_none_BM = log_prob_BM == -torch.inf
    order_BM = log_prob_BM.argsort(dim=1, descending=True, stable=True)
    sorted_bank_BM, by_bank_BM = (
        bank_BM.masked_fill(is_none_BM, -1).gather(1, order_BM).sort(dim=1, descending=True, stable=True)
    )
    order_BM = order_BM.gather(1, by_bank_BM)
    place_M = torch.arange(bank_BM.shape[1], device=bank_BM.device)
    begins_BM = torch.ones_like(is_none_BM)
    begins_BM[:, 1:] = sorted_bank_BM[:, 1:] != sorted_bank_BM[:, :-1]
    place_in_bank_BM = place_M - torch.where(begins_BM, place_M, 0).cummax(dim=1).values
    place_in_bank_BM = place_in_bank_BM.masked_fill(sorted_bank_BM < 0, bank_BM.shape[1])
    return order_BM.gather(1, place_in_bank_BM.argsort(dim=1, stable=True))
