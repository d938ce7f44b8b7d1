from pathlib import Path

import pytest

from headway.config.schema import RunConfig
from headway.corpus.pair import SentencePair
from headway.data.cleaned import Block
from headway.data.encoding import Coder, Counts, encode_validation, sum_of
from headway.data.prepared import Dropped
from headway.data.store import Store
from headway.text.subword import LEARNERS

TEXTS = ["a b c d", "b d", "c a b", "d c b a"]


def _coder(max_tokens: int = 400) -> Coder:
    tokenizer = LEARNERS["bpe"](TEXTS, vocab_size=300, tags=("home",))
    config = RunConfig.model_validate({"data": {"train_source": "a", "max_tokens": max_tokens}})
    return Coder((tokenizer, tokenizer), config, labels=None)


def _block(*pairs: tuple[str, str], first_line: int = 1) -> Block:
    return Block.of([SentencePair(*pair, line) for line, pair in enumerate(pairs, first_line)])


def test_what_is_empty_or_too_long_is_left_out_and_its_first_lines_are_told(tmp_path: Path) -> None:
    long = " ".join("abcd" * 5)
    blocks = [
        ("", _block(("a b", "c"), ("", "a"), (long, "b"), ("b", " "), first_line=3)),
        ("", _block(("c", long), ("d", "a"), (long, long), ("b", long), first_line=11)),
    ]
    encoded = encode_validation(blocks, tmp_path, coder=_coder(max_tokens=11))
    store = Store.open(tmp_path)
    assert (len(store), encoded.pairs) == (2, 2)
    assert encoded.too_long == Dropped(4, (5, 11, 13))  # the first three of four
    assert encoded.empty == Dropped(2, (4, 6))
    assert encoded.source_tokens == store.source_lengths.sum()
    assert encoded.target_tokens == store.target_lengths.sum()


@pytest.mark.parametrize(("tag", "beyond"), [("", 1), ("home", 2)])
def test_eos_and_a_tag_count_towards_the_longest_side(tmp_path: Path, tag: str, beyond: int) -> None:
    tokens = len(LEARNERS["bpe"](TEXTS, vocab_size=300, tags=("home",)).encode(TEXTS[0]))
    for spare in (0, -1):
        block = _block((TEXTS[0], "a"))
        coder = _coder(max_tokens=tokens + beyond + spare)
        encoded = encode_validation([(tag, block)], tmp_path / str(spare), coder=coder)
        assert encoded.pairs == 1 + spare


def test_counts_of_several_corpora_are_added_without_lines_which_are_those_of_a_file() -> None:
    first, second = Counts(pairs=2, source_tokens=5, target_tokens=7), Counts(pairs=3, source_tokens=11)
    first.add_left_out(too_long=[13], empty=[])
    second.add_left_out(too_long=[17, 19], empty=[23])
    assert sum_of([first]).too_long == Dropped(1, (13,))
    both = sum_of([first, second])
    assert (both.pairs, both.source_tokens, both.target_tokens) == (5, 16, 7)
    assert (both.too_long, both.empty) == (Dropped(3, ()), Dropped(1, ()))
