"""Runs on text: what each variant changes, one training for all claims, and the weights that are scored."""

import numpy as np
import pytest
from studies import make_study, parts_of, workshop

from headway.checkpoint.run_folder import RunFolder
from headway.errors import HeadwayError
from headway.paper.events import RowKept
from headway.paper.study import Extent
from headway.paper.text_counts import count_text, load_model
from headway.paper.text_run import VARIANTS, counts_of, plan, recipe
from headway.train.events import Interrupted, Notice, Started

BABEL = pytest.importorskip("babel", reason="the corpus is written from CLDR data, the extra [demo]")


def differing(variant):
    base, other = (recipe(Extent(steps=8), name, seed=1).model_dump() for name in ("base", variant))
    return {
        f"{section}.{key}": other[section][key]
        for section, keys in base.items()
        if isinstance(keys, dict)
        for key in keys
        if keys[key] != other[section][key]
    }


def test_each_variant_differs_from_the_base_in_what_it_is_for():
    assert {variant: differing(variant) for variant in VARIANTS} == {
        "base": {},
        "unsmoothed": {"train.label_smoothing": 0.0},
        "unshared": {"model.embedding_sharing": "none"},
        "separate": {"text.shared_vocabulary": False, "model.embedding_sharing": "target"},
    }


def test_a_data_folder_takes_the_recipe_of_multi30k_and_minutes_end_a_run(tmp_path):
    config = recipe(Extent(minutes=3.5, data_dir=tmp_path), "base", seed=4)
    assert config.data.train_source == "train.lc.norm.tok.en"
    assert (config.train.max_minutes, config.train.seed) == (3.5, 4)
    assert (config.train.warmup_steps, config.train.checkpoint_every) == (298 // 4, 298 // 20)  # of 85 steps a minute
    assert recipe(Extent(minutes=3.5, data_dir=tmp_path, threads=1), "base", seed=4).train.threads == 1
    assert recipe(Extent(steps=40, data_dir=tmp_path), "base", seed=4).train.max_steps == 40
    assert recipe(Extent(), "base", seed=1).data.train_source == "train.en"


def test_claims_share_their_runs_and_score_the_mean_and_the_last_weights(tmp_path):
    events, table = make_study("smoothing", tmp_path, steps=3)
    assert [row.name for row in table.rows] == ["smoothing 0.1", "none"]
    assert sum(isinstance(event, Started) for event in events) == 2
    assert {part.claimed for part in parts_of(table).values()} == {"above"}
    events, averaging = make_study("averaging", tmp_path, steps=3)
    assert not any(isinstance(event, Started) for event in events)
    assert [event.name for event in events if isinstance(event, RowKept)] == ["text-base-seed1"]
    measured = [{name: cell.measured for name, cell in made.rows[0].cells.items()} for made in (averaging, table)]
    assert measured[0] == measured[1]
    run = RunFolder.open(tmp_path / "runs" / "text-base-seed1")
    rows = {"text-base-seed1": workshop(tmp_path).work.find(*named(tmp_path, steps=3))[0]}
    assert rows["text-base-seed1"]["steps"] == run.kept_steps()[-5:] == [0, 1, 2, 3][-len(run.usual()) :]
    for weights, steps in (("average", run.usual()), ("last", [3])):
        (kept,) = counts_of(rows, "base", range(1, 2), weights=weights)
        np.testing.assert_array_equal(kept, count_text(run, load_model(run, steps)))


def named(path, **extent):
    (planned,) = plan(workshop(path, **extent), ["base"])
    return planned.name, planned.settings


def test_a_stopped_run_goes_on_and_another_recipe_begins_anew(tmp_path):
    asked = iter([False] * 4)
    events, table = make_study("averaging", tmp_path, steps=3, should_stop=lambda: next(asked, True))
    assert table is None
    assert isinstance(events[-1], Interrupted)
    events, table = make_study("averaging", tmp_path, steps=3)
    assert 0 < next(event for event in events if isinstance(event, Started)).step < 3
    assert table is not None
    (tmp_path / "rows" / "text-base-seed1.json").unlink()
    run = tmp_path / "runs" / "text-base-seed1" / "training" / "recipe.toml"
    run.write_text(run.read_text().replace("d_ff = 32", "d_ff = 31"))
    events, _ = make_study("averaging", tmp_path, steps=3)
    assert any(isinstance(event, Notice) and "it begins anew" in event.text for event in events)


def test_a_data_folder_without_the_files_is_told_by_name(tmp_path):
    with pytest.raises(HeadwayError, match=r"lc\.norm\.tok\.en does not exist"):
        make_study("averaging", tmp_path / "out", data_dir=tmp_path)
