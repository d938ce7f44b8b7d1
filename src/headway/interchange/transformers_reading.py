"""A MarianMT folder as Hugging Face's own library reads it; only where that is installed."""

import importlib.util
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from headway.interchange.reading import pad
from headway.interchange.verification import Ids
from headway.text.reserved import BOS_ID, EOS_ID, PAD_ID


def is_installed() -> bool:
    """Whether the library is there; it is not loaded."""
    return importlib.util.find_spec("transformers") is not None


class TransformersReading:
    """MarianMTModel and AutoTokenizer from a folder; nothing is fetched, no code of the folder is run.

    It computes in float64, so that what is compared is how the model was written down, not how sums are rounded.
    """

    name = "transformers"

    def __init__(self, path: Path, *, tokenizer: Path | None) -> None:
        with _quiet():
            import transformers  # noqa: PLC0415 - an optional library that takes seconds to load

            self._model: Any = transformers.MarianMTModel.from_pretrained(
                path, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=torch.float64
            ).eval()
            self._tokenizer: Any = None
            if tokenizer is not None:
                self._tokenizer = transformers.AutoTokenizer.from_pretrained(
                    tokenizer, local_files_only=True, trust_remote_code=False
                )

    def encode(self, texts: Sequence[str]) -> list[Ids] | None:
        """Ids of each source text, EOS last."""
        if self._tokenizer is None:
            return None
        with _quiet():
            return [tuple(ids) for ids in self._tokenizer(list(texts))["input_ids"]]

    @torch.inference_mode()
    def greedy(self, sources: Sequence[Ids], longest: int) -> list[Ids]:
        """The output of ``generate`` with one beam and the folder's own rules."""
        source_BS = pad(sources)
        with _quiet():
            found = self._model.generate(
                input_ids=source_BS,
                attention_mask=(source_BS != PAD_ID).long(),
                num_beams=1,
                do_sample=False,
                max_length=longest + 1,  # the start is counted there
            )
        return [_until_eos(ids[1:]) for ids in found.tolist()]

    @torch.inference_mode()
    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Log-probabilities from one forward pass, with the tokens before each given."""
        source_BS = pad(sources)
        logits_BTV = self._model(
            input_ids=source_BS,
            attention_mask=(source_BS != PAD_ID).long(),
            decoder_input_ids=pad([(BOS_ID, *target[:-1]) for target in targets]),
            use_cache=False,
        ).logits
        log_probs_BTV = logits_BTV.log_softmax(dim=-1)
        return [
            [float(log_probs_BTV[place, step, token]) for step, token in enumerate(target)]
            for place, target in enumerate(targets)
        ]


def _until_eos(ids: list[int]) -> Ids:
    return tuple(ids[: ids.index(EOS_ID) + 1] if EOS_ID in ids else ids)


@contextmanager
def _quiet() -> Generator[None]:
    """What the library has to say is for those who call it themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers.utils import logging  # noqa: PLC0415 - an optional library that takes seconds to load

        before, shows_progress = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(before)
            if shows_progress:
                logging.enable_progress_bar()
