"""paper/architectures.py on letters: three architectures trained, measured, drawn, kept and compared."""

import json

import pytest
from paper_runs import run_of

from headway.checkpoint.run_folder import RunFolder
from headway.errors import TrainingError
from headway.metrics.paper_bleu import paper_bleu
from headway.paper import architectures
from headway.paper.architectures import ARCHITECTURES, Race, claim, make
from headway.paper.events import RowBegun, TableDone
from headway.paper.trained_row import Budget
from headway.paper.verdict import Verdict
from headway.paper.work import WorkFolder
from headway.paper.writing import to_dict
from headway.train.events import Interrupted, Notice, StepDone
from headway.translate.translator import Translator
from unit.train.train_letters import write_corpus

FILES = [
    f"data.{part}_{side}={file}.{language}"
    for part, file in (("train", "train"), ("validation", "validation"), ("test", "validation"))
    for side, language in (("source", "en"), ("target", "de"))
]
SMALL = (
    *FILES,
    *("model.vocab_size=23", "text.byte_fallback=false", "model.d_model=32", "train.batch_tokens=100"),
    *("train.threads=1", "train.precision=float32", "train.validate_every=2", "train.checkpoint_every=2"),
    *("train.warmup_steps=2", "search.max_extra_tokens=3", "search.beam_size=2"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("architectures")
    write_corpus(folder / "data")
    return folder


@pytest.fixture(scope="module")
def made(place):
    work = WorkFolder(place / "work")
    return work, list(make(work, Race(place / "data", Budget(steps=4), overrides=SMALL), command="the command"))


def table_of(events):
    assert isinstance(events[-1], TableDone)
    return events[-1].table


def test_each_architecture_has_its_row_beside_the_paper_s_of_its_kind(made):
    rows = table_of(made[1]).rows
    assert [(row.name, row.cells["BLEU"].published) for row in rows] == [
        ("Transformer", 27.3),
        ("convolutional", 25.16),
        ("recurrent", 24.6),
    ]
    assert [row.cells["steps"].measured for row in rows] == [4, 4, 4]
    for row in rows:
        run = RunFolder.open(made[0].run_folder(row.name))
        assert run.config.model.architecture == row.name.lower()


def test_the_drawings_have_every_validation_of_the_run(made):
    work, events = made
    points = table_of(events).points
    for name in (each.name for each in ARCHITECTURES):
        log = (work.run_folder(name) / "training" / "metrics.jsonl").read_text().splitlines()
        wanted = [record for record in map(json.loads, log) if record["event"] == "validation"]
        assert [record["step"] for record in wanted] == [2, 4]
        assert points["table2-minutes"][name] == [(record["seconds"] / 60, record["bleu"]) for record in wanted]
        first, second = points["table2-operations"][name]
        assert 0 < first[0] < second[0]


def test_operations_are_those_of_the_architecture(made):
    points, rows = table_of(made[1]).points["table2-operations"], table_of(made[1]).rows
    assert {row.name: row.cells["operations"].measured for row in rows} == {
        name: line[-1][0] for name, line in points.items()
    }
    assert len({row.cells["operations"].measured for row in rows}) == 3


def test_a_second_call_trains_nothing_and_gives_the_same_table(made, place):
    work, events = made
    race = Race(place / "data", Budget(steps=4), overrides=SMALL)
    again = list(make(work, race, command="the command"))
    assert not any(isinstance(event, RowBegun | StepDone) for event in again)
    assert to_dict(table_of(again)) == to_dict(table_of(events))


def test_more_steps_go_on_where_the_run_stands(place):
    work = WorkFolder(place / "more")
    race = Race(place / "data", Budget(steps=2), overrides=SMALL)
    stop = list(make(work, race, should_stop=lambda: True))
    assert isinstance(stop[-1], Interrupted)
    events = list(make(work, Race(place / "data", Budget(steps=3), overrides=SMALL)))
    begun = {event.name for event in events if isinstance(event, RowBegun)}
    assert begun == {"Transformer", "convolutional", "recurrent"}
    assert [event.step for event in events if isinstance(event, StepDone)] == [2, 3, 1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(
    ("ours", "recurrent", "wanted"),
    [(5, 3, Verdict.HOLDS), (3, 5, Verdict.DOES_NOT_HOLD), (4, 4, Verdict.NOT_SETTLED)],
)
def test_the_claim_compares_the_transformer_with_each_of_the_others(ours, recurrent, wanted):
    found = {"Transformer": run_of(1, ours), "convolutional": run_of(1, 2), "recurrent": run_of(1, recurrent)}
    assert claim(found, Budget(minutes=3)).verdict == wanted
    assert len(claim(found, Budget(minutes=3)).parts) == 2


def test_a_peer_whose_training_fails_is_left_out_aloud_and_settles_nothing(place, monkeypatch):
    real = architectures.train_row

    def failing(config, *arguments, **named):
        if config.model.architecture == "convolutional":
            yield Notice("begun")
            raise TrainingError("the loss is nan")
        return (yield from real(config, *arguments, **named))

    monkeypatch.setattr(architectures, "train_row", failing)
    events = list(make(WorkFolder(place / "failing"), Race(place / "data", Budget(steps=1), overrides=SMALL)))
    assert "row convolutional is left out: the loss is nan" in [e.text for e in events if isinstance(e, Notice)]
    table = table_of(events)
    assert [row.cells["BLEU"].published for row in table.rows] == [27.3, 25.16, 24.6]
    assert [row.name for row in table.rows if "steps" in row.cells] == ["Transformer", "recurrent"]
    parts = {part.what: part.difference is None for part in table.claims[0].parts}
    assert parts == {"Transformer against convolutional, BLEU": True, "Transformer against recurrent, BLEU": False}
    assert table.claims[0].verdict != Verdict.HOLDS


def test_the_table_says_what_was_equal_and_how_rows_were_computed(made):
    table = table_of(made[1])
    assert table.title.endswith("at equal parameters and steps")
    assert table.claims[0].text.endswith("at equal steps")
    assert "computed: Transformer float32, 1 threads; convolutional float32, 1 threads; recurrent float32" in " ".join(
        table.notes
    )
    assert Budget(minutes=2.0).equal == "time"


def test_the_paper_s_bleu_is_that_of_the_translations_and_absent_for_plain_text(place, made):
    run = made[0].run_folder("Transformer")
    sources, references = RunFolder.open(run).prepared.texts("test")
    translations = [each.text for each in Translator.from_folder(run, engine="torch").translate(sources)]
    assert table_of(made[1]).rows[0].cells["BLEU"].measured == paper_bleu(translations, references).value
    plain = Race(place / "data", Budget(steps=1), overrides=(*SMALL, "evaluate.tokenize=13a"))
    rows = table_of(list(make(WorkFolder(place / "plain"), plain))).rows
    assert {row.cells["BLEU"].measured for row in rows} == {None}
    assert {row.cells["sacreBLEU"].measured for row in rows} != {None}
