"""What is known of one sentence's way through a model: every head's attention, and how it may be read.

docs/explain.md has the schema of ``to_dict``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from headway import __version__
from headway.inspection.axis import Axis
from headway.inspection.look import Look, Measured

FORMAT_VERSION = 1
DIGITS = 5  # of a weight in the JSON record

# kind of attention -> the axis of what looks, the axis of what is looked at
AXES = {"encoder": ("source", "source"), "decoder": ("target_in", "target_in"), "cross": ("target_out", "source")}


@dataclass(frozen=True, slots=True)
class Head:
    """One head, looked at by words and by tokens. Layers and heads count from 1."""

    kind: str
    layer: int
    head: int
    words: Look
    tokens: Look

    @property
    def name(self) -> str:
        """As commands and drawings write it: ``encoder.2.3`` is the third head of the encoder's second layer."""
        return f"{self.kind}.{self.layer}.{self.head}"


@dataclass(frozen=True, slots=True)
class WordLink:
    """A word of the target with the word of the source that it looked at most; places on the axes, and the weight."""

    source: int
    target: int
    weight: float


@dataclass(frozen=True, slots=True)
class AttentionRecord:
    """One source and target, and the attention of every head in the pass that wrote this target.

    ``is_given``: the target was given, not chosen by the search; then ``score`` is None. ``is_cut``: the search
    reached the longest output allowed. ``log_probs`` are those of the tokens of the axis ``target_out``, natural.
    """

    source: str
    target: str
    is_given: bool
    is_cut: bool
    score: float | None
    log_probs: tuple[float, ...]
    axes: Mapping[str, Axis]
    heads: tuple[Head, ...]
    alignment: tuple[WordLink, ...]
    num_unknown: int = 0  # source tokens that the vocabulary could not write

    @property
    def log_prob(self) -> float:
        """The log-probability of the target, EOS counted."""
        return sum(self.log_probs)

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {
            "format": FORMAT_VERSION,
            "headway_version": __version__,
            "source": self.source,
            "target": self.target,
            "is_given": self.is_given,
            "is_cut": self.is_cut,
            "score": self.score,
            "log_prob": self.log_prob,
            "log_probs": list(self.log_probs),
            "num_unknown": self.num_unknown,
            "axes": {name: _axis(axis) for name, axis in self.axes.items()},
            "heads": [_head(head) for head in self.heads],
            "alignment": [[link.source, link.target, round(link.weight, DIGITS)] for link in self.alignment],
        }


def _axis(axis: Axis) -> dict[str, object]:
    return {
        "tokens": list(axis.tokens),
        "token_ids": list(axis.token_ids),
        "words": [
            {"text": word.text, "first": word.first, "end": word.end, "is_control": word.is_control}
            for word in axis.words
        ],
    }


def _head(head: Head) -> dict[str, object]:
    queries, keys = AXES[head.kind]
    return {
        "name": head.name,
        "kind": head.kind,
        "layer": head.layer,
        "head": head.head,
        "queries": queries,
        "keys": keys,
        "words": _look(head.words),
        "tokens": _look(head.tokens),
    }


def _look(look: Look) -> dict[str, object]:
    return {
        "looks_at": look.looks_at,
        "entropy": _measured(look.entropy),
        "distance": _measured(look.distance),
        "shares": {
            name: {
                "value": round(share.value, DIGITS),
                "chance": round(share.chance, DIGITS),
                "deviations": round(share.deviations, DIGITS),
                "queries": share.queries,
            }
            for name, share in look.shares.items()
        },
        "weights": look.weights_TS.round(DIGITS).tolist(),
    }


def _measured(measured: Measured | None) -> dict[str, float] | None:
    if measured is None:
        return None
    return {"value": round(measured.value, DIGITS), "chance": round(measured.chance, DIGITS)}
