"""Text that goes on: a language model with its tokenizer, and how well it predicts a text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from headway.config.schema import SearchConfig
from headway.errors import MetricError, TranslationError
from headway.folder.contents import ModelFolder
from headway.metrics.perplexity import WordPerplexity, count_words
from headway.text.tokenizer import EOS_ID, UNK_ID, Tokenizer
from headway.translate.backend import load_language_backend
from headway.translate.compute import Compute
from headway.translate.decoding import Decoding
from headway.translate.translator import longest_output, plan_batches

if TYPE_CHECKING:
    from headway.search.hypothesis import Hypothesis
    from headway.translate.backend import Backend

MAX_TOKENS = 100
_LINE_ENDS = str.maketrans("\n\r", "  ")


@dataclass(frozen=True, slots=True)
class Continuation:
    """A text that begins with its prompt. ``log_prob`` (nats) and ``score`` are of all of it, its end counted.

    ``tokens`` are all its tokens. ``is_cut``: it reached the limit of tokens and was not over. ``count``: samples that
    gave it.
    """

    text: str
    score: float
    log_prob: float
    tokens: tuple[str, ...]
    is_cut: bool
    count: int


class Generator:
    """A language model, ready to go on from any prompt.

    ``max_positions``: the most tokens of a text that the model has positions for, its end counted; None is without end.
    """

    def __init__(
        self,
        backend: "Backend",
        tokenizer: Tokenizer,
        *,
        search: SearchConfig | None = None,
        max_positions: int | None = None,
    ) -> None:
        self.backend = backend
        self.tokenizer = tokenizer
        self.search = search or SearchConfig()
        self.max_positions = max_positions

    @classmethod
    def from_folder(cls, path: str | Path, device: str = "auto", *, threads: int | None = None) -> Self:
        """Load a model folder. Raises FolderError, ModelError, TranslationError, MissingExtraError."""
        folder = ModelFolder.open(Path(path))
        return cls(
            load_language_backend(folder, compute=Compute(device, "torch", threads=threads)),
            folder.target_tokenizer,
            search=folder.config.search,
            max_positions=longest_output(folder.config.model),
        )

    def generate(
        self,
        prompts: Sequence[str],
        *,
        decoding: Decoding | None = None,
        max_tokens: int = MAX_TOKENS,
        batch_tokens: int | None = None,
    ) -> list[list[Continuation]]:
        """What follows each prompt ("" is a text from its beginning), ``decoding.n_best`` texts each, the best first.

        ``max_tokens``: the most that are added to a prompt, the end of the text counted. A line end that the model
        writes becomes a space. ``batch_tokens`` changes speed and memory, not results. Raises TranslationError for
        settings that cannot be met, TextError for a lone surrogate.
        """
        if isinstance(prompts, str):
            raise TranslationError("translate/generator: found one string; wanted a list of prompts: [prompt].")
        if any("\n" in prompt for prompt in prompts):
            raise TranslationError("translate/generator: a prompt holds a line end; a text is one line. Give one line.")
        decoding = decoding or Decoding()
        settings = replace(decoding.settings(self.search), reserved=tuple(self.tokenizer.tags.values()))
        prefixes = self.tokenizer.encode_batch(list(prompts))
        limits = [min(len(ids) + max_tokens, self.max_positions or len(ids) + max_tokens) for ids in prefixes]
        budget = (batch_tokens or self.backend.batch_tokens) // max(settings.width, 1)
        found: dict[int, list[Continuation]] = {}
        for batch in plan_batches(limits, batch_tokens=budget):
            results = self.backend.search(
                [()] * len(batch),
                prefixes=[prefixes[place] for place in batch],
                limits=[limits[place] for place in batch],
                settings=settings,
            )
            found |= {place: list(map(self._continuation, best)) for place, best in zip(batch, results, strict=True)}
        return [found[place] for place in range(len(prompts))]

    def measure(self, lines: Sequence[str], *, batch_tokens: int | None = None) -> WordPerplexity:
        """How well the model predicts a text, a line at a time, each from its beginning to its end.

        Raises MetricError for a line that the model has no positions for, or no lines.
        """
        targets = self._targets(lines)
        return WordPerplexity(
            math.fsum(self._costs(targets, batch_tokens)),
            num_words=count_words(lines),
            num_tokens=sum(map(len, targets)),
            num_lines=len(lines),
            num_unknown=sum(ids.count(UNK_ID) for ids in targets),
        )

    def costs(self, lines: Sequence[str], *, batch_tokens: int | None = None) -> list[float]:
        """-log p (nats) of each line with its end; errors as ``measure``."""
        return self._costs(self._targets(lines), batch_tokens)

    def _targets(self, lines: Sequence[str]) -> list[tuple[int, ...]]:
        """The tokens of each line with its end."""
        if not lines:
            raise MetricError("translate/generator: found 0 lines to predict; wanted at least 1. Give another file.")
        targets = [(*ids, EOS_ID) for ids in self.tokenizer.encode_batch(list(lines))]
        lengths = [len(ids) for ids in targets]
        longest = max(lengths)
        if self.max_positions is not None and longest > self.max_positions:
            raise MetricError(
                f"translate/generator: line {lengths.index(longest) + 1:,} has {longest:,} tokens, its end counted; "
                f"the model has {self.max_positions:,} positions. Cut that line, or train with more "
                "(model.max_positions)."
            )
        return targets

    def _costs(self, targets: Sequence[tuple[int, ...]], batch_tokens: int | None) -> list[float]:
        costs = [0.0] * len(targets)
        for batch in plan_batches(list(map(len, targets)), batch_tokens=batch_tokens or self.backend.batch_tokens):
            values = self.backend.score([()] * len(batch), [targets[place] for place in batch])
            for place, log_probs in zip(batch, values, strict=True):
                costs[place] = -sum(log_probs)
        return costs

    def _continuation(self, hypothesis: "Hypothesis") -> Continuation:
        ids = hypothesis.token_ids
        return Continuation(
            self.tokenizer.decode(ids).translate(_LINE_ENDS),
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            tokens=tuple(self.tokenizer.tokens(ids[:-1])),
            is_cut=hypothesis.is_cut,
            count=hypothesis.count,
        )
