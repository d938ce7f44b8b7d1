"""What is counted of a model: its parameters, by component, and its multiply-adds."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class ParameterCounts:
    """Trained numbers, by component; every matrix that is shared is counted once."""

    embedding: int  # of source, target and softmax: 1, 2 or 3 matrices
    positions: int  # the learned tables, one a stack: learned and t5; else 0
    encoder_attention: int
    encoder_feed_forward: int
    encoder_norm: int
    decoder_self_attention: int
    decoder_cross_attention: int
    decoder_feed_forward: int
    decoder_norm: int
    output_bias: int
    classifier: int = 0  # of an encoder that tells classes apart
    encoder_recurrent: int = 0  # from here on: of an architecture that has such layers
    decoder_recurrent: int = 0
    readout: int = 0
    encoder_convolution: int = 0
    decoder_convolution: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return sum(asdict(self).values())

    @property
    def non_embedding(self) -> int:
        """All but the token and position embeddings and the bias of the logits."""
        return self.total - self.embedding - self.positions - self.output_bias

    @property
    def hidden(self) -> int:
        """Those of attention and feed-forward networks, their few biases counted."""
        return self.non_embedding - self.encoder_norm - self.decoder_norm - self.classifier


@dataclass(frozen=True)
class MultiplyAdds:
    """Multiply-adds of a forward pass, for one token of each side. Each is two FLOPs; backward takes twice as many."""

    encoder: int  # a source token: through the encoder
    cross_projection: int  # a source token: its keys and values for all decoder layers, once a sentence
    decoder: int  # a target token: through the decoder
    softmax: int  # a target token: its scores over the vocabulary

    @property
    def source_token(self) -> int:
        """What one source token costs."""
        return self.encoder + self.cross_projection

    @property
    def target_token(self) -> int:
        """What one target token costs; in decoding, one hypothesis of the beam."""
        return self.decoder + self.softmax
