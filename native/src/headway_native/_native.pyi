from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

# Tokens that open, tokens that close them, leaves; the leaves of each sentence; how many nodes may open in a row.
Form: TypeAlias = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[Sequence[int]], int | None, float]

class CancelledError(RuntimeError): ...

class Cancel:
    def __init__(self, value: bool = False) -> None: ...
    def set(self) -> None: ...

class Model:
    @staticmethod
    def load(
        sizes: Mapping[str, int],
        numbers: Mapping[str, float],
        names: Mapping[str, str],
        arrays: Mapping[str, npt.NDArray[np.uint8]],
    ) -> Model: ...

class Shortlist:
    def __init__(
        self,
        offsets: npt.NDArray[np.int64],
        tokens: npt.NDArray[np.int32],
        always: npt.NDArray[np.int32],
        *,
        target_vocab: int,
    ) -> None: ...
    def allowed(self, sources: Sequence[Sequence[int]]) -> list[list[int]]: ...

class Session:
    def __init__(
        self, model: Model, *, kernels: str = "auto", threads: int = 1, shortlist: Shortlist | None = None
    ) -> None: ...
    @property
    def kernels(self) -> str: ...
    @property
    def threads(self) -> int: ...
    def search(
        self,
        sources: Sequence[Sequence[int]],
        *,
        prefixes: Sequence[Sequence[int]],
        limits: Sequence[int],
        beam: int,
        n_best: int,
        length_penalty: float,
        no_repeat: int,
        never: Sequence[int],
        rows: int,
        form: Form | None = None,
        cancel: Cancel | None = None,
    ) -> list[list[tuple[list[int], float, float, bool]]]: ...
    def score(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], *, cancel: Cancel | None = None
    ) -> list[list[float]]: ...
    def attend(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], *, cancel: Cancel | None = None
    ) -> list[tuple[int, int, npt.NDArray[np.float32]]]: ...

class Probe:
    def __init__(self, kernels: str) -> None: ...
    @property
    def name(self) -> str: ...
    def product(
        self,
        weight: npt.NDArray[np.uint8],
        *,
        scale: npt.NDArray[np.float32] | None,
        bias: npt.NDArray[np.float32] | None,
        outputs: int,
        inputs: int,
        rows: npt.NDArray[np.float32],
        relu: bool,
        out: npt.NDArray[np.float32],
    ) -> None: ...
    def sums(
        self,
        weight: npt.NDArray[np.uint8],
        *,
        outputs: int,
        inputs: int,
        rows: npt.NDArray[np.int8],
        out: npt.NDArray[np.int32],
    ) -> None: ...
    def quantise(self, row: npt.NDArray[np.float32]) -> tuple[list[int], float]: ...
    def norm(
        self,
        rows: npt.NDArray[np.float32],
        *,
        gain: npt.NDArray[np.float32],
        bias: npt.NDArray[np.float32] | None,
        epsilon: float,
        centred: bool,
        out: npt.NDArray[np.float32],
    ) -> None: ...
    def activate(self, name: str, rows: npt.NDArray[np.float32]) -> None: ...
    def gate(
        self, name: str, gates: npt.NDArray[np.float32], rows: npt.NDArray[np.float32], *, out: npt.NDArray[np.float32]
    ) -> None: ...
    def scan(self, row: npt.NDArray[np.float32], *, threshold: float) -> tuple[float, float, list[int]]: ...
    def attend(
        self,
        query: npt.NDArray[np.float32],
        *,
        key: npt.NDArray[np.float32],
        value: npt.NDArray[np.float32],
        offset: Sequence[int],
        heads: tuple[int, int, int, int],
        slope: npt.NDArray[np.float32] | None,
        is_short: bool,
        weights: npt.NDArray[np.float32],
        out: npt.NDArray[np.float32],
    ) -> None: ...
    def attend_source(
        self,
        queries: npt.NDArray[np.float32],
        *,
        key: npt.NDArray[np.float32],
        value: npt.NDArray[np.float32],
        heads: tuple[int, int, int, int],
        slope: npt.NDArray[np.float32] | None,
        centre: int,
        is_short: bool,
        weights: npt.NDArray[np.float32],
        out: npt.NDArray[np.float32],
    ) -> None: ...
    def narrow(self, row: npt.NDArray[np.float32], *, out: npt.NDArray[np.uint16]) -> None: ...

def available() -> list[str]: ...
