"""headway average: which steps it takes, what it writes, and what it refuses."""

import numpy as np
import pytest

from headway.checkpoint.keep import save_weights
from headway.checkpoint.run_folder import RECIPE_FILE, TRAINING_FOLDER
from headway.checkpoint.state import Progress, Scores, TrainingState, load_state, save_state
from headway.cli.main import main
from headway.config.load import load_text
from headway.config.toml import to_toml
from headway.data.prepare import prepare
from headway.folder.contents import ModelFolder

RECIPE = """
[data]
source_language = "en"
target_language = "de"
train_source = "a.en"
train_target = "a.de"
[model]
vocab_size = 280
d_model = 14
num_heads = 7
[train]
best_by = "chrf"
average = "AVERAGE"
average_count = 2
"""
CHRF = {5: 31.0, 7: 47.0, 11: 43.0, 13: 37.0}


@pytest.fixture
def run(tmp_path, request):
    """A run that kept steps 5, 7, 11 and 13, whose one array is the number of the step."""
    (tmp_path / "a.en").write_text("".join(f"line {number}\n" for number in range(101)), encoding="utf-8")
    (tmp_path / "a.de").write_text("".join(f"Zeile {number}\n" for number in range(101)), encoding="utf-8")
    config = load_text(RECIPE.replace("AVERAGE", getattr(request, "param", "last")))
    folder = tmp_path / "run" / TRAINING_FOLDER
    prepared = prepare(config, tmp_path, folder / "data")
    (folder / RECIPE_FILE).write_text(to_toml(config), encoding="utf-8")
    progress = Progress(
        step=13,
        epoch=3,
        seconds=17.0,
        precision="float32",
        threads=1,
        data_digest=prepared.report.digest,
        validations=tuple(
            Scores(step=step, loss=2.0, perplexity=7.4, bleu=3.0, chrf=chrf) for step, chrf in CHRF.items()
        ),
        kept_weights=tuple(CHRF),
    )
    for step in CHRF:
        save_weights(folder / "weights", step, weights={"x": np.full((2, 3), step, dtype=np.float32)})
    save_state(folder / "states", TrainingState(progress, {"model/x": np.zeros(3, dtype=np.float32)}))
    return tmp_path / "run"


def averaged(run, *arguments):
    out = run.parent / "out"
    assert main(["average", "-m", str(run), "--out", str(out), *arguments]) == 0
    folder = ModelFolder.open(out)
    (value,) = np.unique(folder.weights()["x"])
    return float(value), folder


def refused(capsys, run, *arguments, out="out"):
    assert main(["average", "-m", str(run), "--out", str(run.parent / out), *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert not (run.parent / "out").exists()
    return error


@pytest.mark.parametrize(
    ("arguments", "mean"),
    [
        (["--last", "1"], 13.0),
        (["--last", "3"], (7 + 11 + 13) / 3),
        (["--best", "2"], (7 + 11) / 2),
        (["--best", "4"], (5 + 7 + 11 + 13) / 4),
        ([], (11 + 13) / 2),
    ],
)
def test_the_mean_is_that_of_the_steps_asked_for(run, arguments, mean):
    assert averaged(run, *arguments)[0] == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize("run", ["best"], indirect=True)
def test_without_a_choice_the_recipe_s_is_taken(run):
    assert averaged(run)[0] == 9.0  # steps 7 and 11


@pytest.mark.parametrize("run", ["best"], indirect=True)
def test_steps_that_were_kept_and_not_validated_are_none_of_the_best(run):
    """As where checkpoints lie between validations: training averages what it has, and so does the command."""
    path = next((run / TRAINING_FOLDER / "states").iterdir())
    state, _ = load_state(path.parent)
    few = [scores for scores in state.progress.validations if scores.step == 11]
    save_state(path.parent, TrainingState(state.progress.model_copy(update={"validations": tuple(few)}), state.tensors))
    assert averaged(run)[0] == 11.0


def test_weights_are_not_averaged_beside_the_vocabulary_of_other_data(run, capsys):
    (run.parent / "a.de").write_text("".join(f"Reihe {number}\n" for number in range(101)), encoding="utf-8")
    prepare(load_text(RECIPE.replace("AVERAGE", "last")), run.parent, run / TRAINING_FOLDER / "data")
    error = refused(capsys, run)
    assert "is not what the run was trained on until step 13, so its vocabulary is another" in error


def test_the_folder_is_complete_and_tells_its_steps(run, capsys):
    _, folder = averaged(run, "--best", "2")
    assert "2 steps: 7, 11" in capsys.readouterr().out
    config = folder.config
    assert (config.source_language, config.target_language, config.training.steps) == ("en", "de", 11)
    assert config.model.vocab_size == folder.target_tokenizer.vocab_size
    assert "Its quality has not been measured" in (folder.path / "README.md").read_text(encoding="utf-8")


def test_more_steps_than_are_kept_are_refused(run, capsys):
    assert "has the weights of 4 steps kept; wanted 5" in refused(capsys, run, "--last", "5")
    assert "has the weights of 4 steps kept and validated; wanted 5" in refused(capsys, run, "--best", "5")


def test_a_run_without_kept_weights_says_when_there_are_some(run, capsys):
    for path in (run / TRAINING_FOLDER / "weights").iterdir():
        path.unlink()
    for arguments in ([], ["--last", "2"], ["--best", "1"]):
        assert "keeps no weights yet" in refused(capsys, run, *arguments)


def test_a_kept_step_whose_file_is_gone_is_not_counted(run, capsys):
    (run / TRAINING_FOLDER / "weights" / "weights-00000013.safetensors").unlink()
    assert "has the weights of 3 steps kept; wanted 4" in refused(capsys, run, "--last", "4")
    assert averaged(run, "--last", "2")[0] == 9.0


def test_two_choices_at_once_and_the_run_s_own_folder_are_refused(run, capsys):
    assert "exclude each other" in refused(capsys, run, "--last", "1", "--best", "1")
    assert "run's own folder" in refused(capsys, run, "--last", "1", out="run")


def test_a_folder_that_is_no_run_is_refused(run, capsys):
    assert "has no training/recipe.toml" in refused(capsys, run.parent)


def test_a_run_without_states_or_with_damaged_data_is_refused(run, capsys):
    for state in (run / TRAINING_FOLDER / "states").iterdir():
        state.unlink()
    assert "holds no training state" in refused(capsys, run)
    (run / TRAINING_FOLDER / "data" / "prepared.json").write_text("{", encoding="utf-8")
    assert "is missing or damaged" in refused(capsys, run)


def test_names_inside_a_run_are_those_that_training_uses():
    module = pytest.importorskip("headway.train.run", reason="needs torch")
    assert (module.TRAINING_FOLDER, module.RECIPE_FILE) == (TRAINING_FOLDER, RECIPE_FILE)
