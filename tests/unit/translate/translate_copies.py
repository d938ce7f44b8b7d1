"""A translator that copies: what it gives back must be what went in, so every loss shows."""

import torch
from torch import Tensor

from headway.config.schema import SearchConfig
from headway.text.bpe import learn_bpe
from headway.text.tokenizer import EOS_ID, PAD_ID
from headway.translate.torch_backend import TorchBackend
from headway.translate.translator import Translator

TEXTS = ["the cat sat on the mat", "a small house on the hill. how are you?", "one, two; three!"] * 3


class CopyPredictor:
    """The next token is the source's next one, nearly surely. A state is the sources and how many tokens were given."""

    def __init__(self, vocab_size, *, end_bonus=0.0):
        self.vocab_size = vocab_size
        self.end_bonus = end_bonus
        self.shapes = []  # of every batch that came in

    def start(self, source_BS, source_mask_BS):
        assert torch.equal(source_mask_BS, source_BS != PAD_ID)
        self.shapes.append(tuple(source_BS.shape))
        return source_BS, 0

    def predict(self, token_R, state):
        source_RS, position = state
        wanted = source_RS[:, min(position, source_RS.shape[1] - 1)].clone()
        wanted[wanted == PAD_ID] = EOS_ID
        logits = 12.0 * torch.nn.functional.one_hot(wanted, self.vocab_size).float()
        logits[:, EOS_ID] += self.end_bonus
        return logits.log_softmax(dim=1), (source_RS, position + 1)

    def select(self, state, rows_R):
        return state[0][rows_R], state[1]


def diagonal(batch) -> Tensor:
    """Attention of target token t to source token t."""
    eye = torch.eye(max(batch.target_out_BT.shape[1], batch.source_BS.shape[1]))
    eye = eye[: batch.target_out_BT.shape[1], : batch.source_BS.shape[1]]
    return eye.expand(batch.source_BS.shape[0], -1, -1)


def copying_translator(
    *, source_language="en", target_language="de", max_source_tokens=23, max_extra_tokens=50, end_bonus=0.0
):
    tokenizer = learn_bpe(TEXTS, vocab_size=300)
    predictor = CopyPredictor(tokenizer.vocab_size, end_bonus=end_bonus)
    return Translator(
        TorchBackend(predictor, torch.device("cpu"), attention=diagonal),
        tokenizer,
        tokenizer,
        max_source_tokens=max_source_tokens,
        source_language=source_language,
        target_language=target_language,
        search=SearchConfig(max_extra_tokens=max_extra_tokens),
    )
