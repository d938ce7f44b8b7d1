"""A vocabulary that cannot write a text is found out."""

from headway.corpus.pair import SentencePair
from headway.data.round_trip import check_round_trip
from headway.text.bpe import learn_bpe

PAIRS = [SentencePair("a red dog", "ein roter Hund", 3), SentencePair("a blue dog", "ein blauer Hund", 5)]
TEXTS = [text for pair in PAIRS for text in (pair.source, pair.target)]


def test_a_byte_level_vocabulary_writes_every_text():
    tokenizer = learn_bpe(TEXTS, vocab_size=280)
    trip = check_round_trip([*PAIRS, SentencePair("你好 <unk>", "</s> \t ü", 7)], tokenizer, tokenizer)
    assert trip.findings == ()
    assert trip.unknown_tokens == 0.0
    assert trip.pairs == 3


def test_characters_that_a_vocabulary_lacks_are_counted_with_their_lines():
    tokenizer = learn_bpe(TEXTS, vocab_size=60, byte_fallback=False)
    trip = check_round_trip([*PAIRS, SentencePair("a 猫", "ein 猫 猫", 11)], tokenizer, tokenizer)
    (finding,) = trip.findings
    assert (finding.kind, finding.count, finding.total, finding.severity) == ("unknown-tokens", 1, 3, "costly")
    assert finding.examples[0].line == 11
    ids = [
        tokenizer.encode(text)
        for pair in [*PAIRS, SentencePair("a 猫", "ein 猫 猫", 11)]
        for text in (pair.source, pair.target)
    ]
    assert trip.unknown_tokens == sum(i.count(1) for i in ids) / sum(map(len, ids)) > 0
    words = [sum(len(pair.source.split()) for pair in PAIRS) + 2, sum(len(pair.target.split()) for pair in PAIRS) + 3]
    assert trip.source_tokens_a_word == sum(map(len, ids[::2])) / words[0]
    assert trip.target_tokens_a_word == sum(map(len, ids[1::2])) / words[1]


def test_text_that_comes_back_otherwise_is_a_finding():
    tokenizer = learn_bpe(TEXTS, vocab_size=280)

    class Careless:
        encode_batch = staticmethod(tokenizer.encode_batch)

        @staticmethod
        def decode(ids):
            return tokenizer.decode(ids).replace("red", "rad")

    (finding,) = check_round_trip(PAIRS, Careless(), Careless()).findings
    assert (finding.kind, finding.count) == ("round-trip", 1)
    assert finding.examples[0].note == "comes back as a rad dog"
