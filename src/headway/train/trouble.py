"""What looking at a validation has found."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trouble:
    """How grave it is, on its kind's own scale (more is worse), and the line; ``again``: told in any case."""

    value: float
    text: str
    again: bool = False
