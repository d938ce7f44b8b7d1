"""The compiled engine, as a translator asks it; torch is not needed."""

from collections.abc import Callable, Sequence
from copy import copy
from threading import Lock

import numpy as np

from headway.engine.engine import Engine
from headway.search.cancel import Cancel
from headway.search.hypothesis import Hypothesis, check_hypotheses
from headway.search.phrase import Lexicon, Phrase
from headway.search.settings import SearchSettings
from headway.search.tree_form import TreeForm
from headway.translate.backend import Backend
from headway.translate.compute import UNLIMITED

Ids = Sequence[int]


class NativeBackend:
    """A ``Backend`` over the engine, with another for what its search lacks.

    ``reserve`` loads that other when it is first needed and is told for what, or raises a HeadwayError.
    ``batch_tokens`` is without limit: the engine itself takes waiting sentences as others end, so it wants as many at
    once as there are.
    """

    def __init__(self, engine: Engine, *, reserve: Callable[[str], Backend], leads_to_phrases: bool) -> None:
        self.engine = engine
        self.batch_tokens = UNLIMITED
        self.leads_to_phrases = leads_to_phrases
        self._reserve = _Reserve(reserve)
        self._cancel: Cancel | None = None

    def serving(self, settings: SearchSettings, *, with_phrases: bool) -> Backend:
        """Give this backend, or the other one for what the engine's search lacks."""
        lacking = _lacking(settings, with_phrases=with_phrases)
        if not lacking:
            return self
        other = self._reserve.backend(lacking)
        return other if self._cancel is None else other.cancelled_by(self._cancel)

    def cancelled_by(self, cancel: Cancel) -> "NativeBackend":
        """The same backend, whose calls end with CancelledError once ``cancel`` is set."""
        backend = copy(self)
        backend._cancel = cancel
        return backend

    def search(
        self,
        sources: Sequence[Ids],
        *,
        prefixes: Sequence[Ids],
        limits: Sequence[int],
        settings: SearchSettings,
        phrases: Sequence[Sequence[Phrase]] | None = None,
        lexicon: Lexicon | None = None,
        form: TreeForm | None = None,
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source. Raises ModelError where the model gives no finite probability."""
        other = self.serving(settings, with_phrases=phrases is not None and any(phrases))
        if other is not self:
            return other.search(
                sources,
                prefixes=prefixes,
                limits=limits,
                settings=settings,
                phrases=phrases,
                lexicon=lexicon,
                form=form,
            )
        found = self.engine.search(
            sources, prefixes=prefixes, limits=limits, settings=settings, form=form, cancel=self._cancel
        )
        check_hypotheses(found)
        return found

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The log-probability of each token of each target."""
        return self.engine.score(sources, targets, cancel=self._cancel)

    def attend(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[np.ndarray]:
        """For each pair the attention weights, target tokens by source tokens (both with EOS)."""
        return self.engine.attend(sources, targets, cancel=self._cancel)


class _Reserve:
    """The backend for what the engine lacks, loaded once, when it is first needed."""

    def __init__(self, load: Callable[[str], Backend]) -> None:
        self._load = load
        self._loaded: Backend | None = None
        self._lock = Lock()

    def backend(self, lacking: str) -> Backend:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load(lacking)
            return self._loaded


def _lacking(settings: SearchSettings, *, with_phrases: bool) -> str:
    """What a request asks for that the engine's search has not."""
    if settings.sampling is not None:
        return "sampling"
    if settings.diversity is not None and settings.diversity.groups > 1:
        return "diversity groups"
    return "phrases that outputs must contain" if with_phrases else ""
