"""Where a model leaves the paper: the parts that came later, in words."""

from headway.config.model_config import ModelConfig

# field of ModelConfig -> what it does; {} is the value. A value that the paper has itself (Table 3) is no departure.
DEPARTURES = {
    "architecture": "{}",
    "positions": "{}",
    "cross_positions": "cross-attention sees by distance in words",
    "norm_placement": "the norm before each sub-layer, and one at the end of each stack",
    "norm": "RMSNorm in the place of LayerNorm",
    "norm_epsilon": "{:g} added to the variance in norms; the paper's code has 1e-06",
    "activation": "feed-forward network with {}",
    "num_kv_heads": "keys and values in {} heads, shared by the heads of queries",
    "attention_score": "attention scores {}",
    "attention_window": "self-attention sees {} tokens to a side",
    "attention_dropout": "dropout {:g} on attention weights",
    "activation_dropout": "dropout {:g} inside the feed-forward network",
    "residual_scaling": "residual connections and initial weights scaled by DeepNorm",
    "embedding_scale": "embeddings not multiplied by the root of d_model",
    "output_bias": "a bias on the logits",
    "recurrent_cell": "{} in the place of LSTM",
    "kernel_size": "convolutions over {} positions; 3 are usual",
    "num_classes": "a classifier of {} classes on the first token",
}
OF_THE_PAPER = {"positions": ("sinusoidal", "learned")}
NAMES = {
    "recurrent": "recurrent layers (LSTM) and additive attention over the source, no self-attention",
    "convolutional": "gated convolutions and attention over the source, no self-attention (ConvS2S)",
    "gru": "GRU",
    "encoder_only": "an encoder alone, which predicts hidden tokens or tells classes",
    "decoder_only": "a decoder alone, without a source: a language model",
    "none": "no positions: order is left to the causal mask",
    "rope": "rotary positions (RoPE)",
    "alibi": "positions by slopes on the scores (ALiBi)",
    "t5": "relative positions in buckets (T5)",
    "words": "waves of which half say a token's place and half which word it is at",
    "gelu": "GELU",
    "silu": "SiLU",
    "swiglu": "SwiGLU, three matrices",
    "unscaled": "not divided by the root of d_k",
    "additive": "by a network with tanh (Bahdanau)",
}


def departures(model: ModelConfig) -> dict[str, str]:
    """Give what departs from the paper: key of ``[model]`` -> what it does, in the schema's order."""
    found: dict[str, str] = {}
    for name, text in DEPARTURES.items():
        value = getattr(model, name)
        standard = ModelConfig.model_fields[name].default
        if name == "num_kv_heads" and value == model.num_heads:
            continue  # the paper's, said aloud
        if value != standard and value not in OF_THE_PAPER.get(name, ()):
            found[name] = text.format(NAMES.get(value, value) if isinstance(value, str) else value)
    return found
