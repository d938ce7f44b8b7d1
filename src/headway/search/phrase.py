"""A text that an output must contain, followed through the tokens byte by byte.

The same text can be written by many runs of tokens, alone or with what stands around it in one token. So a phrase is
looked for in the bytes that the tokens add: an automaton (Knuth, Morris and Pratt 1977) whose state is how many bytes
of the phrase the output ends with. Its steps are by whole tokens, in a table.

Shapes: L bytes of a phrase, V vocabulary, W bytes of the longest token, K suggestions.
"""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.errors import TranslationError
from headway.text.tokenizer import CONTROL_TOKENS, PAD_ID

KEPT = 256  # compiled phrases, the latest used
WIDEST = 32  # hypotheses side by side for phrases, where the beam asked for is narrower
SUGGESTIONS = 4  # tokens at most that a state suggests


@dataclass(frozen=True, slots=True)
class Phrase:
    """The bytes, and the token ids by which the tokenizer writes them, after a space and without: ``spellings``."""

    content: bytes
    spellings: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Automaton:
    """Steps of one phrase by tokens: a state is the number of its bytes that stand at the end of the output.

    ``next_LV`` is the state after a token, ``hits_LV`` how often the phrase was completed within it, ``tokens_left_L``
    the fewest tokens that complete it from a state, and ``suggested_LK`` tokens that lead on (PAD where there are
    fewer). The first of the suggestions is on a shortest way.
    """

    next_LV: np.ndarray
    hits_LV: np.ndarray
    tokens_left_L: np.ndarray
    suggested_LK: np.ndarray


class Lexicon:
    """A vocabulary in which phrases are looked for: ``pieces`` are the bytes that each token adds to the output."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        lengths = np.array([len(piece) for piece in pieces])
        self._bytes_VW = np.zeros((len(pieces), max(int(lengths.max()), 1)), dtype=np.uint8)
        for token_id, piece in enumerate(pieces):
            self._bytes_VW[token_id, : len(piece)] = np.frombuffer(piece, dtype=np.uint8)
        self._lengths_V = lengths
        self._by_length = np.argsort(-lengths, kind="stable")
        firsts = self._bytes_VW[self._by_length, 0]
        self._by_first = [self._by_length[(firsts == byte) & (lengths[self._by_length] > 0)] for byte in range(256)]
        # The later of two tokens with equal bytes: in vocabularies of SentencePiece the earlier is for single bytes.
        first_id = len(CONTROL_TOKENS)
        self._ids = {piece: token_id for token_id, piece in enumerate(pieces) if token_id >= first_id and piece}
        self._compiled: OrderedDict[Phrase, Automaton] = OrderedDict()

    def compile(self, phrase: Phrase) -> Automaton:
        """The automaton of a phrase. Raises TranslationError for one that no tokens can write."""
        known = self._compiled.pop(phrase, None)
        self._compiled[phrase] = self._build(phrase) if known is None else known
        if len(self._compiled) > KEPT:
            self._compiled.popitem(last=False)
        return self._compiled[phrase]

    def fewest_tokens(self, phrases: Sequence[Phrase]) -> int:
        """The fewest tokens that write all the phrases, one after the other."""
        return sum(int(self.compile(phrase).tokens_left_L[0]) for phrase in phrases)

    def contains(self, token_ids: Sequence[int], phrases: Sequence[Phrase]) -> bool:
        """Whether an output has every phrase, as often as it is given; occurrences may overlap."""
        content = b"".join(self._pieces[token_id] for token_id in token_ids)
        return all(
            occurrences(content, wanted) >= count
            for wanted, count in Counter(phrase.content for phrase in phrases).items()
        )

    def _build(self, phrase: Phrase) -> Automaton:
        """Walk all tokens from state 0; from another, only those with a first byte that it takes otherwise."""
        step_LB, hit_LB = byte_automaton(phrase.content)
        tokens_left, shortest = self._shortest(phrase.content)
        if tokens_left[0] == np.inf:
            raise TranslationError(
                f"search/phrase: no tokens write the phrase {phrase.content.decode(errors='replace')!r}; it has "
                "characters outside the model's vocabulary. Leave the phrase out, or write it otherwise."
            )
        num_states = len(phrase.content)
        next_LV = np.zeros((num_states, len(self._pieces)), dtype=np.int32)
        hits_LV = np.zeros((num_states, len(self._pieces)), dtype=np.uint8)
        next_LV[:, self._by_length], hits_LV[:, self._by_length] = self._walk(self._by_length, 0, step_LB, hit_LB)
        next_LV[:, self._lengths_V == 0] = np.arange(num_states)[:, None]  # a token without bytes changes nothing
        for state in range(1, num_states):
            differs_B = (step_LB[state] != step_LB[0]) | (hit_LB[state] != hit_LB[0])
            for byte in differs_B.nonzero()[0]:
                ids = self._by_first[byte]
                next_LV[state, ids], hits_LV[state, ids] = self._walk(ids, state, step_LB, hit_LB)
        # Where the end of an occurrence could begin another, or no token leads on, it may take less to begin anew.
        anew_L = tokens_left >= tokens_left[0]
        from_here = [shortest[0] + ids if anew else ids for ids, anew in zip(shortest, anew_L, strict=True)]
        left_L = np.minimum(tokens_left, tokens_left[0]).astype(np.int64)
        return Automaton(next_LV, hits_LV, left_L, self._suggested(phrase, from_here))

    def _walk(
        self, ids: np.ndarray, state: int, step_LB: np.ndarray, hit_LB: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The states after tokens, and the hits within them; ``ids`` have the longest token first."""
        states = np.full(len(ids), state, dtype=np.int32)
        hits = np.zeros(len(ids), dtype=np.uint8)
        lengths = self._lengths_V[ids]
        for place in range(int(lengths[0]) if len(ids) else 0):
            count = int(np.searchsorted(-lengths, -place))
            read = self._bytes_VW[ids[:count], place]
            hits[:count] += hit_LB[states[:count], read]
            states[:count] = step_LB[states[:count], read]
        return states, hits

    def _shortest(self, content: bytes) -> tuple[np.ndarray, list[list[int]]]:
        """The fewest tokens from each state to the end, and the first of such a way: at the start after a space too."""
        length = len(content)
        tokens_left = np.full(length + 1, np.inf)
        tokens_left[length] = 0
        shortest: list[list[int]] = [[] for _ in range(length)]
        for state in reversed(range(length)):
            ways: list[tuple[float, int]] = []
            for before in (b" ", b"") if state == 0 else (b"",):
                found = [
                    (1 + tokens_left[end], -end, self._ids[before + content[state:end]])
                    for end in range(state + 1, length + 1)
                    if before + content[state:end] in self._ids
                ]
                if found:
                    count, _, token_id = min(found)
                    ways.append((count, token_id))
            ways.sort(key=lambda way: way[0])
            tokens_left[state] = ways[0][0] if ways else np.inf
            shortest[state] = [token_id for count, token_id in ways if count < np.inf]
        return tokens_left[:length], shortest

    def _suggested(self, phrase: Phrase, shortest: list[list[int]]) -> np.ndarray:
        """For each state the tokens of the shortest ways, then those of the spellings that come by here."""
        suggested = [list(ids) for ids in shortest]
        for spelling in phrase.spellings:
            end = len(b"".join(self._pieces[token_id] for token_id in spelling))
            state = len(phrase.content) - end  # below 0: a space stands before
            for token_id in spelling:
                following = state + len(self._pieces[token_id])
                if following > max(state, 0):
                    suggested[max(state, 0)].append(token_id)
                state = following
        table_LK = np.full((len(suggested), SUGGESTIONS), PAD_ID, dtype=np.int64)
        for state, ids in enumerate(suggested):
            different = list(dict.fromkeys(ids))[:SUGGESTIONS]
            table_LK[state, : len(different)] = different
        return table_LK


def beam_width(lexicon: Lexicon, phrases: Sequence[Phrase], beam_size: int) -> int:
    """How wide the beam is for these phrases: a power of 2 with room for every bank, where that is more.

    A bank is a number of the phrases' tokens that a hypothesis has (``search/phrases.py``).
    """
    return max(beam_size, min(1 << lexicon.fewest_tokens(phrases).bit_length(), WIDEST)) if phrases else beam_size


def byte_automaton(content: bytes) -> tuple[np.ndarray, np.ndarray]:
    """The next state by state and byte (L, 256), and whether that step completes the phrase."""
    length = len(content)
    step_LB = np.zeros((length, 256), dtype=np.int32)
    hit_LB = np.zeros((length, 256), dtype=np.uint8)
    border = 0  # the longest proper beginning of content[:state] that it also ends with
    for state, byte in enumerate(content):
        if state:
            step_LB[state] = step_LB[border]
        following = int(step_LB[border, byte]) if state else 0
        step_LB[state, byte] = state + 1
        border = following
    hit_LB[length - 1, content[-1]] = 1
    step_LB[length - 1, content[-1]] = border
    return step_LB, hit_LB


def occurrences(content: bytes, wanted: bytes) -> int:
    """How often ``wanted`` stands in ``content``; occurrences may overlap."""
    count, start = 0, content.find(wanted)
    while start >= 0:
        count += 1
        start = content.find(wanted, start + 1)
    return count
