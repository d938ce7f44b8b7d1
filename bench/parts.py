"""What each modern part costs or saves: CPU time of a training step and of decoding, as a ratio to the paper's parts.

    python bench/parts.py [ROUNDS]

Rounds go through all parts in turn, so that a busy moment of the machine hits them alike; medians are printed.
"""

import statistics
import sys
import time

import torch

from headway.config.model_config import ModelConfig
from headway.config.train_config import TrainConfig
from headway.data.batch import Batch
from headway.model.build import build_transformer
from headway.model.predictor import TransformerPredictor
from headway.train.objective import Likelihood
from headway.train.optimizer import build_adam
from headway.train.step import train_step

SIZES = {
    "vocab_size": 997,
    "d_model": 256,
    "d_ff": 1024,
    "num_heads": 8,
    "num_encoder_layers": 3,
    "num_decoder_layers": 3,
}
SWITCHES: dict[str, dict[str, object]] = {
    "the paper": {},
    "positions = rope": {"positions": "rope"},
    "positions = alibi": {"positions": "alibi"},
    "positions = t5": {"positions": "t5"},
    "norm_placement = pre": {"norm_placement": "pre"},
    "norm = rms": {"norm": "rms"},
    "activation = gelu": {"activation": "gelu"},
    "activation = silu": {"activation": "silu"},
    "activation = swiglu": {"activation": "swiglu"},
    "activation = swiglu, d_ff 683": {"activation": "swiglu", "d_ff": 683},
    "num_kv_heads = 2": {"num_kv_heads": 2},
    "num_kv_heads = 1": {"num_kv_heads": 1},
    "attention_window = 8": {"attention_window": 8},
    "attention_dropout = 0.1": {"attention_dropout": 0.1},
    "activation_dropout = 0.1": {"activation_dropout": 0.1},
    "residual_scaling = deepnorm": {"residual_scaling": "deepnorm"},
    "output_bias = true": {"output_bias": True},
}


class Case:
    """One model, and the seconds of processor time that it took."""

    def __init__(self, settings: dict[str, object]) -> None:
        self.model = build_transformer(ModelConfig.model_validate(SIZES | settings))
        self.optimizer = build_adam(self.model, TrainConfig())
        self.training: list[float] = []
        self.decoding: list[float] = []

    def train(self, batch: Batch, step: int) -> None:
        """One step of 32 sentences of 27 tokens."""
        self.model.train()
        begin = time.process_time()
        train_step(
            self.model,
            self.optimizer,
            batches=[batch],
            step=step,
            seed=1,
            learning_rate=1e-4,
            objective=Likelihood(0.1),
            precision="float32",
        )
        self.training.append(time.process_time() - begin)

    def decode(self, source: torch.Tensor, num_tokens: int) -> None:
        """So many tokens for 32 rows, whatever they say."""
        predictor = TransformerPredictor(self.model.eval())
        begin = time.process_time()
        state = predictor.start(source, source != 0)
        tokens = torch.full((len(source),), 2)
        for _ in range(num_tokens):
            log_probs, state = predictor.predict(tokens, state)
            tokens = log_probs.argmax(dim=-1)
        self.decoding.append(time.process_time() - begin)


def main(rounds: int) -> None:
    """Print a table."""
    torch.set_num_threads(1)
    ids = torch.randint(4, 997, (32, 27), generator=torch.Generator().manual_seed(1))
    batch = Batch(ids, target_in_BT=ids, target_out_BT=ids.roll(-1, dims=1))
    cases = {name: Case(settings) for name, settings in SWITCHES.items()}
    for number in range(rounds + 1):
        for case in cases.values():
            case.train(batch, number + 1)
            case.decode(ids, 64)
    base = cases["the paper"]
    print(f"{'part':32} training  decoding   (x the paper's {seconds(base.training)} and {seconds(base.decoding)})")
    for name, case in cases.items():
        ratios = [middle(mine) / middle(its) for mine, its in zip(times(case), times(base), strict=True)]
        print(f"{name:32} {ratios[0]:8.2f}  {ratios[1]:8.2f}")


def times(case: Case) -> tuple[list[float], list[float]]:
    """Training and decoding, without the first round."""
    return case.training[1:], case.decoding[1:]


def middle(values: list[float]) -> float:
    """The median."""
    return statistics.median(values)


def seconds(values: list[float]) -> str:
    """The median of all rounds but the first."""
    return f"{1000 * middle(values[1:]):.0f} ms"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
