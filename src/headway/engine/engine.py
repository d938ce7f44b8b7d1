"""The compiled CPU engine with a model: token ids in, hypotheses out. torch is not needed.

Shapes: T target positions, S source positions.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from operator import index
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from headway.engine.packed import PackedModel, native_arguments
from headway.engine.shortlist import Shortlist
from headway.errors import EngineError, MissingExtraError
from headway.search.cancel import Cancel, cancelled
from headway.search.hypothesis import Hypothesis
from headway.search.settings import SearchSettings, check_prefixes, check_settings
from headway.search.tree_form import TreeForm, check_form

if TYPE_CHECKING:
    from headway_native import Cancel as NativeCancel
    from headway_native import Session
    from headway_native._native import Form

Ids = Sequence[int]
Result = TypeVar("Result")
MOST_THREADS = 1024
MOST_TOGETHER = 32  # threads that share one sentence's work: a bit for each in one word (native/cpp/team.cpp)
# Hypotheses that a thread works on side by side. Large weights are read once for many of them; weights that stay in the
# cache leave room for the keys and values of some only.
ROWS = 128
CACHED_ROWS = 56
CACHED_BYTES = 8 << 20  # weights that stay in the cache


def is_installed() -> bool:
    """Whether headway-native is there."""
    return find_spec("headway_native") is not None


class Engine:
    """A packed model, ready to compute on ``threads`` threads (absent: one for each core).

    Many sentences are shared out among all threads; few are computed together by ``MOST_TOGETHER`` of them at most.

    ``kernels``: the instructions to compute with, by name; auto takes the best that the processor has. ``shortlist``:
    the tokens that searches are limited to, by source; scoring and attention know the whole vocabulary all the same.
    Calls may come from several threads at once; they share the engine's. A forked process may go on with the engine; it
    makes threads of its own.
    Raises MissingExtraError without headway-native, EngineError for a packed file that does not fit its configuration,
    for kernels that the processor lacks and for threads outside 1 to 1,024.

    Every method raises EngineError for ids that the model has not, and where memory does not suffice; CancelledError
    once another thread has set the ``cancel`` that it was given, also while it waits for threads that others hold.
    """

    def __init__(
        self,
        packed: PackedModel,
        *,
        threads: int | None = None,
        kernels: str = "auto",
        shortlist: Shortlist | None = None,
    ) -> None:
        self.packed = packed
        self._session = _open(packed, min(cores(), MOST_THREADS) if threads is None else threads, kernels, shortlist)
        size = sum(array.nbytes for array in packed.arrays.values())
        self._rows = CACHED_ROWS if size <= CACHED_BYTES else ROWS

    @property
    def kernels(self) -> str:
        """The instructions that are computed with: avx512, avx_vnni, avx2 or portable."""
        return self._session.kernels

    @property
    def threads(self) -> int:
        """The most threads that compute at once."""
        return self._session.threads

    def search(
        self,
        sources: Sequence[Ids],
        *,
        prefixes: Sequence[Ids],
        limits: Sequence[int],
        settings: SearchSettings,
        form: TreeForm | None = None,
        rows: int | None = None,
        cancel: Cancel | None = None,
    ) -> list[list[Hypothesis]]:
        """The ``n_best`` hypotheses of each source by greedy or beam search, best first; fewer where fewer exist.

        Sources end in EOS. ``limits`` count EOS, ``prefixes`` are what outputs must begin with. A sentence's result
        depends neither on the others nor on threads nor on ``rows``, the hypotheses that a thread works on side by side
        (absent: as suits the size of the model). ``form``: outputs are trees over the leaves that it names for each
        sentence. An empty list: the model gave no finite probability.
        Sampling and groups of a beam are not there: EngineError; TranslationError for rules that no output can meet.
        """
        check_settings(settings)
        _check_search(settings)
        check_prefixes(prefixes, limits, settings)
        if form is not None:
            _check_form(form, self.packed)
            check_form(form, limits, settings, has_others=any(len(prefix) for prefix in prefixes))
        found = _computed(
            lambda native: self._session.search(
                [list(ids) for ids in sources],
                prefixes=[list(ids) for ids in prefixes],
                limits=list(limits),
                beam=settings.beam_size,
                n_best=settings.n_best,
                length_penalty=settings.length_penalty,
                no_repeat=settings.no_repeat_ngram,
                never=list(settings.reserved),
                rows=self._rows if rows is None else rows,
                form=None if form is None else _native_form(form),
                cancel=native,
            ),
            {
                "source": sources,
                "prefix": prefixes,
                "limits": [limits],
                "reserved ids": [settings.reserved],
                "settings": [(settings.beam_size, settings.n_best, settings.no_repeat_ngram, rows or 1)],
            },
            cancel,
        )
        return [
            [
                Hypothesis(tuple(ids), log_prob=log_prob, score=score, is_cut=is_cut)
                for ids, log_prob, score, is_cut in own
            ]
            for own in found
        ]

    def score(
        self, sources: Sequence[Ids], targets: Sequence[Ids], *, cancel: Cancel | None = None
    ) -> list[list[float]]:
        """The log-probability (natural) of each token of each target; NaN where the model gives no number."""
        return _computed(
            lambda native: self._session.score(
                [list(ids) for ids in sources], [list(ids) for ids in targets], cancel=native
            ),
            {"source": sources, "target": targets},
            cancel,
        )

    def attend(
        self, sources: Sequence[Ids], targets: Sequence[Ids], *, cancel: Cancel | None = None
    ) -> list[np.ndarray]:
        """For each pair the last layer's attention over the source, the mean over heads: float32 (T, S)."""
        found = _computed(
            lambda native: self._session.attend(
                [list(ids) for ids in sources], [list(ids) for ids in targets], cancel=native
            ),
            {"source": sources, "target": targets},
            cancel,
        )
        return [np.asarray(weights, dtype=np.float32).reshape(target, source) for target, source, weights in found]


def cores() -> int:
    """Processor cores that this process may use; fewer where OMP_NUM_THREADS says so, as schedulers of jobs do."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(found, int(wanted)) if wanted.isdecimal() and int(wanted) else found


def _check_search(settings: SearchSettings) -> None:
    """Refuse what the engine would leave out in silence."""
    if settings.sampling is not None or (settings.diversity is not None and settings.diversity.groups > 1):
        raise EngineError(
            "engine: the search settings have sampling or diversity groups; the engine has greedy and beam search. "
            "Leave them away, or let torch search."
        )


def _check_form(form: TreeForm, packed: PackedModel) -> None:
    """Refuse what is no form of this model's outputs."""
    brackets = form.brackets
    fault = _wrong_number(
        {
            "leaves": form.leaves_B,
            "brackets": [brackets.opening, brackets.closing, brackets.leaves],
            "max_openings": [() if form.max_openings is None else (form.max_openings,)],
        }
    )
    if fault is None and brackets.vocab_size != packed.config.vocab_size:
        fault = f"the form is of {brackets.vocab_size:,} tokens, and the model has {packed.config.vocab_size:,}"
    if fault is not None:
        raise EngineError(f"engine: {fault}. Make the form with the model's tokenizer of outputs.")


def _native_form(form: TreeForm) -> "Form":
    brackets = form.brackets
    tokens = (list(brackets.opening), list(brackets.closing), list(brackets.leaves))
    return *tokens, [list(leaves) for leaves in form.leaves_B], form.max_openings, form.leaf_reward


def _open(packed: PackedModel, threads: int, kernels: str, shortlist: Shortlist | None) -> "Session":
    if not is_installed():
        raise MissingExtraError(
            "engine: headway-native, the compiled engine, is not installed. Run: pip install headway-native"
        )
    from headway_native import Model, Session  # noqa: PLC0415

    try:
        model = Model.load(**native_arguments(packed))
    except (ValueError, TypeError, OverflowError) as error:
        raise EngineError(
            f"engine: {packed.path}: {_line(error)}. Delete the file if it is damaged; it is made again when it is "
            "needed."
        ) from error
    try:
        given = {} if shortlist is None else {"shortlist": shortlist.native()}
        return Session(model, kernels=kernels, threads=threads, **given)
    except (ValueError, TypeError) as error:
        reason = _line(error) if isinstance(error, ValueError) else f"threads are {threads}; wanted 1 to {MOST_THREADS}"
        raise EngineError(
            f"engine: {reason}. Leave it away, and the engine takes what the model and the processor have."
        ) from error


def _computed(
    call: "Callable[[NativeCancel], Result]", given: dict[str, Iterable[object]], cancel: Cancel | None
) -> Result:
    """What the compiled engine gives; what it refuses is an EngineError that says where in ``given`` the fault lies."""
    from headway_native import Cancel as NativeCancel  # noqa: PLC0415 - may be absent
    from headway_native import CancelledError as NativeCancelledError  # noqa: PLC0415 - as above

    native = NativeCancel()
    try:
        with nullcontext() if cancel is None else cancel.heard_by(native.set):
            return call(native)
    except NativeCancelledError as error:
        raise cancelled() from error
    except (TypeError, OverflowError) as error:
        raise EngineError(
            f"engine: {_wrong_number(given) or _line(error)}. Give ids that the model's tokenizer "
            "made, and smaller limits."
        ) from error
    except ValueError as error:
        raise EngineError(
            f"engine: {_line(error)}. Mend what was asked, or use the model that it was meant for."
        ) from error
    except MemoryError as error:
        raise EngineError(
            "engine: memory does not suffice for the sentences under way. Cut the longest ones, lower their limits or "
            "the beam, or ask for fewer rows or threads at once."
        ) from error


def _wrong_number(given: dict[str, Iterable[object]]) -> str | None:
    """Where the first number stands that is no whole one of 32 bits."""
    for name, rows in given.items():
        for place, ids in enumerate(rows, start=1):
            if not isinstance(ids, Iterable):
                return f"{name} {place} is {str(ids)[:40]!r}; wanted a list of token ids"
            for number in cast("Iterable[object]", ids):
                if not _is_whole(number):
                    return f"{name} {place} holds {str(number)[:40]!r}; wanted whole numbers of 32 bits"
    return None


def _is_whole(number: object) -> bool:
    try:
        return -(2**31) <= index(number) < 2**31  # pyright: ignore[reportArgumentType] - that is the question
    except TypeError:
        return False


def _line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0].rstrip(".")
