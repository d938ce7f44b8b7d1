"""The JSON record: plain values, small rounding, and every key on the page that documents it."""

import json
from pathlib import Path

import pytest
from inspected_models import small_subject

from headway.inspection.explanation import explain
from headway.inspection.head_effect import measure_effects
from headway.inspection.record import DIGITS

PAGE = (Path(__file__).parents[3] / "docs" / "explain.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def record():
    return explain(small_subject(), "the cat sat on 7 mats", target="auf 7 matten")


def keys_of(value):
    """Every key at any depth; of a list those of its first part."""
    if isinstance(value, list):
        return {key for part in value[:1] for key in keys_of(part)}
    if not isinstance(value, dict):
        return set()
    return {key for name, part in value.items() for key in ({name} | keys_of(part))}


def test_every_key_of_the_record_is_documented(record):
    keys = keys_of(record.to_dict())
    assert {"weights", "looks_at", "is_control", "deviations"} <= keys
    missing = [key for key in keys if f"`{key}`" not in PAGE and f".{key}`" not in PAGE]
    assert missing == []


def test_the_record_is_json_that_other_programs_read_and_rounds_by_no_more_than_it_says(record):
    values = json.loads(json.dumps(record.to_dict(), allow_nan=False))
    assert values == record.to_dict()
    for head, plain in zip(record.heads, values["heads"], strict=True):
        assert plain["name"] == head.name == f"{plain['kind']}.{plain['layer']}.{plain['head']}"
        for look, level in ((head.words, plain["words"]), (head.tokens, plain["tokens"])):
            for row, wanted in zip(level["weights"], look.weights_TS.tolist(), strict=True):
                assert row == pytest.approx(wanted, abs=0.51 * 10**-DIGITS)
            assert level["looks_at"] == look.looks_at
            assert set(level["shares"]) == set(look.shares)


def test_the_log_probability_is_the_sum_of_the_tokens_own(record):
    assert record.log_prob == pytest.approx(sum(record.to_dict()["log_probs"]))
    assert len(record.log_probs) == len(record.axes["target_out"].tokens)


def test_effects_are_json_too():
    found = measure_effects(small_subject(), ["the cat"], ["ein kater"])
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert values["heads"][0]["change"] == {"value": found.heads[0].change.value, "low": None, "high": None}
