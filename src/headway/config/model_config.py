"""What a model is: the section ``[model]``."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from headway.config.architecture import ONE_SIDED, UNUSED, check_architecture
from headway.config.positions import read_bits
from headway.config.section import Count, Positive, Probability, Section

Bits = Annotated[str, Field(pattern="^[0-9a-f]*$")]  # of config/positions.py


class ModelConfig(Section):
    """The Transformer of the paper; every axis of its Table 3. Defaults are the base model."""

    architecture: Literal["transformer", "recurrent", "convolutional", "decoder_only", "encoder_only"] = "transformer"
    vocab_size: Count = 37_000  # of the shared vocabulary, or of the target side's
    source_vocab_size: Count | None = None  # only with separate vocabularies
    d_model: Count = 512
    d_ff: Count = 2048
    num_heads: Count = 8
    d_k: Count | None = None  # absent: d_model / num_heads
    d_v: Count | None = None
    num_encoder_layers: Count = 6
    num_decoder_layers: Count = 6
    dropout: Probability = 0.1
    attention_bias: bool = False  # the paper's equations have none in W^Q W^K W^V W^O
    positions: Literal["sinusoidal", "learned", "none", "rope", "alibi", "t5", "words"] = "sinusoidal"
    cross_positions: Literal["none", "words"] = "none"  # of cross-attention
    max_positions: Count = 1024  # rows of the learned table
    embedding_sharing: Literal["all", "target", "none"] = "all"  # target: decoder input and softmax
    # What came after the paper; the defaults are the paper's. Each may be combined with every other but where said.
    norm_placement: Literal["post", "pre"] = "post"
    norm: Literal["layer", "rms"] = "layer"
    norm_epsilon: Positive = 1e-6  # the paper gives none; its code has this
    activation: Literal["relu", "gelu", "silu", "swiglu"] = "relu"
    num_kv_heads: Count | None = None  # heads of keys and values; absent: num_heads
    attention_score: Literal["scaled", "unscaled", "additive"] = "scaled"  # of a query and a key
    attention_window: Count | None = None  # self-attention sees this many tokens to a side; absent: all
    attention_dropout: Probability = 0.0  # on attention weights
    activation_dropout: Probability = 0.0  # inside the feed-forward network
    residual_scaling: Literal["none", "deepnorm"] = "none"  # deepnorm: only with norm_placement post
    embedding_scale: bool = True  # embeddings times sqrt(d_model)
    output_bias: bool = False  # a number a token, added to the logits
    recurrent_cell: Literal["lstm", "gru"] = "lstm"  # only with architecture recurrent
    kernel_size: Count = 3  # positions that a convolution sees; only with architecture convolutional
    num_classes: Count | None = None  # that an encoder alone tells apart; training counts them
    source_word_starts: Bits = ""  # which tokens begin a word, where words are counted; training finds them
    target_word_starts: Bits = ""

    @model_validator(mode="after")
    def _check_unused(self) -> Self:
        check_architecture(self.architecture, self.model_dump(exclude_defaults=True))
        if self.architecture == "recurrent" and self.d_model % 2:
            raise ValueError(
                f"architecture recurrent reads sources from both ends, with half of d_model each, and d_model is "
                f"{self.d_model}; set model.d_model to an even number"
            )
        return self

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        has_heads = "num_heads" not in UNUSED[self.architecture]
        for name, value in (("d_k", self.d_k), ("d_v", self.d_v)):
            if has_heads and value is None and self.d_model % self.num_heads:
                raise ValueError(
                    f"d_model {self.d_model} is not divisible by num_heads {self.num_heads} and {name} is not given; "
                    f"set model.{name}, or choose num_heads from the divisors of {self.d_model}"
                )
        if self.source_vocab_size is not None and self.embedding_sharing == "all":
            raise ValueError(
                "source_vocab_size needs separate embeddings; set model.embedding_sharing to target or none"
            )
        return self

    @model_validator(mode="after")
    def _check_architecture(self) -> Self:
        if self.architecture in ONE_SIDED and self.source_vocab_size is not None:
            raise ValueError(
                f"architecture {self.architecture} reads one text and source_vocab_size is {self.source_vocab_size}; "
                "take model.source_vocab_size out"
            )
        if self.num_classes is not None and self.architecture != "encoder_only":
            raise ValueError(
                f"num_classes is {self.num_classes} and architecture {self.architecture} tells no classes apart; "
                "take model.num_classes out"
            )
        return self

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if self.num_heads % self.kv_heads:
            raise ValueError(
                f"num_kv_heads {self.kv_heads} does not divide num_heads {self.num_heads}; "
                f"set model.num_kv_heads to a divisor of {self.num_heads}"
            )
        if self.residual_scaling == "deepnorm" and self.norm_placement == "pre":
            raise ValueError(
                "residual_scaling deepnorm is defined for post-norm and norm_placement is pre; "
                "set model.norm_placement to post, or model.residual_scaling to none"
            )
        if self.positions == "rope" and self.key_size % 2:
            raise ValueError(
                f"positions rope turns pairs of numbers and the size of a key is {self.key_size}, which is odd; "
                "set model.d_k to an even number, or choose other positions"
            )
        return self

    @model_validator(mode="after")
    def _check_words(self) -> Self:
        sizes = {"source_word_starts": self.source_vocab_size or self.vocab_size, "target_word_starts": self.vocab_size}
        for name, size in sizes.items():
            starts = getattr(self, name)
            if starts and not self.counts_words:
                raise ValueError(
                    f"{name} is given, and neither positions nor cross_positions are words; take model.{name} out"
                )
            if starts and max(read_bits(starts), default=0) >= size:
                raise ValueError(
                    f"{name} has the token {max(read_bits(starts)):,} and its vocabulary {size:,} tokens; take "
                    f"model.{name} out: training finds them"
                )
        return self

    @property
    def counts_words(self) -> bool:
        """Whether something depends on which word a token is at."""
        return "words" in (self.positions, self.cross_positions)

    @property
    def key_size(self) -> int:
        """d_k, given or d_model / num_heads."""
        return self.d_model // self.num_heads if self.d_k is None else self.d_k

    @property
    def value_size(self) -> int:
        """d_v, given or d_model / num_heads."""
        return self.d_model // self.num_heads if self.d_v is None else self.d_v

    @property
    def kv_heads(self) -> int:
        """num_kv_heads, given or num_heads."""
        return self.num_heads if self.num_kv_heads is None else self.num_kv_heads
