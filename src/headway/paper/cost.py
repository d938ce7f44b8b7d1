"""What a training run costs: by the paper's rule, and by the operations that its matrix products need."""

from headway.config.model_config import ModelConfig
from headway.model.size import count_multiply_adds

# Sustained single-precision operations a second, as the paper's footnote 5 has them.
SUSTAINED = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}
HOUR, DAY = 3600.0, 86_400.0
FLOPS_OF_A_MULTIPLY_ADD = 2
PASSES = 3  # backward takes twice what forward does


def by_rule(seconds: float, *, processors: int, processor: str) -> float:
    """FLOP by the rule of Table 2: time x processors x what one of them sustains."""
    return seconds * processors * SUSTAINED[processor]


def by_count(config: ModelConfig, *, steps: int, source_tokens: float, target_tokens: float, length: int) -> float:
    """FLOP of the matrix products of so many steps, each of so many tokens of both sides, in sentences of ``length``.

    Forward and backward; biases, norms, softmax and the optimizer are left out (``model/size.py``).
    """
    counts = count_multiply_adds(config, source_length=length, target_length=length)
    a_step = source_tokens * counts.source_token + target_tokens * counts.target_token
    return PASSES * FLOPS_OF_A_MULTIPLY_ADD * steps * a_step
