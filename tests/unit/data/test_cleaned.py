"""Promises of headway.data.cleaned: text on disk comes back as it was."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.corpus.pair import SentencePair
from headway.data import cleaned as cleaned_text
from headway.data.cleaned import Block, Cleaned, write_blocks
from headway.errors import CorpusError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=7)
PAIRS = st.lists(st.builds(SentencePair, TEXT, TEXT, st.integers(1, 2**62)), max_size=23)


def _written(path: Path, pairs: list[SentencePair]) -> list[int]:
    with path.open("wb") as file:
        return list(write_blocks(file, pairs))


@given(PAIRS, st.integers(1, 5), st.integers(1, 11))
def test_pairs_come_back_in_blocks_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[SentencePair], most_pairs: int, most_characters: int
):
    path = tmp_path_factory.mktemp("cleaned") / "blocks"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cleaned_text, "BLOCK_PAIRS", most_pairs)
        patch.setattr(cleaned_text, "BLOCK_CHARACTERS", most_characters)
        told = _written(path, pairs)
    blocks = list(Cleaned(path).blocks())
    assert [pair for block in blocks for pair in block.pairs()] == pairs
    assert [block.first + len(block) for block in blocks] == told
    for block in blocks:
        assert len(block) <= most_pairs
        *earlier, _ = block.pairs()
        assert sum(len(pair.source) + len(pair.target) for pair in earlier) < most_characters


def test_half_of_a_surrogate_pair_is_refused_with_its_line(tmp_path: Path):
    pairs = [SentencePair("a", "b", 3), SentencePair("c", "\ud83d", 7)]
    with pytest.raises(CorpusError, match=r"line 7 of a training file: found half of a surrogate pair"):
        _written(tmp_path / "blocks", pairs)


def test_some_pairs_of_a_block_are_those_of_the_rows():
    block = Block.of([SentencePair(str(number), chr(97 + number), 10 * number) for number in range(5)])
    assert list(block.some([1, 3]).pairs()) == [SentencePair("1", "b", 10), SentencePair("3", "d", 30)]
