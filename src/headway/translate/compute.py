"""Where and with what to compute, as a request says it; ``backend.py`` chooses by it."""

import sys
from dataclasses import dataclass
from pathlib import Path

from headway.errors import TranslationError

DEVICES = ("auto", "cpu", "cuda", "mps")
ENGINES = ("auto", "native", "torch")
PRECISIONS = ("auto", "int8", "float32")
UNLIMITED = sys.maxsize  # padded tokens at once, for what takes as many sentences as there are


@dataclass(frozen=True, slots=True)
class Compute:
    """The wishes of one request.

    ``device``: auto (a CUDA GPU if there is one, else the CPU), cpu, cuda or mps. ``engine``: auto (on a CPU the
    compiled engine where it can, else torch), native or torch. ``precision``: auto (int8 by the engine, float32 by
    torch), int8 or float32. ``threads`` of the CPU; absent, one a core, or as OMP_NUM_THREADS says. ``shortlist``: the
    file of the tokens that searches are limited to, by source (``headway shortlist``); only the engine has that.
    """

    device: str = "auto"
    engine: str = "auto"
    precision: str = "auto"
    threads: int | None = None
    shortlist: Path | None = None

    @property
    def of_the_engine(self) -> dict[str, str]:
        """What was wished that only the compiled engine has, by option, each with what it is."""
        wishes = {
            "--engine native": ("the native engine was asked for", self.engine == "native"),
            "--precision int8": ("int8 is a precision of the native engine", self.precision == "int8"),
            "--shortlist": ("a shortlist limits the search of the native engine", self.shortlist is not None),
        }
        return {option: what for option, (what, is_wished) in wishes.items() if is_wished}

    @property
    def may_take_torch(self) -> bool:
        """Whether torch may compute what the engine lacks."""
        return not self.of_the_engine

    def check(self) -> None:
        """Raise TranslationError for a wish that there is not."""
        for name, found, known in (
            ("device", self.device, DEVICES),
            ("engine", self.engine, ENGINES),
            ("precision", self.precision, PRECISIONS),
        ):
            if found not in known:
                raise TranslationError(f"translate/compute: {name} is {found!r}; wanted one of {', '.join(known)}.")
        if self.threads is not None and self.threads < 1:
            raise TranslationError(f"translate/compute: threads are {self.threads}; wanted 1 or more.")


@dataclass(frozen=True, slots=True)
class Choice:
    """What computes: ``engine`` native or torch, in ``precision``; ``reason`` why not by the engine, if to be told."""

    engine: str
    precision: str
    reason: str = ""
