"""The options that say how outputs are found, shared by the commands that translate."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click
from click.core import ParameterSource

from headway.metrics.pairwise import UTILITIES
from headway.search.settings import Diversity, Sampling
from headway.translate.decoding import Decoding
from headway.translate.risk import DEFAULT_SAMPLING, MOST_SAMPLES, Risk

Option = Callable[[Callable[..., None]], Callable[..., None]]

_OPTIONS: dict[str, Option] = {
    "beam_size": click.option(
        "--beam-size", type=click.IntRange(min=1), help="Hypotheses side by side; 1 is greedy. [the model's]"
    ),
    "length_penalty": click.option(
        "--length-penalty", type=click.FloatRange(min=0.0), help="0 is neutral, larger is longer. [the model's]"
    ),
    "no_repeat_ngram": click.option(
        "--no-repeat-ngram",
        type=click.IntRange(min=0),
        help="No run of so many tokens occurs twice; 0: no rule. [the model's]",
    ),
    "split_sentences": click.option(
        "--split-sentences/--whole-lines",
        default=None,
        help="Translate a line of several sentences sentence by sentence, or at once. [the model's]",
    ),
    "diversity_groups": click.option(
        "--diversity-groups", type=click.IntRange(min=1), help="Groups of the beam that avoid each other's tokens."
    ),
    "diversity_strength": click.option(
        "--diversity-strength", type=click.FloatRange(min=0.0), help="What a token of another group costs. [0.5]"
    ),
    "sample": click.option("--sample", is_flag=True, help="Draw outputs at random, by seed, in place of a beam."),
    "temperature": click.option(
        "--temperature", type=click.FloatRange(min=0.0), help="Of sampling: below 1 sharper, 0 greedy. [1]"
    ),
    "top_k": click.option("--top-k", type=click.IntRange(min=1), help="Draw among the so many likeliest tokens."),
    "top_p": click.option(
        "--top-p",
        type=click.FloatRange(min=0.0, max=1.0, min_open=True),
        help="Draw among the fewest tokens whose probability reaches this.",
    ),
    "epsilon": click.option(
        "--epsilon",
        type=click.FloatRange(min=0.0, max=1.0, max_open=True),
        help="Draw among the tokens of at least this probability.",
    ),
    "seed": click.option("--seed", type=click.IntRange(min=0, max=2**64 - 1), help="Of sampling. [1]"),
    "mbr": click.option(
        "--mbr",
        metavar="N",
        type=click.IntRange(min=1, max=MOST_SAMPLES),
        help="Draw N outputs and take the one most like all of them (minimum Bayes risk).",
    ),
    "mbr_utility": click.option(
        "--mbr-utility", type=click.Choice(list(UTILITIES)), help="What likeness is for --mbr. [chrf]"
    ),
}
_OF_SAMPLING = ("temperature", "top_k", "top_p", "epsilon", "seed")
_PLAIN = ("beam_size", "length_penalty", "no_repeat_ngram", "split_sentences")
_OF_BEAMS = ("beam_size", "diversity_groups", "diversity_strength")
_OF_TRANSLATING = ("split_sentences", "mbr", "mbr_utility")


def search_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options as one argument, ``decoding``. Refuses those that would be ignored."""
    return _with_options(command, _OPTIONS)


def generation_options(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a command that goes on from a text: without what is about translating."""
    return _with_options(command, {name: _OPTIONS[name] for name in _OPTIONS if name not in _OF_TRANSLATING})


def _with_options(command: Callable[..., None], options: dict[str, Option]) -> Callable[..., None]:
    """Give a command some of the options; those that it lacks are as if nobody gave them."""

    @functools.wraps(command)
    def collected(**values: object) -> None:
        given = dict.fromkeys(_OPTIONS) | {name: values.pop(name) for name in options}
        command(**values, decoding=_decoding(given))

    decorated: Callable[..., None] = collected
    for option in reversed(options.values()):
        decorated = option(decorated)
    return decorated


def given_search_options() -> list[str]:
    """The options of this page that the user of the command under way gave, as they are written."""
    return [written(name) for name in _OPTIONS if is_given(name)]


def written(name: str) -> str:
    """The option of a parameter of the command under way, spelled at length."""
    spellings = {parameter.name: parameter.opts for parameter in click.get_current_context().command.params}
    return max(spellings[name], key=len)


def is_given(name: str) -> bool:
    """Whether the parameter was on the command line."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _decoding(given: dict[str, Any]) -> Decoding:
    """The settings, once nothing among them would be ignored."""
    is_sampling = bool(given["sample"]) or given["mbr"] is not None
    unused = [written(name) for name in (_OF_BEAMS if is_sampling else _OF_SAMPLING) if is_given(name)]
    if unused and is_sampling:
        raise click.UsageError(
            f"Outputs that are drawn ({', '.join(_drawing())}) have no beam; leave out {', '.join(unused)}."
        )
    if unused:
        raise click.UsageError(f"{', '.join(unused)} would have no effect without {' or '.join(_drawing())}.")
    if given["length_penalty"] is not None and given["mbr"] is not None:
        raise click.UsageError("--length-penalty would have no effect with --mbr, whose scores are expected utilities.")
    if given["mbr_utility"] is not None and given["mbr"] is None:
        raise click.UsageError("--mbr-utility would have no effect without --mbr.")
    if given["diversity_strength"] is not None and given["diversity_groups"] is None:
        raise click.UsageError("--diversity-strength would have no effect without --diversity-groups.")
    diversity = _chosen(given, {"groups": "diversity_groups", "strength": "diversity_strength"})
    sampling = _chosen(given, {name: name for name in _OF_SAMPLING})
    risk = _chosen(given, {"samples": "mbr", "utility": "mbr_utility"})
    plain = _chosen(given, {name: name for name in _PLAIN})
    return Decoding(
        **plain,
        diversity=Diversity(**diversity) if diversity else None,
        sampling=_sampling(sampling, with_risk=bool(risk)) if is_sampling else None,
        risk=Risk(**risk) if risk else None,
    )


def _drawing() -> list[str]:
    """The options of this command that draw outputs."""
    known = {parameter.name for parameter in click.get_current_context().command.params}
    return [written(name) for name in ("sample", "mbr") if name in known]


def _sampling(given: dict[str, Any], *, with_risk: bool) -> Sampling:
    """What was given; for minimum Bayes risk on top of its own default, unless a cut was given."""
    has_cut = not given.keys().isdisjoint(("top_k", "top_p", "epsilon"))
    return replace(DEFAULT_SAMPLING if with_risk and not has_cut else Sampling(), **given)


def _chosen(given: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The values that were given, by the names of their fields."""
    return {field: given[name] for field, name in names.items() if given[name] is not None}
