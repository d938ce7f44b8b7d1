"""What computes: the one place that chooses it, importing it only when it is asked for."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from headway.errors import MissingExtraError, TranslationError
from headway.translate.ensemble import check_alike

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch
    from torch import Tensor

    from headway.data.batch import Batch
    from headway.folder.contents import ModelFolder
    from headway.model.predictor import DecoderState
    from headway.model.transformer import Transformer
    from headway.translate.torch_backend import TorchBackend

DEVICES = ("auto", "cpu", "cuda", "mps")
BATCH_TOKENS = {"cpu": 8192, "mps": 16_384, "cuda": 65_536}  # padded source tokens times beam


def load_backend(folder: "ModelFolder", *, device: str = "auto") -> "TorchBackend[DecoderState]":
    """The model of a folder, ready to translate.

    ``device``: auto (a CUDA GPU if there is one, else the CPU), cpu, cuda or mps.
    Raises MissingExtraError without torch, TranslationError for a device that is not there, FolderError and ModelError
    for weights that are damaged or do not fit.
    """
    _check_torch()
    from headway.model.build import build_transformer, load_weights

    place = choose_device(device)
    model = build_transformer(folder.config.model)
    load_weights(model, folder.weights())
    return model_backend(model.to(place).eval(), place)


def load_ensemble(folders: "Sequence[ModelFolder]", *, device: str = "auto") -> "TorchBackend":
    """The models of several folders as one, which takes the mean of their probabilities; of one folder, that model.

    Raises TranslationError for folders whose vocabularies or languages differ, and what ``load_backend`` raises.
    """
    check_alike(folders)
    if len(folders) == 1:
        return load_backend(folders[0], device=device)
    _check_torch()
    from headway.translate.torch_backend import together

    return together([load_backend(folder, device=device) for folder in folders])


def model_backend(model: "Transformer", device: "torch.device") -> "TorchBackend[DecoderState]":
    """A model in memory, ready to translate; it must be on the device and in evaluation mode when it is used."""
    from headway.model.predictor import TransformerPredictor, forced_pass
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
        TransformerPredictor(model), device, attention=attention, batch_tokens=BATCH_TOKENS.get(device.type, 8192)
    )


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


def set_threads(count: int) -> None:
    """Let the CPU compute with ``count`` threads, in this process."""
    _check_torch()
    import torch

    torch.set_num_threads(count)


def _check_torch() -> None:
    """Say which extra is missing where torch is."""
    if find_spec("torch") is None:
        raise MissingExtraError(
            "translate/backend: translating needs torch, which is not installed. Run: pip install 'headway[train]'"
        )
