"""A model as something that reads token ids and writes them: ours, and ours read back from another's folder.

Sources end in EOS. Shapes: B sentences, S source positions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headway.config.model_config import ModelConfig
from headway.folder.weights import Array
from headway.interchange.verification import Ids
from headway.model.build import build_transformer, load_weights
from headway.model.predictor import TransformerPredictor
from headway.search.run import search
from headway.search.score import score_pairs
from headway.search.settings import SearchSettings
from headway.text.reserved import PAD_ID


@dataclass(frozen=True, slots=True)
class HeadwayReading:
    """Our model, by our own search."""

    predictor: TransformerPredictor
    name: str = "Headway"

    def encode(self, texts: Sequence[str]) -> list[Ids] | None:
        """Nothing: the tokenizer is not its own."""
        return None

    def greedy(self, sources: Sequence[Ids], longest: int) -> list[Ids]:
        """As ``Reading`` says."""
        source_BS = pad(sources)
        found = search(
            self.predictor,
            source_BS,
            source_BS != PAD_ID,
            settings=SearchSettings(beam_size=1, length_penalty=0.0),
            max_output_length_B=[longest] * len(sources),
        )
        return [tuple(hypotheses[0].token_ids) for hypotheses in found]

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """As ``Reading`` says."""
        source_BS = pad(sources)
        return score_pairs(self.predictor, source_BS, source_BS != PAD_ID, targets)


def read_model(
    model: ModelConfig, weights: Mapping[str, Array], name: str = "Headway", *, dtype: torch.dtype = torch.float32
) -> HeadwayReading:
    """Build our model with these weights, computing in ``dtype``. Raises ModelError where they do not fit."""
    transformer = build_transformer(model)
    load_weights(transformer, weights)
    return HeadwayReading(TransformerPredictor(transformer.to(dtype).eval()), name)


def pad(sentences: Sequence[Ids]) -> Tensor:
    """One tensor (B, S) of all sentences, padded."""
    longest = max(len(ids) for ids in sentences)
    return torch.tensor([[*ids, *[PAD_ID] * (longest - len(ids))] for ids in sentences], dtype=torch.int64)
