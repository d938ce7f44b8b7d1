"""The rows of Table 3: what each changes of the base model, and what the paper prints of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.config.model_config import ModelConfig
from headway.errors import PaperError
from headway.model.size import count_parameters

Change = Mapping[str, int | float | str]

# The two sets of assumptions under which parameters are counted (docs/paper.md).
AS_COUNTED: Change = {"vocab_size": 40_960, "attention_bias": True}  # the authors' code: ten of eleven counts come out
AS_WRITTEN: Change = {"vocab_size": 37_000}  # the paper's text
NUM_LAYERS, D_MODEL = 6, 512  # of base
PARTS = 16  # into which d_model has to divide: 512 / 32 heads = 16 numbers, and d_k = 16


@dataclass(frozen=True, slots=True)
class Variant:
    """A row: its changes to the base model of the schema and to training, and the printed numbers.

    Perplexity and BLEU are of newstest2013, parameters in millions.
    """

    name: str
    group: str
    label: str
    perplexity: float
    bleu: float
    model: Change = field(default_factory=dict[str, int | float | str])
    label_smoothing: float = 0.1
    millions: float | None = None
    note: str = ""

    def full_size(self, assumptions: Change) -> ModelConfig:
        """The model as the paper trained it."""
        return ModelConfig.model_validate({**self.model, **assumptions})

    def scaled(self, model: ModelConfig, *, width: int, layers: int) -> ModelConfig:
        """The model made small: d_model, d_ff, d_k and d_v times width / 512, layers times layers / 6.

        The number of heads, dropout and positions stay; what no row changes is that of ``model``. Raises PaperError
        where a size would not be whole.
        """
        if width % (D_MODEL // PARTS) or layers % (NUM_LAYERS // 2):
            raise PaperError(
                f"paper/variants: --width {width} --layers {layers} gives sizes that are not whole; wanted a width "
                f"that {D_MODEL // PARTS} divides (base has {D_MODEL}) and layers that {NUM_LAYERS // 2} divides "
                f"(base has {NUM_LAYERS}). Try --width 128 --layers 3."
            )
        full = self.full_size({})
        sizes: dict[str, int | float | str | None] = {
            "d_model": full.d_model * width // D_MODEL,
            "d_ff": full.d_ff * width // D_MODEL,
            "d_k": full.key_size * width // D_MODEL,
            "d_v": full.value_size * width // D_MODEL,
            "num_encoder_layers": full.num_encoder_layers * layers // NUM_LAYERS,
            "num_decoder_layers": full.num_decoder_layers * layers // NUM_LAYERS,
            "num_heads": full.num_heads,
            "dropout": full.dropout,
            "positions": full.positions,
        }
        return ModelConfig.model_validate({**model.model_dump(), **sizes})


def _heads(number: int) -> Change:
    """The same amount of computation in another number of heads."""
    return {"num_heads": number, "d_k": D_MODEL // number, "d_v": D_MODEL // number}


def _depth(number: int) -> Change:
    return dict.fromkeys(("num_encoder_layers", "num_decoder_layers"), number)


def _width(number: int) -> Change:
    """Another d_model in 8 heads; d_ff stays."""
    return {"d_model": number, "d_k": number // 8, "d_v": number // 8}


BIG: Change = {"d_model": 1024, "d_ff": 4096, "num_heads": 16, "dropout": 0.3}
BIG_NOTE = "213 printed; 218,300,416 by the count that gives the ten others: probably a misprint of 218"

VARIANTS = (
    Variant("base", "", "base", 4.92, 25.8, millions=65),
    Variant("A-1", "A", "h = 1", 5.29, 24.9, _heads(1)),
    Variant("A-4", "A", "h = 4", 5.00, 25.5, _heads(4)),
    Variant("A-16", "A", "h = 16", 4.91, 25.8, _heads(16)),
    Variant("A-32", "A", "h = 32", 5.01, 25.4, _heads(32)),
    Variant("B-16", "B", "d_k = 16", 5.16, 25.1, {"d_k": 16}, millions=58),
    Variant("B-32", "B", "d_k = 32", 5.01, 25.4, {"d_k": 32}, millions=60),
    Variant("C-N2", "C", "N = 2", 6.11, 23.7, _depth(2), millions=36),
    Variant("C-N4", "C", "N = 4", 5.19, 25.3, _depth(4), millions=50),
    Variant("C-N8", "C", "N = 8", 4.88, 25.5, _depth(8), millions=80),
    Variant("C-d256", "C", "d_model = 256", 5.75, 24.5, _width(256), millions=28),
    Variant("C-d1024", "C", "d_model = 1024", 4.66, 26.0, _width(1024), millions=168),
    Variant("C-ff1024", "C", "d_ff = 1024", 5.12, 25.4, {"d_ff": 1024}, millions=53),
    Variant("C-ff4096", "C", "d_ff = 4096", 4.75, 26.2, {"d_ff": 4096}, millions=90),
    Variant("D-drop0", "D", "dropout 0", 5.77, 24.6, {"dropout": 0.0}),
    Variant("D-drop0.2", "D", "dropout 0.2", 4.95, 25.5, {"dropout": 0.2}),
    Variant("D-smooth0", "D", "label smoothing 0", 4.67, 25.3, label_smoothing=0.0),
    Variant("D-smooth0.2", "D", "label smoothing 0.2", 5.47, 25.7, label_smoothing=0.2),
    Variant("E", "E", "learned positions", 4.92, 25.7, {"positions": "learned"}),
    Variant("big", "", "big", 4.33, 26.4, BIG, millions=213, note=BIG_NOTE),
)
BY_NAME = {variant.name: variant for variant in VARIANTS}


def count_full_size(variant: Variant, assumptions: Change) -> int:
    """Parameters of a row at full size."""
    return count_parameters(variant.full_size(assumptions)).total
