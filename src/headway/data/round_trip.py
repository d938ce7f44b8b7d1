"""Whether a vocabulary can write a text: encoded and decoded again, a text must come out as it went in."""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.corpus.finding import KINDS, Finding, Tally
from headway.corpus.pair import SentencePair
from headway.text.tokenizer import UNK_ID, Tokenizer


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """Of a sample: tokens a word on each side, the share of tokens that are unknown, and what does not come back."""

    pairs: int
    source_tokens_a_word: float
    target_tokens_a_word: float
    unknown_tokens: float
    findings: tuple[Finding, ...]


def check_round_trip(pairs: Sequence[SentencePair], source: Tokenizer, target: Tokenizer) -> RoundTrip:
    """Encode and decode both sides of each pair. An imported vocabulary may normalise text, which is found here."""
    tally = Tally("sample")
    rates: list[float] = []
    num_tokens = num_unknown = 0
    bad: dict[str, dict[int, str]] = {"round-trip": {}, "unknown-tokens": {}}
    for tokenizer, texts in (
        (source, [pair.source for pair in pairs]),
        (target, [pair.target for pair in pairs]),
    ):
        ids = tokenizer.encode_batch(texts)
        tokens = sum(map(len, ids))
        rates.append(tokens / max(1, sum(len(text.split()) for text in texts)))
        num_tokens += tokens
        for place, (text, text_ids) in enumerate(zip(texts, ids, strict=True)):
            unknown = text_ids.count(UNK_ID)
            num_unknown += unknown
            if unknown:
                bad["unknown-tokens"].setdefault(place, text)
            elif tokenizer.decode(text_ids) != text:
                bad["round-trip"].setdefault(place, tokenizer.decode(text_ids))
    for kind, places in bad.items():
        for place in sorted(places):
            tally.add(kind, pairs[place], "" if kind == "unknown-tokens" else f"comes back as {places[place][:200]}")
    found = [tally.finding(kind, len(pairs), unit="sampled pairs") for kind in KINDS if kind in bad]
    return RoundTrip(
        len(pairs),
        rates[0],
        rates[1],
        num_unknown / max(1, num_tokens),
        tuple(finding for finding in found if finding is not None),
    )
