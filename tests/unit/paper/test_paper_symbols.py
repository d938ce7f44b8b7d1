"""Drawn sentences follow their rule, their lengths and their seed."""

import pytest
import torch

from headway.paper.symbols import FIRST, SymbolTask


def draw(rule, *, distinct=False, seed=1, **how):
    task = SymbolTask(rule, num_symbols=11, shortest=2, longest=7, distinct=distinct)
    return task.draw(53, torch.Generator().manual_seed(seed), **how)


def rows(batch):
    """Source, target_in and target_out of each sentence without padding."""
    for sides in zip(batch.source_BS.tolist(), batch.target_in_BT.tolist(), batch.target_out_BT.tolist(), strict=True):
        yield [[token for token in side if token] for side in sides]


@pytest.mark.parametrize("rule", ["copy", "reverse"])
def test_the_target_is_what_the_rule_makes_of_the_source(rule):
    lengths = set()
    for source, target_in, target_out in rows(draw(rule)):
        symbols = source[:-1]
        wanted = symbols if rule == "copy" else symbols[::-1]
        assert source == [*symbols, 3]
        assert target_in == [2, *wanted]
        assert target_out == [*wanted, 3]
        assert all(FIRST <= symbol < FIRST + 11 for symbol in symbols)
        lengths.add(len(symbols))
    assert lengths == {2, 3, 4, 5, 6, 7}


def test_padding_stands_after_the_end():
    batch = draw("reverse")
    for side in (batch.source_BS, batch.target_out_BT):
        ends = (side == 3).int().argmax(dim=1)
        assert ((side == 0) == (torch.arange(side.shape[1]) > ends[:, None])).all()


def test_distinct_symbols_come_once_and_others_come_again():
    def most(distinct):
        found = (source[:-1] for source, _, _ in rows(draw("copy", distinct=distinct)))
        return max(source.count(symbol) for source in found for symbol in source)

    assert most(True) == 1
    assert most(False) > 1


def test_a_length_given_holds_for_all_and_may_be_beyond_the_task_s():
    batch = draw("copy", length=9)
    assert batch.source_BS.shape == (53, 10)
    assert (batch.source_BS != 0).all()


def test_the_seed_alone_decides():
    assert torch.equal(draw("copy").source_BS, draw("copy").source_BS)
    assert torch.equal(draw("copy").source_BS, draw("reverse").source_BS)
    assert not torch.equal(draw("copy").source_BS, draw("copy", seed=2).source_BS)
