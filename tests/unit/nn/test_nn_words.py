"""Words of two sides, counted, and what a score loses by their distance."""

import pytest
import torch

from headway.nn.attention import attention, fused_attention
from headway.nn.words import WordCounter, WordDistance


def test_a_token_is_at_the_word_that_has_begun_last():
    counter = WordCounter([2, 3, 5], 7)
    token_BT = torch.tensor([[2, 4, 5, 5, 1, 3], [4, 6, 2, 0, 0, 0]])
    assert counter(token_BT).tolist() == [[1, 1, 2, 3, 3, 4], [0, 0, 1, 1, 1, 1]]
    assert counter(token_BT[:, 2:], torch.tensor([1, 0])).tolist() == [[2, 3, 3, 4], [1, 1, 1, 1]]


def test_a_score_loses_slope_by_distance_and_heads_have_slopes_of_their_own():
    bias_BHTS = WordDistance(4)(torch.tensor([[1, 3], [2, 2]]), torch.tensor([[1, 1, 5], [0, 2, 3]]))
    assert bias_BHTS.shape == (2, 4, 2, 3)
    assert bias_BHTS[0, 0].tolist() == [[0.0, 0.0, -4.0], [-2.0, -2.0, -2.0]]
    assert bias_BHTS[1, 0].tolist() == [[-2.0, 0.0, -1.0]] * 2
    for head, slope in enumerate((1, 1 / 4, 1 / 16, 1 / 64)):
        assert torch.equal(bias_BHTS[:, head], slope * bias_BHTS[:, 0])


@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("masked", [False, True])
def test_the_fused_kernel_adds_each_sentences_own_numbers(num_kv_heads, masked):
    generator = torch.Generator().manual_seed(5)
    q_BHTK, k_BGSK, v_BGSV = (
        torch.randn(3, heads, places, 7, generator=generator)
        for heads, places in ((4, 5), (num_kv_heads, 6), (num_kv_heads, 6))
    )
    bias_BHTS = torch.randn(3, 4, 5, 6, generator=generator)
    mask_B11S = torch.rand(3, 1, 1, 6, generator=generator) < 0.6 if masked else None
    if mask_B11S is not None:
        mask_B11S[1] = False  # a sentence without a token
    expected = attention(q_BHTK, k_BGSK, v_BGSV, mask_B11S, bias=bias_BHTS)[0]
    found = fused_attention(q_BHTK, k_BGSK, v_BGSV, mask_B11S, bias=bias_BHTS)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
