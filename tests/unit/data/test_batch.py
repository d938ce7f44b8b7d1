"""Lists of token ids as one batch."""

import torch

from headway.data.batch import forced_batch, pad


def test_targets_are_read_after_bos_and_written_up_to_eos_with_padding_behind():
    batch = forced_batch([[7, 9, 3], [5, 3]], [[6, 3], [8, 4, 11, 3]], torch.device("cpu"))
    assert batch.source_BS.tolist() == [[7, 9, 3], [5, 3, 0]]
    assert batch.target_in_BT.tolist() == [[2, 6, 0, 0], [2, 8, 4, 11]]
    assert batch.target_out_BT.tolist() == [[6, 3, 0, 0], [8, 4, 11, 3]]
    assert batch.num_target_tokens == 6
    assert pad([[1], []], torch.device("cpu")).tolist() == [[1], [0]]
