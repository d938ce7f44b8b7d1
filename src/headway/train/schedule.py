"""The learning rate (Section 5.3, equation 3)."""


def noam(step: int, *, d_model: int, warmup_steps: int, peak: float | None = None) -> float:
    """Learning rate of a step (the first is 1): d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5).

    It rises to its peak at ``warmup_steps``, then falls with the square root. ``peak`` scales the curve to that height.
    """
    shape = min(step**-0.5, step * warmup_steps**-1.5)
    if peak is not None:
        return peak * warmup_steps**0.5 * shape
    return d_model**-0.5 * shape
