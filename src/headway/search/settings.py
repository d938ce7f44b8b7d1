"""How to search. The values here are plain and know no torch, so that commands may hold them."""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.errors import TranslationError
from headway.text.reserved import BOS_ID, EOS_ID, PAD_ID


@dataclass(frozen=True, slots=True)
class Sampling:
    """Draw outputs from the model's distribution in place of searching for the most probable.

    Each cut works on the distribution that the one before it left, in the order of the fields: ``temperature`` (below
    1 sharper, 0 takes the most probable token always), ``top_k`` tokens, the fewest tokens whose probability reaches
    ``top_p``, tokens of at least probability ``epsilon`` (Hewitt et al. 2022). The most probable token always stays.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    epsilon: float | None = None
    seed: int = 1

    @property
    def is_greedy(self) -> bool:
        """Whether only the most probable token can be drawn."""
        return self.temperature == 0.0 or self.top_k == 1


@dataclass(frozen=True, slots=True)
class Diversity:
    """Diverse beam search (Vijayakumar et al. 2016): the beam in ``groups`` of equal size that avoid each other.

    A token costs a group ``strength`` for every hypothesis of the groups before it that chose it at the same step.
    """

    groups: int
    strength: float = 0.5


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """One search, all defaults filled in. A ``beam_size`` of 1 is greedy search.

    ``n_best`` is how many hypotheses are returned: of a beam at most ``beam_size``; with ``sampling``, which takes the
    place of the beam, how many are drawn. ``no_repeat_ngram``: no run of so many tokens occurs twice (0: no rule).
    ``reserved``: ids that no output has, as those of tags.
    """

    beam_size: int = 4
    length_penalty: float = 0.6
    n_best: int = 1
    no_repeat_ngram: int = 0
    sampling: Sampling | None = None
    diversity: Diversity | None = None
    reserved: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """Hypotheses of a sentence that are computed side by side."""
        if self.sampling is None:
            return self.beam_size
        return 1 if self.sampling.is_greedy else self.n_best


def check_settings(settings: SearchSettings) -> None:
    """Refuse settings without a meaning. Raises TranslationError."""
    beam_size, n_best = settings.beam_size, settings.n_best
    if beam_size < 1:
        raise TranslationError(f"search/settings: beam size is {beam_size}; wanted 1 or more. 1 is greedy search.")
    if not 0.0 <= settings.length_penalty < float("inf"):
        raise TranslationError(
            f"search/settings: length penalty is {settings.length_penalty}; wanted a number from 0 up. "
            "0 is neutral, the paper takes 0.6."
        )
    if settings.no_repeat_ngram < 0:
        raise TranslationError(
            f"search/settings: no-repeat n-gram is {settings.no_repeat_ngram}; wanted 1 or more, or 0 for no rule."
        )
    if settings.sampling is not None:
        _check_sampling(settings.sampling, n_best)
    elif not 1 <= n_best <= beam_size:
        raise TranslationError(
            f"search/settings: n-best is {n_best}, beam size is {beam_size}; wanted an n-best from 1 to the beam size. "
            f"Raise the beam size to {max(n_best, 1)}, or ask for fewer."
        )
    if settings.diversity is not None:
        _check_diversity(settings.diversity, settings)


def check_prefixes(prefixes: Sequence[Sequence[int]], limits: Sequence[int], settings: SearchSettings) -> None:
    """Refuse what outputs must begin with where it cannot be text, or fills all that they may have."""
    control = {PAD_ID, BOS_ID, EOS_ID, *settings.reserved}
    for sentence, (limit, prefix) in enumerate(zip(limits, prefixes, strict=True), start=1):
        if limit < len(prefix) + 1:
            raise TranslationError(
                f"search/settings: sentence {sentence}: the output may have {limit} tokens, end of sentence counted; "
                f"its forced prefix has {len(prefix)}. Allow {len(prefix) + 1} or more, or shorten the prefix."
            )
        if not control.isdisjoint(prefix):
            raise TranslationError(
                f"search/settings: sentence {sentence}: the forced prefix holds a control token; wanted text tokens "
                "only. Make the prefix with the tokenizer of the target language."
            )


def _check_sampling(sampling: Sampling, n_best: int) -> None:
    """Refuse what is no distribution."""
    wanted = {
        "samples": (n_best, n_best >= 1, "1 or more"),
        "temperature": (sampling.temperature, 0.0 <= sampling.temperature < float("inf"), "a number from 0 up"),
        "top-k": (sampling.top_k, sampling.top_k is None or sampling.top_k >= 1, "1 token or more"),
        "top-p": (sampling.top_p, sampling.top_p is None or 0.0 < sampling.top_p <= 1.0, "over 0, up to 1"),
        "epsilon": (sampling.epsilon, sampling.epsilon is None or 0.0 <= sampling.epsilon < 1.0, "from 0 to below 1"),
        "seed": (sampling.seed, 0 <= sampling.seed < 2**64, "from 0 to 2^64 - 1"),
    }
    for name, (found, is_right, range_) in wanted.items():
        if not is_right:
            raise TranslationError(f"search/settings: {name} of sampling: found {found}; wanted {range_}.")


def _check_diversity(diversity: Diversity, settings: SearchSettings) -> None:
    """Refuse groups that the beam cannot be divided into."""
    if settings.sampling is not None:
        raise TranslationError(
            "search/settings: diversity groups divide a beam, and sampling has none. Leave one of the two out."
        )
    if diversity.groups < 1 or settings.beam_size % diversity.groups:
        raise TranslationError(
            f"search/settings: {diversity.groups} diversity groups for a beam of {settings.beam_size}; wanted a number "
            "that divides the beam size. Change one of the two."
        )
    if not 0.0 <= diversity.strength < float("inf"):
        raise TranslationError(
            f"search/settings: diversity strength is {diversity.strength}; wanted a number from 0 up. 0.5 is usual."
        )
