"""How outputs are found: the settings of one request; what is left open is the model's own."""

from dataclasses import dataclass, replace

from headway.config.schema import SearchConfig
from headway.search.settings import Diversity, Sampling, SearchSettings
from headway.translate.risk import DEFAULT_SAMPLING, Risk, check_risk


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """A beam search as the model's configuration has it, but for what is given here (None is the model's).

    ``sampling`` draws ``n_best`` outputs in place of the beam; ``diversity`` makes the beam's outputs differ; ``risk``
    draws many outputs and gives the ``n_best`` by expected utility, which is then their score. ``split_sentences``: a
    line of several sentences is translated sentence by sentence.
    """

    beam_size: int | None = None
    length_penalty: float | None = None
    n_best: int | None = None
    no_repeat_ngram: int | None = None
    split_sentences: bool | None = None
    sampling: Sampling | None = None
    diversity: Diversity | None = None
    risk: Risk | None = None

    def settings(self, model: SearchConfig) -> SearchSettings:
        """The search that this asks for, with the model's own values for what is absent.

        Raises TranslationError for a risk that cannot be computed.
        """
        n_best = 1 if self.n_best is None else self.n_best
        sampling = self.sampling
        if self.risk is not None:
            check_risk(self.risk, n_best)
            n_best, sampling = self.risk.samples, sampling or DEFAULT_SAMPLING
        return SearchSettings(
            beam_size=model.beam_size if self.beam_size is None else self.beam_size,
            length_penalty=model.length_penalty if self.length_penalty is None else self.length_penalty,
            n_best=n_best,
            no_repeat_ngram=model.no_repeat_ngram if self.no_repeat_ngram is None else self.no_repeat_ngram,
            sampling=sampling,
            diversity=self.diversity,
        )


def decoding_with(
    decoding: Decoding | None, *, beam_size: int | None, length_penalty: float | None, n_best: int | None
) -> Decoding:
    """The decoding, with those of the three that are given in the place of its own."""
    given = {
        name: value
        for name, value in (("beam_size", beam_size), ("length_penalty", length_penalty), ("n_best", n_best))
        if value is not None
    }
    return replace(decoding or Decoding(), **given)
