"""Token accuracy: the share of places whose most probable token is the right one, whatever the chunks."""

import pytest
import torch

from headway.train import chunked
from headway.train.accuracy import correct_tokens


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("chunk", [1, 3, 101])
def test_correct_tokens_are_those_of_one_argmax_over_all_logits(monkeypatch, chunk, with_bias):
    generator = torch.Generator().manual_seed(7)
    hidden_ND, weight_VD, bias_V = (torch.randn(size, generator=generator) for size in ((29, 5), (11, 5), (11,)))
    target_N = torch.randint(0, 11, (29,), generator=generator)
    monkeypatch.setattr(chunked, "CHUNK_TOKENS", chunk)
    bias = bias_V if with_bias else None
    logits_NV = hidden_ND @ weight_VD.T + (bias_V if with_bias else 0.0)
    wanted = int((logits_NV.argmax(dim=1) == target_N).sum())
    assert 0 < wanted < 29
    assert correct_tokens(hidden_ND, weight_VD, target_N=target_N, bias_V=bias).item() == wanted


def test_without_tokens_none_is_right():
    assert correct_tokens(torch.zeros(0, 5), torch.zeros(11, 5), target_N=torch.zeros(0, dtype=torch.int64)).item() == 0
