"""Text to label: an encoder that was fine-tuned on labelled texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch

from headway.errors import MetricError, TranslationError
from headway.folder.contents import ModelFolder
from headway.metrics.accuracy import Accuracy, accuracy
from headway.model.text_encoder import TextEncoder
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer
from headway.translate.backend import load_text_encoder
from headway.translate.compute import Compute
from headway.translate.translator import longest_output, plan_batches

BATCH_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Classified:
    """A text's most probable label, and the probability of each; ``is_cut``: only the beginning was read."""

    label: str
    probabilities: dict[str, float]
    is_cut: bool = False


class TextClassifier:
    """A model that tells texts apart, on its device; it must be in evaluation mode when it is used.

    ``max_positions``: the most tokens that it has positions for, BOS and EOS counted; longer texts are cut and flagged.
    """

    def __init__(
        self,
        model: TextEncoder,
        tokenizer: Tokenizer,
        *,
        labels: Sequence[str],
        device: torch.device,
        max_positions: int | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.labels = tuple(labels)
        self.device = device
        self.max_positions = max_positions

    @classmethod
    def from_folder(cls, path: str | Path, device: str = "auto", *, threads: int | None = None) -> Self:
        """Load a model folder. Raises FolderError, ModelError, TranslationError, MissingExtraError."""
        folder = ModelFolder.open(Path(path))
        model, place = load_text_encoder(folder, compute=Compute(device, "torch", threads=threads))
        labels, classes = folder.config.labels, folder.config.model.num_classes
        if not labels or len(labels) != classes:
            raise TranslationError(
                f"translate/classifier: {path} has a model of {classes or 0} classes and {len(labels)} labels; wanted "
                f"a model that was trained on labelled texts. Train one that begins with it: headway train classify "
                f"--init {path}"
            )
        return cls(
            model,
            folder.source_tokenizer,
            labels=labels,
            device=place,
            max_positions=longest_output(folder.config.model),
        )

    def classify(self, texts: Sequence[str], *, batch_tokens: int = BATCH_TOKENS) -> list[Classified]:
        """The label of each text, in the same order; ``batch_tokens`` changes speed and memory, not results."""
        if isinstance(texts, str):
            raise TranslationError("translate/classifier: found one string; wanted a list of texts: [text].")
        encoded = self.tokenizer.encode_batch(list(texts))
        room = None if self.max_positions is None else self.max_positions - 2  # BOS and EOS
        kept = [ids[:room] for ids in encoded]
        found: dict[int, Classified] = {}
        for batch in plan_batches([len(ids) + 2 for ids in kept], batch_tokens=batch_tokens):
            rows = self._probabilities([[BOS_ID, *kept[place], EOS_ID] for place in batch])
            for place, row in zip(batch, rows, strict=True):
                named = dict(zip(self.labels, row, strict=True))
                best = max(named, key=named.__getitem__)
                found[place] = Classified(best, named, is_cut=len(kept[place]) < len(encoded[place]))
        return [found[place] for place in range(len(texts))]

    @torch.inference_mode()
    def _probabilities(self, rows: Sequence[Sequence[int]]) -> list[list[float]]:
        """Those of the classes, of texts of token ids."""
        longest = max(map(len, rows))
        token_BT = torch.tensor([[*ids, *[PAD_ID] * (longest - len(ids))] for ids in rows], device=self.device)
        return self.model.classes(self.model(token_BT)).float().softmax(dim=-1).tolist()

    def measure(self, texts: Sequence[str], labels: Sequence[str]) -> Accuracy:
        """How many of the texts get their label. Raises MetricError for a label that the model does not know."""
        self.check_labels(labels)
        return accuracy([each.label for each in self.classify(texts)], labels)

    def check_labels(self, labels: Sequence[str]) -> None:
        """Raise MetricError for a label that the model does not know, and so can never give."""
        unknown = sorted({label.strip() for label in labels} - set(self.labels))
        if unknown:
            raise MetricError(
                f"translate/classifier: found the label {unknown[0]!r}, which the model does not know; it knows "
                f"{', '.join(map(repr, self.labels[:10]))}. Mend the labels, or take another model."
            )
