"""What a translator gives back."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Translation:
    """One text's translation. Tokens are readable strings without BOS and EOS; log_prob is natural and counts EOS.

    ``score`` is log_prob / ((5 + length)/6)^length_penalty; with minimum Bayes risk the
    expected utility, from 0 to 100; of a text in pieces the mean of the pieces' scores. ``token_ids``: of ``tokens``.
    ``is_cut``: an output reached the length limit and may be incomplete. ``alignment`` pairs source and target token
    places (from 0), each target token with the source token it attended to most; None when not asked for.
    ``phrases_met``: every phrase asked for stands in the text. ``count``: how many samples gave this output, of a text
    in pieces the fewest of a piece; 1 from a search.
    ``alternatives`` are the second best and on; of a text in pieces the k-th joins the k-th best of each piece.
    """

    text: str
    score: float = 0.0
    log_prob: float = 0.0
    tokens: tuple[str, ...] = ()
    source_tokens: tuple[str, ...] = ()
    is_cut: bool = False
    alignment: tuple[tuple[int, int], ...] | None = None
    alternatives: tuple["Translation", ...] = field(default=())
    num_pieces: int = 0  # that went through the model: 0 for blank text, over 1 for text that was split
    is_long: bool = False  # a line, or a sentence of it, was longer than the model knows, and was split
    phrases_met: bool = True
    count: int = 1
    num_unknown: int = 0  # source tokens that the vocabulary could not write; the model saw UNK in their place
    token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PairScore:
    """How probable the model finds a given target: natural logs, the last one is that of EOS."""

    log_prob: float
    token_log_probs: tuple[float, ...]
    tokens: tuple[str, ...]  # of the target, without EOS

    @property
    def num_tokens(self) -> int:
        """Tokens that were scored, EOS counted."""
        return len(self.token_log_probs)
