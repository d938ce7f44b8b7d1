"""What computes: the one place that chooses it, importing it only when it is asked for."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from headway.engine.engine import is_installed
from headway.engine.pack import unsupported
from headway.errors import MissingExtraError, TranslationError
from headway.translate.compute import DEVICES, Choice, Compute
from headway.translate.ensemble import check_alike
from headway.translate.kind import check_kind

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Tensor

    from headway.config.model_config import ModelConfig
    from headway.data.batch import Batch
    from headway.folder.contents import ModelFolder
    from headway.model.language_model import LanguageModel
    from headway.model.language_predictor import LanguageState
    from headway.model.text_encoder import TextEncoder
    from headway.model.token_model import TokenModel
    from headway.model.translation_model import TranslationModel
    from headway.search.cancel import Cancel
    from headway.search.hypothesis import Hypothesis
    from headway.search.phrase import Lexicon, Phrase
    from headway.search.settings import SearchSettings
    from headway.search.tree_form import TreeForm
    from headway.translate.torch_backend import TorchBackend

ModelT = TypeVar("ModelT", bound="TokenModel")
Ids = Sequence[int]

BATCH_TOKENS = {"cpu": 8192, "mps": 16_384, "cuda": 65_536}  # padded source tokens times beam
GPU_SIGNS = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg")  # by which a driver is seen without torch


class Backend(Protocol):
    """All that a translator asks of a model. Sources and targets are token ids that end in EOS.

    ``batch_tokens`` is the budget of padded source tokens times beam that suits what computes. ``leads_to_phrases``:
    whether outputs can be led to phrases that they must contain.
    """

    batch_tokens: int
    leads_to_phrases: bool

    def serving(self, settings: "SearchSettings", *, with_phrases: bool) -> "Backend":
        """The backend that serves such a request: this one, or another for what it lacks."""
        ...

    def cancelled_by(self, cancel: "Cancel") -> "Backend":
        """The same backend, whose calls end with CancelledError once ``cancel`` is set."""
        ...

    def search(
        self,
        sources: Sequence[Ids],
        *,
        prefixes: Sequence[Ids],
        limits: Sequence[int],
        settings: "SearchSettings",
        phrases: "Sequence[Sequence[Phrase]] | None" = None,
        lexicon: "Lexicon | None" = None,
        form: "TreeForm | None" = None,
    ) -> "list[list[Hypothesis]]":
        """The best hypotheses of each source; see ``headway.search.run.search``."""
        ...

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The log-probability of each token of each target."""
        ...

    def attend(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> "list[np.ndarray]":
        """For each pair the attention weights, target tokens by source tokens (both with EOS)."""
        ...


def choose(folders: "Sequence[ModelFolder]", compute: Compute) -> Choice:
    """What is to compute with these models, without loading anything.

    Raises TranslationError for wishes that cannot be met, MissingExtraError where what would compute is not installed.
    """
    compute.check()
    obstacle = _obstacle(folders, compute)
    if obstacle is None:
        return Choice("native", "int8" if compute.precision == "auto" else compute.precision)
    for option, what in compute.of_the_engine.items():
        raise TranslationError(
            f"translate/backend: {what}, but {obstacle.what}. Leave {option} out, and torch computes{obstacle.remedy}."
        )
    _check_torch(obstacle.what, or_else=obstacle.remedy)
    return Choice("torch", "float32", obstacle.what if obstacle.is_told else "")


@dataclass(frozen=True, slots=True)
class _Obstacle:
    """Why the compiled engine does not compute, and whether a user would expect that it does.

    ``remedy``: the end of a sentence, what to do so that it computes.
    """

    what: str
    is_told: bool = True
    remedy: str = ""


def _obstacle(folders: "Sequence[ModelFolder]", compute: Compute) -> _Obstacle | None:
    """What keeps the compiled engine from computing, if anything."""
    if compute.engine == "torch":
        return _Obstacle("torch was asked for", is_told=False)
    if compute.device not in ("auto", "cpu"):
        return _Obstacle(f"the device {compute.device} was asked for", is_told=False)
    if compute.engine == "auto" and compute.device == "auto" and has_gpu():
        return _Obstacle("there is a GPU, on which torch computes", is_told=False, remedy="; or add --device cpu")
    found = None
    if len(folders) > 1:
        found = _Obstacle("the engine does not join several models")
    elif names := unsupported(folders[0].config.model):
        found = _Obstacle(f"the engine does not run {' and '.join(names)}")
    elif not is_installed():
        what = "headway-native, the engine for CPUs, is not installed"
        found = _Obstacle(what, remedy="; or run: pip install headway-native")
    return found


def has_gpu() -> bool:
    """Whether torch finds a CUDA GPU; torch is imported only where something speaks for one."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if find_spec("torch") is None or visible in ("", "-1"):
        return False
    if "torch" not in sys.modules and not visible and not any(Path(sign).exists() for sign in GPU_SIGNS):
        return False
    import torch

    return torch.cuda.is_available()


def load_backend(
    folders: "Sequence[ModelFolder]", *, compute: Compute | None = None, on_notice: Callable[[str], None] | None = None
) -> Backend:
    """The model of a folder, or those of several as one (the mean of their probabilities), ready to search.

    They are translators or parsers: the caller looks with ``check_kind``.

    ``on_notice`` hears, in a line, what a user should know: why torch computes and not the engine, or that a packed
    model could not be kept.
    Raises TranslationError for folders whose vocabularies or languages differ and for wishes that cannot be met,
    MissingExtraError where what would compute is not installed, FolderError, ModelError and EngineError for weights
    that are damaged or do not fit.
    """
    check_alike(folders)
    compute, tell = compute or Compute(), on_notice or _nobody
    choice = choose(folders, compute)
    if choice.engine == "native":
        return _load_native(folders[0], choice.precision, compute=compute, tell=tell)
    if choice.reason:
        tell(f"{choice.reason}: torch computes")
    return _load_torch(folders, compute)


def _load_native(folder: "ModelFolder", precision: str, *, compute: Compute, tell: Callable[[str], None]) -> "Backend":
    from headway.engine.engine import MOST_TOGETHER, Engine
    from headway.engine.packed import open_packed
    from headway.engine.shortlist import read_shortlist
    from headway.translate.native_backend import NativeBackend

    def reserve(lacking: str) -> Backend:
        if not compute.may_take_torch:
            wishes = " and ".join(compute.of_the_engine)
            raise TranslationError(
                f"translate/backend: the engine's search has no {lacking}. Leave {wishes} out, and torch computes that."
            )
        _check_torch(f"the engine's search has no {lacking}")
        tell(f"the engine's search has no {lacking}: torch computes that, in float32")
        return _load_torch([folder], compute)

    shortlist = None if compute.shortlist is None else read_shortlist(compute.shortlist, folder)
    packed = open_packed(folder, precision=precision, on_notice=tell)
    engine = Engine(packed, threads=compute.threads, shortlist=shortlist)
    if compute.threads is not None and compute.threads > MOST_TOGETHER:
        tell(f"of {compute.threads} threads {MOST_TOGETHER} at most work together on few lines; many lines take all")
    has_torch = compute.may_take_torch and find_spec("torch") is not None
    return NativeBackend(engine, reserve=reserve, leads_to_phrases=has_torch)


def _load_torch(folders: "Sequence[ModelFolder]", compute: Compute) -> "TorchBackend":
    from headway.translate.torch_backend import together

    backends = [model_backend(*load_model(folder, compute)) for folder in folders]
    return backends[0] if len(backends) == 1 else together(backends)


def load_model(folder: "ModelFolder", compute: Compute) -> "tuple[TranslationModel, torch.device]":
    """The translator or parser of a folder in torch, in evaluation mode, and the device that it is on.

    Raises TranslationError for a device that does not exist here, FolderError and ModelError for weights that are
    damaged or do not fit.
    """
    from headway.model.build import build_translation_model

    return _loaded(build_translation_model, folder, compute)


def _loaded(
    build: "Callable[[ModelConfig], ModelT]", folder: "ModelFolder", compute: Compute
) -> "tuple[ModelT, torch.device]":
    """A model with a folder's weights, in evaluation mode, and the device that it is on."""
    import torch

    from headway.model.build import load_weights

    if compute.threads:
        torch.set_num_threads(compute.threads)
    place = choose_device(compute.device)
    model = build(folder.config.model)
    load_weights(model, folder.weights())
    return model.to(place).eval(), place


def model_backend(model: "TranslationModel", device: "torch.device") -> "TorchBackend":
    """A model in memory, ready to translate; it must be on the device and in evaluation mode when it is used."""
    from headway.model.predictor import forced_pass, predictor_of
    from headway.translate.torch_backend import TorchBackend

    def attention(batch: "Batch") -> "Tensor":
        _, weights_BTS = forced_pass(
            model,
            batch.source_BS,
            batch.source_mask_BS,
            target_in_BT=batch.target_in_BT,
            target_out_BT=batch.target_out_BT,
        )
        return weights_BTS

    return TorchBackend(
        predictor_of(model), device, attention=attention, batch_tokens=BATCH_TOKENS.get(device.type, 8192)
    )


def load_language_backend(folder: "ModelFolder", *, compute: Compute) -> "TorchBackend[LanguageState]":
    """The language model of a folder, ready to go on from prompts; torch computes.

    Raises TranslationError for another kind of model and a device that is not there, MissingExtraError without torch,
    FolderError and ModelError for weights that are damaged or do not fit.
    """
    check_kind(folder, "generate")
    _check_torch("the engine does not run language models")
    from headway.model.build import build_language_model

    return language_backend(*_loaded(build_language_model, folder, compute))


def language_backend(model: "LanguageModel", device: "torch.device") -> "TorchBackend[LanguageState]":
    """A language model in memory; it must be on the device and in evaluation mode when it is used."""
    from headway.model.language_predictor import LanguagePredictor
    from headway.translate.torch_backend import TorchBackend

    def attention(batch: "Batch") -> "Tensor":
        raise AssertionError("a language model has no source to attend to")

    return TorchBackend(
        LanguagePredictor(model), device, attention=attention, batch_tokens=BATCH_TOKENS.get(device.type, 8192)
    )


def load_text_encoder(folder: "ModelFolder", *, compute: Compute) -> "tuple[TextEncoder, torch.device]":
    """The encoder of a folder, in evaluation mode, and the device it is on; torch computes.

    Raises as ``load_language_backend`` does.
    """
    check_kind(folder, "classify")
    _check_torch("the engine does not run an encoder alone")
    from headway.model.build import build_text_encoder

    return _loaded(build_text_encoder, folder, compute)


def choose_device(name: str) -> "torch.device":
    """The device of that name. Raises TranslationError for one that does not exist here."""
    import torch

    if name not in DEVICES:
        raise TranslationError(f"translate/backend: device is {name!r}; wanted one of {', '.join(DEVICES)}.")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    missing = (name == "cuda" and not torch.cuda.is_available()) or (
        name == "mps" and not torch.backends.mps.is_available()
    )
    if missing:
        raise TranslationError(
            f"translate/backend: device {name} was asked for, but torch {torch.__version__} finds none here. "
            "Take the device cpu, or install the torch build for your device (pytorch.org)."
        )
    return torch.device(name)


def _check_torch(obstacle: str, *, or_else: str = "") -> None:
    """Say which extra is missing where torch is; ``or_else`` is what would do without it."""
    if find_spec("torch") is None:
        raise MissingExtraError(
            f"translate/backend: {obstacle}, and torch, which would compute, is not installed. "
            f"Run: pip install 'headway[train]'{or_else}"
        )


def _nobody(_: str) -> None:
    """Hear nothing."""
