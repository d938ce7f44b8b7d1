"""The model that is looked into, with the translator that translates by it, in torch and float32."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch

from headway.errors import InspectionError
from headway.folder.contents import ModelFolder
from headway.model.transformer import Transformer
from headway.translate.backend import load_model, model_backend
from headway.translate.compute import Compute
from headway.translate.kind import check_kind
from headway.translate.translator import Translator


@dataclass(frozen=True, slots=True)
class Subject:
    """A model in evaluation mode, the device it is on, and the translator around it."""

    model: Transformer
    device: torch.device
    translator: Translator
    max_source_tokens: int  # the longest source trained on, EOS counted

    @classmethod
    def from_folder(cls, path: str | Path, device: str = "auto", *, threads: int | None = None) -> Self:
        """Load a model folder; ``device`` and ``threads`` are as in ``headway.translate.compute.Compute``.

        Raises FolderError, ModelError, InspectionError for a model without heads and for a parser that reads tags, and
        TranslationError for a model of one text and for a device that does not exist here.
        """
        folder = ModelFolder.open(Path(path))
        if folder.config.parsing is not None and folder.config.parsing.tags == "given":
            raise InspectionError(
                f"inspection/subject: {path} is a parser that reads a tag with every word, and a sentence here has "
                'none; wanted a model that reads words alone. Train one with parsing.tags = "predicted".'
            )
        compute = Compute(device, "torch", threads=threads)
        compute.check()
        if folder.config.parsing is None:
            check_kind(folder, "translate")
        model, place = load_model(folder, compute)
        if not isinstance(model, Transformer):
            raise InspectionError(
                f"inspection/subject: {path} has a model of architecture {folder.config.model.architecture}; wanted a "
                "Transformer, whose heads can be looked into. `headway translate --alignment` tells where others look."
            )
        translator = Translator.around(model_backend(model, place), [folder])
        return cls(model, place, translator, folder.config.max_source_tokens)

    @property
    def longest_target(self) -> int:
        """The most tokens of a target, EOS counted, that the translator could write for any source."""
        return self.translator.output_limit(self.max_source_tokens)


def the_one_folder(paths: Sequence[Path]) -> Path:
    """The model folder to look into. Raises InspectionError for several: their attention is not one model's."""
    if len(paths) != 1:
        names = ", ".join(str(path) for path in paths) or "none"
        raise InspectionError(
            f"inspection/subject: found {len(paths)} model folders ({names}); wanted one: of several models that "
            "translate together, each attends in its own way. Look into them one by one."
        )
    return paths[0]
