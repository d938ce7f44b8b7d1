"""paper/table4.py: the printed rows, a parser that is trained, and one that is there, scored as elsewhere."""

import json
import shutil

import pytest

from headway.cli.main import main
from headway.config.schema import ParsingConfig
from headway.errors import HeadwayError, PaperError
from headway.folder.contents import ModelFolder
from headway.paper.events import RowBegun, RowStopped, TableDone
from headway.paper.parser_row import Reading
from headway.paper.table4 import Models, Trainings, make
from headway.paper.trained_row import Budget
from headway.paper.work import WorkFolder
from headway.paper.writing import to_dict, to_json
from headway.train.events import Interrupted, Notice, StepDone
from random_parser import write_parser
from unit.train.test_train_parser import ONE, RECIPE

GOLD = [ONE, "(TOP (NP (DT the) (NN dog)))", "(TOP (S (`` ``) (NP (DT the) (NN dog)) (VP (VBZ sleeps)) (. .)))"]
READING = Reading(beam_size=2)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A treebank of one tree with its recipe, three other trees, and a parser that knows nothing."""
    folder = tmp_path_factory.mktemp("table4")
    (folder / "one.trees").write_text(f"{ONE}\n", encoding="utf-8")
    (folder / "gold.trees").write_text("\n".join([*GOLD, "(TOP (-NONE- *))"]) + "\n", encoding="utf-8")
    (folder / "mine.toml").write_text(RECIPE, encoding="utf-8")
    write_parser(folder / "model", parsing=ParsingConfig(tags="given"))
    return folder


@pytest.fixture(scope="module")
def made(place):
    return list(make(WorkFolder(place / "work"), **wishes(place), command="the command"))


def wishes(place, **more):
    return {
        "trainings": Trainings(place, [str(place / "mine.toml")]),
        "models": Models([place / "model"], place / "gold.trees"),
        "reading": READING,
        **more,
    }


def table_of(events):
    assert isinstance(events[-1], TableDone)
    return events[-1].table


def row_of(table, name):
    (row,) = [row for row in table.rows if row.name == name]
    return {column: cell.measured for column, cell in row.cells.items()}, row.note


def test_every_printed_row_is_there_and_nothing_is_claimed_to_be_measured(tmp_path):
    (done,) = make(WorkFolder(tmp_path))
    rows = [(row.name, row.cells["training"].measured, row.cells["F1"]) for row in done.table.rows]
    assert len(rows) == 12
    assert [cell.published for name, _, cell in rows if name.startswith("Transformer")] == [91.3, 92.7]
    assert sum(cell.published for _, _, cell in rows) == pytest.approx(1097.9)
    assert not any(cell.measured for _, _, cell in rows)
    assert "LDC" in done.table.notes[0]
    assert not list(tmp_path.iterdir())


def test_the_paper_s_parameters_are_counted_with_each_row_s_vocabulary(tmp_path):
    (done,) = make(WorkFolder(tmp_path))
    counts = [row.cells["parameters"].measured for row in done.table.rows if "parameters" in row.cells]
    assert counts[1] - counts[0] == 16_000 * 1024
    # 4 + 4 layers of d 1024 and ff 2048, a source table of 16,000, and two of 512 for the symbols
    attention, feed_forward, norm = 4 * 1024**2, 2 * 1024 * 2048 + 2048 + 1024, 2 * 1024
    layers = 4 * (attention + feed_forward + 2 * norm) + 4 * (2 * attention + feed_forward + 3 * norm)
    assert counts[0] == layers + (16_000 + 512 + 512) * 1024


def test_a_parser_is_trained_measured_and_drawn(made, place):
    cells, note = row_of(table_of(made), "mine")
    assert (cells["F1"], cells["F1 up to 40 words"], cells["sentences"]) == (100.0, 100.0, 1)
    assert (cells["training"], cells["tags"]) == ("1 tree", "given")
    assert "scored on one.trees; 60 steps, seed 1" in note
    assert cells["minutes"] > 0
    assert cells["parameters"] == sum(
        array.size for array in ModelFolder.open(place / "work" / "runs" / "mine").weights().values()
    )
    ((minutes, f1),) = table_of(made).points["table4-curve"]["mine"]
    assert (f1, minutes <= cells["minutes"]) == (100.0, True)
    assert "<svg" in table_of(made).plots["table4-curve.svg"]


def test_a_model_is_measured_as_headway_parse_and_evaluate_measure(made, place, capsys):
    gold, parses = place / "only.trees", str(place / "parses.trees")
    gold.write_text("\n".join(GOLD) + "\n", encoding="utf-8")
    beam = ["--beam-size", "2", "--length-penalty", "0.3", "--precision", "float32"]
    assert main(["parse", "-m", str(place / "model"), "--from-trees", str(gold), "-o", parses, *beam]) == 0
    files = ["--hypothesis", parses, "--reference", str(gold), "--reference-tags", "--json"]
    capsys.readouterr()
    assert main(["evaluate", "--task", "parsing", *files]) == 0
    wanted = json.loads(capsys.readouterr().out)["all"]
    cells, note = row_of(table_of(made), "model")
    assert cells["F1"] == wanted["every_length"]["f1"]
    assert cells["F1 up to 40 words"] == wanted["up_to_cutoff"]["f1"]
    ends = wanted["every_length"]["f1_interval"]
    assert cells["95 % interval"] == f"{ends['low']:.2f} to {ends['high']:.2f}"
    assert cells["sentences"] == len(GOLD)
    assert (cells["training"], cells["minutes"]) == (None, None)  # the folder does not say
    assert note == "scored on gold.trees; trees without words, not scored: 1"


def test_a_second_call_makes_nothing_and_gives_the_same_table(made, place):
    again = list(make(WorkFolder(place / "work"), **wishes(place), command="the command"))
    assert not any(isinstance(event, RowBegun | StepDone) for event in again)
    assert to_dict(table_of(again)) == to_dict(table_of(made))
    assert json.loads(to_json(table_of(again)))["command"] == "the command"


def test_another_beam_treebank_or_model_is_measured_again(place, tmp_path):
    def noticed(trees="gold.trees", beam=1):
        models = Models([place / "model"], place / trees)
        events = make(WorkFolder(tmp_path), models=models, reading=Reading(beam_size=beam))
        return " ".join(event.text for event in events if isinstance(event, Notice))

    assert noticed() == noticed() == ""
    assert noticed(beam=2) == "row model has other settings now, and is worked on again: beam_size was 1, is 2"
    assert "again: trees was" in noticed("one.trees", beam=2)
    path = place / "model" / "config.json"
    path.write_text(path.read_text().replace('"max_extra_tokens": 70', '"max_extra_tokens": 71'), encoding="utf-8")
    assert "again: model was" in noticed("one.trees", beam=2)
    path.write_text(path.read_text().replace('"max_extra_tokens": 71', '"max_extra_tokens": 70'), encoding="utf-8")


def test_the_log_of_a_run_that_was_killed_is_read_without_its_torn_end(made, place, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(place / "work" / "runs" / "mine", folder)
    with (folder / "training" / "metrics.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"event": "validation", "st')
    events = list(make(WorkFolder(tmp_path / "work"), models=Models([folder], place / "one.trees"), reading=READING))
    assert table_of(events).points["table4-curve"]["copy"] == table_of(made).points["table4-curve"]["mine"]


def test_a_word_without_a_tag_is_scored_as_training_reads_it(place, tmp_path):
    (place / "bare.trees").write_text("(TOP (S (NP dog) (VP (VBZ sleeps))))\n", encoding="utf-8")
    events = list(make(WorkFolder(tmp_path), models=Models([place / "model"], place / "bare.trees"), reading=READING))
    assert row_of(table_of(events), "model")[0]["sentences"] == 1


def test_recipes_of_several_corpora_with_tags_are_trained_and_measured(place, tmp_path):
    corpora = '[[data.corpora]]\nsource = "one.trees"\ntag = "{0}"\n'
    recipe = RECIPE.replace('train_source = "one.trees"\n', 'validation_tag = "b"\n').replace(
        "max_steps = 60", "max_steps = 2"
    )
    recipe = recipe.replace("warmup_steps = 13", "warmup_steps = 1")
    (place / "two.toml").write_text(recipe + corpora.format("a") + corpora.format("b"), encoding="utf-8")
    events = list(make(WorkFolder(tmp_path), trainings=Trainings(place, [str(place / "two.toml")]), reading=READING))
    assert row_of(table_of(events), "two")[0]["training"] == "2 trees"


def test_a_stopped_training_goes_on_and_another_recipe_begins_anew(place, tmp_path):
    def trained(**more):
        recipe = Trainings(place, [str(place / "mine.toml")], **more)
        return WorkFolder(tmp_path), recipe

    def told(events):
        return " ".join(event.text for event in events if isinstance(event, Notice))

    work, recipe = trained(budget=Budget(steps=5))
    heard = []
    asked = lambda: any(isinstance(event, StepDone) for event in heard)  # noqa: E731 - of what is heard here
    for event in make(work, trainings=recipe, reading=READING, should_stop=asked):
        heard.append(event)
    assert isinstance(heard[-1], Interrupted)
    events = list(make(work, trainings=recipe, reading=READING))
    assert [event.step for event in events if isinstance(event, StepDone)] == [2, 3, 4, 5]
    _, other = trained(budget=Budget(steps=5), overrides=("train.seed=3",))
    events = list(make(work, trainings=other, reading=READING))
    assert "train.seed was nothing, is 3" in told(events)
    assert [event.step for event in events if isinstance(event, StepDone)] == [1, 2, 3, 4, 5]
    _, fewer = trained(budget=Budget(steps=2), overrides=("train.seed=3",))
    events = list(make(work, trainings=fewer, reading=READING))
    assert "train.max_steps was 5, is 2" in told(events)
    assert [event.step for event in events if isinstance(event, StepDone)] == [1, 2]


def test_other_trees_to_train_on_make_a_row_anew(place, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "one.trees").write_text(f"{ONE}\n", encoding="utf-8")
    recipe = Trainings(data, [str(place / "mine.toml")], Budget(steps=2))
    list(make(WorkFolder(tmp_path / "work"), trainings=recipe, reading=READING))
    (data / "one.trees").write_text(f"{GOLD[2]}\n", encoding="utf-8")
    events = list(make(WorkFolder(tmp_path / "work"), trainings=recipe, reading=READING))
    assert [event.step for event in events if isinstance(event, StepDone)] == [1, 2]


def test_a_stop_while_parsing_gives_the_row_up(place, tmp_path):
    events = list(make(WorkFolder(tmp_path), models=wishes(place)["models"], should_stop=lambda: True))
    assert events[-1] == RowStopped("model")
    assert not (tmp_path / "rows").exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"trainings": ("demo", ())}, "trains no parser"),
        ({"trainings": ("mine.toml", ("data.validation_source=",))}, "names no text to score on"),
        ({"trainings": ("mine.toml", ("data.test_source=none.trees",))}, "none.trees"),
        ({"trees": "none.trees"}, "none.trees"),
        ({"model": "none"}, "none does not exist"),
        ({"trees": "traces.trees"}, "none of the trees in .* has words"),
    ],
)
def test_what_cannot_be_measured_is_refused(place, tmp_path, change, told):
    (place / "traces.trees").write_text("(TOP (-NONE- *))\n", encoding="utf-8")
    given = {"models": Models([place / change.get("model", "model")], place / change.get("trees", "gold.trees"))}
    if "trainings" in change:
        recipe, overrides = change["trainings"]
        name = str(place / recipe) if recipe.endswith(".toml") else recipe
        given = {"trainings": Trainings(place, [name], overrides=overrides)}
    with pytest.raises(HeadwayError, match=told):
        list(make(WorkFolder(tmp_path), reading=READING, **given))


def test_two_rows_of_one_name_are_refused(place, tmp_path):
    recipes = Trainings(place, [str(place / "mine.toml"), str(place / "sub" / ".." / "mine.toml")])
    (place / "sub").mkdir()
    with pytest.raises(PaperError, match="2 rows would be called mine"):
        list(make(WorkFolder(tmp_path), trainings=recipes, reading=READING))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--model", "m"], "give both"),
        (["--trees", "t"], "give both"),
        (["--steps", "3"], "--data DIR asks for"),
        (["--beam-size", "3"], "add --data DIR or --model FOLDER"),
        (["--recipe", "parsing-craft"], "--data DIR asks for"),
        (["--data", "d", "--steps", "3", "--minutes", "2"], "give one of them"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, told, capsys):
    assert main(["paper", "table4", *options]) == 2
    assert told in capsys.readouterr().err


def test_the_command_measures_a_model(place, tmp_path, capsys):
    files = ["-m", str(place / "model"), "--trees", str(place / "gold.trees"), "--beam-size", "2"]
    assert main(["paper", "table4", *files, "--out", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert "scored on gold.trees" in told.out
    assert "row 1 of 1: model" in told.err
    assert (tmp_path / "table4.md").exists()
