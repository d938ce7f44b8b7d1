"""What training, choices, warnings and descriptions share of the learning rate's curve: its height, and its end."""

FALLING = ("linear", "cosine")  # schedules that fall to 0 at max_steps, which so shapes every rate


def peak_rate(d_model: int, warmup_steps: int, *, given: float | None = None) -> float:
    """The highest rate of a run: as ``given`` (``train.learning_rate``), else the paper's.

    That is (d_model * warmup_steps)^-0.5, where its Section 5.3, equation 3 turns from rising to falling.
    """
    return (d_model * warmup_steps) ** -0.5 if given is None else given
