"""The settings of a run with ``--preset auto``: chosen from its text when it begins, and its own from then on."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headway.checkpoint.run_folder import RECIPE_FILE
from headway.checkpoint.state import state_files
from headway.config.auto import Choice, CorpusFacts, choosable, choose, chosen_values
from headway.config.load import Draft, load
from headway.config.schema import RunConfig
from headway.data.facts import count_facts
from headway.errors import ConfigError
from headway.folder.contents import TRAINING_FOLDER, check_place


@dataclass(frozen=True, slots=True)
class Chosen:
    """A run's settings, and where they come from: facts and choices, or neither where an earlier run has made them."""

    config: RunConfig
    facts: CorpusFacts | None = None
    choices: tuple[Choice, ...] = ()


def choose_settings(
    draft: Draft,
    data_dir: Path,
    *,
    out_dir: Path,
    fresh: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> Chosen:
    """Fill in what a recipe leaves open, from its training text; what it has stays.

    A run in ``out_dir`` that has begun, and is not to be forgotten, keeps what was chosen whatever the text is now.
    What is never chosen, ``train.max_minutes`` among it, is as the draft has it at each call.
    Each of several processes may make this call: all choose alike. Raises ConfigError for a recipe that is none or
    begins with a model (which has its sizes), DataError and CorpusError as counting and reading do.
    """
    check_place(out_dir)
    given = draft.given()
    architecture = given.get("model.architecture", "transformer")
    if architecture != "transformer":
        raise ConfigError(
            f"train/choice: model.architecture is {architecture}, and sizes are chosen for the encoder-decoder "
            "(transformer) alone. Leave --preset out, and set the sizes of [model] yourself."
        )
    checked = _check(draft)
    if checked.train.init:
        raise ConfigError(
            f"train/choice: the run begins with the model in {checked.train.init}, which has its sizes and its "
            "vocabulary, so there is nothing to choose. Leave --preset out, or --init."
        )
    folder = out_dir / TRAINING_FOLDER
    if not fresh and state_files(folder / "states") and (folder / RECIPE_FILE).exists():
        return Chosen(draft.config(_chosen_before(load(folder / RECIPE_FILE))))
    facts = count_facts(checked, data_dir, on_progress=on_progress)
    choices = choose(facts, given)
    return Chosen(draft.config(chosen_values(choices)), facts, tuple(choices))


def _check(draft: Draft) -> RunConfig:
    """Tell mistakes before the text is read: what is wrong for a corpus of any size.

    Gives the draft with choices for some size. What is wrong for this corpus alone is told when it has been counted.
    """
    tried = choosable(draft.given())
    for values in tried[:-1]:
        with suppress(ConfigError):
            return draft.config(values)
    return draft.config(tried[-1])


def _chosen_before(config: RunConfig) -> dict[str, object]:
    """What a run's recipe has for the keys that may be chosen, by key; those without a value are left out."""
    keys = {key for values in choosable({}) for key in values}
    settings = config.model_dump(include={key.partition(".")[0] for key in keys}, exclude_none=True)
    found = {f"{section}.{key}": value for section, table in settings.items() for key, value in table.items()}
    return {key: value for key, value in found.items() if key in keys}
