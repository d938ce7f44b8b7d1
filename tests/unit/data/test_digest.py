from pathlib import Path
from typing import Any

import pytest

from headway.config.schema import RunConfig
from headway.corpus.pair import SentencePair
from headway.data.digest import digest_of_files, digest_of_text, settings_of

DATA = {"train_source": "a.en", "train_target": "a.de", "test_source": "t.tsv"}
TREES: dict[str, dict[str, Any]] = {
    "data": {"train_source": "a.trees", "format": "trees"},
    "text": {"shared_vocabulary": False},
    "model": {"embedding_sharing": "target"},
}


def _config(**sections: dict[str, Any]) -> RunConfig:
    return RunConfig.model_validate(sections | {"data": DATA | sections.get("data", {})})


@pytest.mark.parametrize(
    "sections",
    [
        {"data": {"max_tokens": 61}},
        {"data": {"source_language": "en"}},
        {"data": {"sampling_temperature": 2.0}},
        {"clean": {"max_ratio": 3.0}},
        {"text": {"byte_fallback": False}},
        {"model": {"vocab_size": 301}},
        {"train": {"seed": 2}},
        {"model": {"architecture": "decoder_only"}, "train": {"best_by": "loss"}},
    ],
)
def test_settings_that_shape_prepared_data_change_it(sections: dict[str, dict[str, Any]]) -> None:
    assert settings_of(_config(**sections), None) != settings_of(_config(), None)


@pytest.mark.parametrize(
    "sections",
    [
        {"text": {"bpe_dropout": 0.1}},
        {"text": {"word_dropout": 0.1}},
        {"model": {"d_model": 64, "num_heads": 4}},
        {"train": {"max_steps": 7}},
        {"search": {"beam_size": 7}},
        {"evaluate": {"lowercase": True}},
    ],
)
def test_settings_of_training_and_search_do_not(sections: dict[str, dict[str, Any]]) -> None:
    assert settings_of(_config(**sections), None) == settings_of(_config(), None)


@pytest.mark.parametrize(
    ("parsing", "changes"), [({"style": "xx"}, True), ({"max_openings": 3}, False), ({"word_reward": 1.0}, False)]
)
def test_of_a_parser_what_its_symbols_are_counts_and_how_they_are_searched_does_not(
    parsing: dict[str, Any], changes: bool
) -> None:
    plain, other = RunConfig.model_validate(TREES), RunConfig.model_validate(TREES | {"parsing": parsing})
    assert (settings_of(plain, None) != settings_of(other, None)) is changes


@pytest.mark.parametrize("name", ["a.en", "a.de", "t.tsv"])
def test_every_file_is_in_the_digest(tmp_path: Path, name: str) -> None:
    for file in ("a.en", "a.de", "t.tsv"):
        (tmp_path / file).write_bytes(b"text of " + file.encode())
    before = digest_of_files(_config(), tmp_path, settings=b"{}")
    assert digest_of_files(_config(), tmp_path, settings=b"{}") == before
    assert digest_of_files(_config(), tmp_path, settings=b"[]") != before
    (tmp_path / name).write_bytes(b"other text")
    assert digest_of_files(_config(), tmp_path, settings=b"{}") not in ("", before)


def test_what_cannot_be_read_twice_has_no_digest_of_files(tmp_path: Path) -> None:
    assert digest_of_files(_config(), tmp_path, settings=b"{}") == ""
    (tmp_path / "a.en").write_bytes(b"text")
    standard_input = _config(data={"train_target": "-", "test_source": ""})
    assert digest_of_files(standard_input, tmp_path, settings=b"{}") == ""


def test_text_that_was_read_once_is_known_by_what_it_is(tmp_path: Path) -> None:
    cleaned = tmp_path / "cleaned"
    cleaned.write_bytes(b"pairs")
    texts = [SentencePair("a b", "c", 1), SentencePair("d", "e", 2)]
    before = digest_of_text(b"{}", cleaned=cleaned, texts=texts)
    assert digest_of_text(b"{}", cleaned=cleaned, texts=texts) == before
    moved = [SentencePair("a", "b c", 1), texts[1]]  # the same words with another line between the sides
    others = [digest_of_text(b"{}", cleaned=cleaned, texts=other) for other in (moved, texts[::-1], texts[:1])]
    others.append(digest_of_text(b"[]", cleaned=cleaned, texts=texts))
    cleaned.write_bytes(b"other pairs")
    others.append(digest_of_text(b"{}", cleaned=cleaned, texts=texts))
    assert len({before, *others}) == 6
