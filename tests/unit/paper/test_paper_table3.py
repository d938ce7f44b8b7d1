"""paper/table3.py on letters: rows are trained and measured as Headway measures, kept, resumed and judged."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from paper_runs import run_of

from headway.checkpoint.run_folder import RunFolder, real_model
from headway.data.loader import batches
from headway.errors import HeadwayError, PaperError, TrainingError
from headway.folder.weights import read_weights
from headway.model.size import count_multiply_adds
from headway.paper.events import RowBegun, RowKept, TableDone
from headway.paper.table3 import Scale, Training, _table, make
from headway.paper.table3_claims import compare, conclusions
from headway.paper.trained_row import Budget, Trained, flop, tokens_by_step
from headway.paper.variants import VARIANTS
from headway.paper.verdict import Verdict
from headway.paper.work import WorkFolder
from headway.paper.writing import to_dict
from headway.train.events import Interrupted, Notice, StepDone
from headway.translate.evaluate import evaluate
from headway.translate.translator import Translator
from unit.train.train_letters import write_corpus

RECIPE = """
[data]
source_language = "en"
target_language = "de"
train_source = "train.en"
train_target = "train.de"
validation_source = "validation.en"
validation_target = "validation.de"
[text]
byte_fallback = false
[model]
vocab_size = 23
[train]
batch_tokens = 100
warmup_steps = 5
precision = "float32"
threads = 1
validation_sentences = 2
checkpoint_every = 2
[search]
beam_size = 2
max_extra_tokens = 3
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table3")
    write_corpus(folder / "data")
    (folder / "small.toml").write_text(RECIPE, encoding="utf-8")
    return folder


def training_in(place, **changes):
    given = Training(
        str(place / "small.toml"),
        place / "data",
        scale=Scale(width=32, layers=3),
        budget=Budget(steps=5),
        rows=("base", "E"),
    )
    return replace(given, **changes)


@pytest.fixture(scope="module")
def made(place):
    work = WorkFolder(place / "work")
    return work, list(make(work, training_in(place), command="the command"))


def table_of(events):
    assert isinstance(events[-1], TableDone)
    return events[-1].table


def records(work):
    paths = sorted((work.path / "rows").iterdir())
    return {path.stem: json.loads(path.read_text()) for path in paths}


def test_rows_that_were_trained_have_numbers_and_the_others_the_paper_s_alone(made):
    cells = {(row.group, row.name): row.cells for row in table_of(made[1]).rows}
    assert len(cells) == 20
    trained = [key for key, row in cells.items() if row["PPL"].measured is not None]
    assert trained == [("", "base"), ("E", "learned positions")]
    base = cells["", "base"]
    assert base["steps"].measured == 5
    assert (base["PPL"].published, base["BLEU"].published) == (4.92, 25.8)
    assert base["as counted"].measured == 65_110_016


def test_a_row_is_measured_as_headway_evaluate_measures(made, place):
    work, events = made
    run = RunFolder.open(work.run_folder("base-seed-1"))
    sources, references = run.prepared.texts("validation")
    translator = Translator.from_folder(run.path, engine="torch")
    wanted = evaluate(translator, sources, references, target_language="de")
    base = table_of(events).rows[0].cells
    assert base["PPL"].measured == pytest.approx(wanted.perplexity, rel=1e-5)
    assert base["BLEU"].measured == pytest.approx(wanted.scores.bleu.value, abs=1e-9)
    values = records(work)["base-seed-1"]["values"]
    assert sum(values["num_tokens"]) == wanted.num_tokens
    weights = read_weights(run.path / "model.safetensors")
    assert base["parameters trained"].measured == sum(array.size for array in weights.values())


def test_tokens_are_those_of_the_batches_that_were_read(made):
    run = RunFolder.open(made[0].run_folder("base-seed-1"))
    taken = batches(run.prepared.store("train"), batch_tokens=100, seed=1)
    steps = [next(taken)[1] for _ in range(run.progress.step)]
    wanted = np.array(
        [
            [sum(int((getattr(batch, side) != 0).sum()) for batch in step) for side in ("source_BS", "target_out_BT")]
            for step in steps
        ]
    )
    found = tokens_by_step(run)
    assert np.array_equal(np.diff(found, axis=0), wanted)
    assert found[0].tolist() == [0, 0]
    values = records(made[0])["base-seed-1"]["values"]
    assert [values["source_tokens"], values["target_tokens"]] == found[-1].tolist()


def test_operations_are_counted_for_the_tokens_that_were_read(made):
    run = RunFolder.open(made[0].run_folder("base-seed-1"))
    store = run.prepared.store("train")
    lengths = [round(float(each.mean())) + 1 for each in (store.source_lengths, store.target_lengths)]
    counts = count_multiply_adds(
        real_model(run.config, run.prepared), source_length=lengths[0], target_length=lengths[1]
    )
    assert flop(run, (7, 11)) == 6 * (7 * counts.source_token + 11 * counts.target_token)
    (milestone,) = Trained.read(records(made[0])["base-seed-1"]["values"]).curve
    assert (milestone.step, milestone.flop) == (5, flop(run, tokens_by_step(run)[-1]))


def test_all_rows_read_the_same_files(made):
    work = made[0]
    shared = work.path / "data" / "seed-1" / "prepared.json"
    for name in ("base-seed-1", "E-seed-1"):
        assert shared.samefile(work.run_folder(name) / "training" / "data" / "prepared.json")


def test_a_second_call_trains_nothing_and_gives_the_same_table(made, place):
    work, events = made
    again = list(make(work, training_in(place), command="the command"))
    assert not any(isinstance(event, RowBegun | StepDone) for event in again)
    assert to_dict(table_of(again)) == to_dict(table_of(events))


def test_a_row_stopped_in_its_midst_goes_on_to_the_same_numbers(made, place):
    work, other = made[0], WorkFolder(place / "stopped")
    heard = []

    def should_stop():
        return any(isinstance(event, StepDone) and event.step >= 3 for event in heard)

    for event in make(other, training_in(place, rows=("base",)), should_stop=should_stop):
        heard.append(event)
    assert isinstance(heard[-1], Interrupted)
    assert not (other.path / "rows").exists()
    again = list(make(other, training_in(place, rows=("base",))))
    assert [event.step for event in again if isinstance(event, StepDone)] == [4, 5]
    wanted, found = (each["base-seed-1"]["values"] for each in (records(work), records(other)))
    times = {"minutes": 0, "curve": 0}
    assert {**found, **times} == {**wanted, **times}
    assert [each[0] for each in found["curve"]] == [5]


def test_another_seed_is_added_to_the_rows_there(place, made):
    work = WorkFolder(place / "seeds")
    list(make(work, training_in(place, rows=("base",))))
    events = list(make(work, training_in(place, rows=("base",), seeds=2)))
    assert [event.name for event in events if isinstance(event, RowKept) and event.is_new] == ["base-seed-2"]
    first, second = (records(work)[f"base-seed-{seed}"]["values"] for seed in (1, 2))
    assert first["log_probs"] != second["log_probs"]
    assert first["num_tokens"] == second["num_tokens"]  # the vocabulary is the same
    base = table_of(events).rows[0].cells
    both = [Trained.read(values).perplexity for values in (first, second)]
    assert base["PPL"].measured == pytest.approx((both[0] * both[1]) ** 0.5)


def test_fewer_steps_make_a_row_anew_and_say_so_and_more_go_on(place):
    work = WorkFolder(place / "budgets")
    training = training_in(place, rows=("base",))
    list(make(work, replace(training, budget=Budget(steps=3))))
    more = list(make(work, replace(training, budget=Budget(steps=4))))
    assert [event.step for event in more if isinstance(event, StepDone)] == [4]
    fewer = list(make(work, replace(training, budget=Budget(steps=2))))
    assert [event.step for event in fewer if isinstance(event, StepDone)] == [1, 2]
    (notice,) = [event.text for event in fewer if isinstance(event, Notice) and "worked on again" in event.text]
    assert "train.max_steps was 4, is 2" in notice


def test_other_data_make_a_row_anew(place, tmp_path):
    work = WorkFolder(tmp_path / "work")
    data = write_corpus(tmp_path / "data")
    training = training_in(place, rows=("base",), data_dir=data, budget=Budget(steps=2))
    list(make(work, training))
    (data / "train.en").write_text((data / "train.en").read_text().replace("a", "b"), encoding="utf-8")
    events = list(make(work, training))
    assert [event.step for event in events if isinstance(event, StepDone)] == [1, 2]
    assert any("worked on again: data was" in event.text for event in events if isinstance(event, Notice))


def test_minutes_end_a_row_too(place, tmp_path):
    budget = Budget(minutes=1e-4)
    events = list(make(WorkFolder(tmp_path), training_in(place, rows=("base",), budget=budget)))
    cells = table_of(events).rows[0].cells
    assert 1 <= cells["steps"].measured < 10
    assert cells["minutes"].measured > 0


def test_without_data_every_row_is_counted_and_none_trained(tmp_path):
    (event,) = make(WorkFolder(tmp_path / "absent"))
    table = event.table
    assert [row.cells["as counted"].measured for row in table.rows][-1] == 218_300_416
    (claim,) = table.claims
    assert [part.verdict for part in claim.parts] == [Verdict.HOLDS] * 10 + [Verdict.DOES_NOT_HOLD]  # big: 213 or 218
    assert claim.parts[-1].difference.value == pytest.approx(218.300416 - 213)
    assert set(table.plots) == {"table3-parameters.svg"}
    assert sum(map(len, table.points["table3-parameters"].values())) == 11
    assert not (tmp_path / "absent").exists()


def test_letters_stand_for_their_groups(place):
    with pytest.raises(PaperError, match="there is no row 'F'"):
        list(make(WorkFolder(place / "no"), training_in(place, rows=("A", "F"))))
    from headway.paper.table3 import _names

    assert _names(("B", "base")) == ["base", "B-16", "B-32"]
    assert _names(()) == [variant.name for variant in VARIANTS]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("model.dropout=0.3", "sets model.dropout, which is what the rows differ in"),
        ("train.label_smoothing=0.2", "sets train.label_smoothing"),
        ("data.validation_source=", "names no validation text"),
    ],
)
def test_a_recipe_that_would_be_passed_over_in_silence_is_refused(place, change, message):
    with pytest.raises(PaperError, match=message):
        list(make(WorkFolder(place / "no"), training_in(place, overrides=(change, "data.validation_target="))))


def test_two_processes_cannot_make_the_same_table(place, tmp_path):
    from headway.checkpoint.lock import locked

    with locked(tmp_path / "runs"), pytest.raises(HeadwayError, match=f"another process is training in {tmp_path}"):
        list(make(WorkFolder(tmp_path), training_in(place)))


def test_the_packaged_recipe_fits_all_rows():
    from headway.paper.table3 import _config

    training = Training("table3", Path())
    configs = [_config(training, variant, 2) for variant in VARIANTS]
    assert {config.train.seed for config in configs} == {2}
    assert {config.train.max_minutes for config in configs} == {3.0}
    assert [config.train.label_smoothing for config in configs if config.train.label_smoothing != 0.1] == [0.0, 0.2]
    averaged = {(config.train.average, config.train.average_count) for config in configs}
    assert averaged == {("last", 1)}  # Table 3 is of single checkpoints


def test_a_row_whose_training_fails_is_left_out_aloud_and_the_others_go_on(place, tmp_path, monkeypatch):
    from headway.paper import table3

    real = table3.train_row

    def failing(config, *arguments, **named):
        if config.model.positions == "learned":
            yield Notice("begun")
            raise TrainingError("the loss is nan")
        return (yield from real(config, *arguments, **named))

    monkeypatch.setattr(table3, "train_row", failing)
    rows = ("D-smooth0", "E")
    events = list(make(WorkFolder(tmp_path), training_in(place, rows=rows, budget=Budget(steps=1))))
    assert "row E-seed-1 is left out: the loss is nan" in [each.text for each in events if isinstance(each, Notice)]
    measured = [row.name for row in table_of(events).rows if row.cells["PPL"].measured is not None]
    assert measured == ["label smoothing 0"]


def test_each_trained_row_names_the_command_that_makes_it_alone(made):
    commands = {row.name: row.command for row in table_of(made[1]).rows}
    assert commands["learned positions"] == "the command --rows E"
    given = {"base": {1: run_of(1.6, 4)}}
    table = _table(given, training_in(Path()), "headway paper table3 --rows base --rows=E --width 32")
    assert table.rows[0].command == "headway paper table3 --width 32 --rows base"
    assert commands["big"] == "the command"


# Verdicts


def test_only_runs_of_the_same_seed_are_compared():
    runs = {seed: run_of(1.6, 4, seed=seed) for seed in (1, 2)}
    worse = {2: run_of(1.9, 3, seed=2)}
    (first, *_) = conclusions({"base": runs, "A-1": worse}, by_steps=True)
    assert first.parts[0].difference.over == "53 sentences"
    assert first.parts[0].difference.value == pytest.approx(0.3)


def seeds_of(nats, hits, *, epochs=19.0):
    """A row of three seeds."""
    return {seed: run_of(nats, hits, seed=seed, epochs=epochs) for seed in (1, 2, 3)}


def rows_with(**changes):
    """All rows as the paper has them: better or worse than base as it prints."""
    base = {variant.name: seeds_of(1.6, 4) for variant in VARIANTS}
    worse = ("A-1", "A-32", "B-16", "B-32", "C-d256", "C-ff1024", "D-drop0", "C-N4")
    better = ("C-d1024", "C-ff4096")
    found = {**base, **{name: seeds_of(1.9, 3) for name in worse}, **{name: seeds_of(1.3, 5) for name in better}}
    return {**found, "C-N2": seeds_of(2.5, 2), "C-N8": seeds_of(1.5, 3), **changes}


def verdicts_of(rows, *, by_steps=True):
    return {claim.name: claim.verdict for claim in conclusions(rows, by_steps=by_steps)}


def test_the_five_conclusions_hold_where_rows_are_as_the_text_says():
    claims = conclusions(rows_with(), by_steps=True)
    assert [claim.name for claim in claims] == list("ABCDE")
    assert [claim.verdict for claim in claims] == [Verdict.HOLDS] * 5


@pytest.mark.parametrize(
    ("name", "run", "letter"),
    [
        ("A-32", seeds_of(1.3, 5), "A"),
        ("B-32", seeds_of(1.3, 5), "B"),
        ("C-N8", seeds_of(1.9, 3), "C"),
        ("D-drop0", seeds_of(1.3, 5), "D"),
        ("E", seeds_of(1.9, 3), "E"),
    ],
)
def test_a_conclusion_does_not_hold_where_one_row_is_against_it(name, run, letter):
    verdicts = verdicts_of(rows_with(**{name: run}))
    assert [key for key, verdict in verdicts.items() if verdict != Verdict.HOLDS] == [letter]
    assert verdicts[letter] == Verdict.DOES_NOT_HOLD


def test_rows_that_are_alike_or_absent_settle_nothing():
    alike = {variant.name: seeds_of(1.6, 4) for variant in VARIANTS}
    verdicts = list(verdicts_of(alike).values())
    assert verdicts[:4] == [Verdict.NOT_SETTLED] * 4
    assert verdicts[4] == Verdict.HOLDS  # E claims just that
    assert set(verdicts_of({"base": seeds_of(1.6, 4)}).values()) == {Verdict.NOT_SETTLED}


def test_rows_made_otherwise_than_the_paper_s_settle_nothing_whatever_they_show():
    """Larger rows take fewer steps in equal time; a few epochs overfit nothing; two trainings differ by chance."""
    rows = rows_with(**{"C-N2": seeds_of(1.0, 5), "D-drop0": seeds_of(1.3, 5)})
    assert verdicts_of(rows)["C"] == Verdict.DOES_NOT_HOLD
    assert verdicts_of(rows, by_steps=False)["C"] == Verdict.NOT_SETTLED
    assert verdicts_of(rows)["D"] == Verdict.DOES_NOT_HOLD
    few = rows_with(**{"D-drop0": seeds_of(1.3, 5, epochs=3.0)})
    assert verdicts_of(few)["D"] == Verdict.NOT_SETTLED
    one_seed = {name: {1: runs[1]} for name, runs in rows_with().items()}
    assert [name for name, verdict in verdicts_of(one_seed).items() if verdict != Verdict.HOLDS] == ["E"]
    (part, _) = next(claim for claim in conclusions(few, by_steps=True) if claim.name == "D").parts
    assert "(3.0 epochs, too few to overfit)" in part.what
    assert part.difference.value < 0


def test_nothing_is_claimed_of_bleu_where_the_paper_s_own_goes_the_other_way():
    """N = 8 has the better perplexity and the worse BLEU there."""
    claims = {claim.name: claim for claim in conclusions(rows_with(), by_steps=True)}
    of_layers = [part.what for part in claims["C"].parts if part.what.startswith("N = 8")]
    assert of_layers == ["N = 8 against base, nats a token"]
    assert sum(len(claim.parts) for claim in claims.values()) == 2 * 13 - 1


def test_from_three_seeds_on_the_interval_is_over_seeds():
    runs = [run_of(1.6 + 0.1 * seed, 4, seed=seed) for seed in range(3)]
    others = [run_of(1.5 + 0.1 * seed, 4, seed=seed) for seed in range(3)]
    assert [each.over for each in compare(runs, others)] == ["3 seeds"] * 2
    assert [each.over for each in compare(runs[:2], others[:2])] == ["53 sentences, 2 seeds"] * 2
    assert compare(runs, others)[0].value == pytest.approx(0.1)
