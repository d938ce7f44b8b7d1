"""Our model as the compiled engine computes it in float32, to compare another's folder with where torch is not."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from headway.engine.engine import Engine
from headway.engine.pack import pack_folder
from headway.engine.packed import read_packed
from headway.folder.contents import ModelFolder
from headway.interchange.verification import Ids
from headway.search.settings import SearchSettings


@dataclass(frozen=True, slots=True)
class EngineReading:
    """Our model, by the engine's search."""

    engine: Engine
    name: str = "Headway"

    def encode(self, texts: Sequence[str]) -> list[Ids] | None:
        """Nothing: the tokenizer is not its own."""
        return None

    def greedy(self, sources: Sequence[Ids], longest: int) -> list[Ids]:
        """As ``Reading`` says."""
        found = self.engine.search(
            sources,
            prefixes=[()] * len(sources),
            limits=[longest] * len(sources),
            settings=SearchSettings(beam_size=1, length_penalty=0.0),
        )
        return [tuple(hypotheses[0].token_ids) for hypotheses in found]

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """As ``Reading`` says."""
        return self.engine.score(sources, targets)


@contextmanager
def read_by_engine(folder: ModelFolder) -> Generator[EngineReading, None, None]:
    """Pack the model in float32, for the length of the block. Raises EngineError for one that the engine cannot run."""
    with TemporaryDirectory() as place:
        packed = pack_folder(folder, precision="float32", path=Path(place) / "packed.safetensors")
        yield EngineReading(Engine(read_packed(packed)))
