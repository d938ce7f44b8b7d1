"""The models that have a name: the two of the paper, and two for small corpora."""

from headway.config.model_config import ModelConfig

# Table 3 of the paper, first row. V is its "about 37,000" (Section 5.1), all else a default of the schema.
BASE = ModelConfig()

# Table 3, last row. The paper prints 213 million parameters for it; see model/size.py, BIG_ERRATUM.
BIG = ModelConfig(d_model=1024, d_ff=4096, num_heads=16, dropout=0.3)

# For a corpus of some 30,000 short sentences such as Multi30k: the size of Wu et al., ACL 2021.
TINY = ModelConfig(
    vocab_size=10_000,
    d_model=128,
    d_ff=256,
    num_heads=4,
    num_encoder_layers=4,
    num_decoder_layers=4,
    dropout=0.3,
)

# For a corpus of some 30,000 short pairs that is trained on for long: TINY with dropout in more places.
SMALL = TINY.model_copy(update={"vocab_size": 8000, "attention_dropout": 0.1, "activation_dropout": 0.1})

PRESETS = {"base": BASE, "big": BIG, "tiny": TINY, "small": SMALL}
AUTO = "auto"  # no model: chosen from a corpus (config/auto.py)

# What a preset decides about; of the rest, such as positions and norms, it says nothing.
SIZES = (
    *("vocab_size", "d_model", "d_ff", "num_heads", "d_k", "d_v", "num_encoder_layers", "num_decoder_layers"),
    *("dropout", "attention_dropout", "activation_dropout"),
)
