import re
from pathlib import Path
from typing import Any

import pytest

from headway.config.schema import RunConfig
from headway.data.named_files import check_files, check_settings
from headway.errors import CorpusError, DataError

FILES = {"train_source": "a.en", "train_target": "a.de"}
NAMED = {"validation_source": "valid.tsv"}


def _config(*corpora: dict[str, Any], **sections: dict[str, Any]) -> RunConfig:
    return RunConfig.model_validate(sections | {"data": {"corpora": list(corpora)} | sections.get("data", {})})


@pytest.mark.parametrize(
    ("corpora", "sections", "message"),
    [
        ([], {}, r"data\.train_source must name a file; it is empty"),
        (
            [],
            {"data": FILES | {"test_target": "x.de"}},
            r"data\.test_source must name .*test_target is 'x\.de'",
        ),
        (
            [],
            {"data": FILES, "model": {"source_vocab_size": 31, "embedding_sharing": "target"}},
            r"source_vocab_size is 31, but text\.sha",
        ),
        (
            [{"source": "a.tsv", "tag": "home"}],
            {"data": NAMED},
            r"data\.validation_tag is '' with data\.validation_source 'valid\.tsv'; the training corpora have the tags "
            r"'home'\. Set",
        ),
        ([{"source": "a.tsv"}], {"data": {"test_tag": "home"}}, r"data\.test_tag is 'home' with data\.test_source ''"),
        (
            [{"source": "-", "format": "tsv"}, {"source": "-", "format": "tsv"}],
            {},
            r"2 files are standard input \(-\); wanted one at most",
        ),
        (
            [],
            {
                "data": FILES | {"format": "trees"},
                "text": {"shared_vocabulary": False},
                "model": {"embedding_sharing": "target"},
            },
            r"data\.format is trees, and train text has two files \(a\.en, a\.de\); wanted one",
        ),
        (
            [{"source": "a.txt", "format": "text"}],
            {},
            r"a\.txt: found format text; a run whose .* is transformer.* wants none of the formats",
        ),
        (
            [{"source": "a.tsv", "format": "tsv"}],
            {"model": {"architecture": "decoder_only"}, "train": {"best_by": "loss"}},
            r"a\.tsv: found format tsv; a run whose model\.architecture is decoder_only.* wants format text and no tag",
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_told(
    corpora: list[dict[str, Any]], sections: dict[str, dict[str, Any]], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        check_settings(_config(*corpora, **sections))


def test_settings_that_fit_together_pass() -> None:
    check_settings(_config(data=FILES))
    check_settings(_config({"source": "a.tsv"}, {"source": "-", "format": "tsv", "tag": "home"}, data=NAMED))


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("place", ["data", "data.corpora"])
def test_a_language_that_is_no_code_is_refused_with_the_code_that_was_meant(side: str, place: str) -> None:
    wrong = {f"{side}_language": "german"}
    config = _config(data=FILES | wrong) if place == "data" else _config({"source": "a.tsv"} | wrong)
    with pytest.raises(CorpusError, match=rf"{place}\.{side}_language: found 'german', .* Did you mean de\?$"):
        check_settings(config)


@pytest.mark.parametrize(
    ("corpora", "data", "missing", "told"),
    [
        ([], {"train_source": "a.en", "train_target": "no.de"}, "no.de", r"training text\. .*data\.train_target=FILE"),
        ([], {"train_source": "a.en", "validation_source": "v"}, "v", r"validation text\. .*data\.validation_source=F"),
        ([], {"train_source": "a.en", "test_source": "t"}, "t", r"test text\. .*data\.test_source=FILE"),
        ([{"source": "a.en"}, {"source": "b.tsv"}], {}, "b.tsv", r"training .*file \(data\.corpora\.1\.source\)\."),
    ],
)
def test_a_file_that_is_not_there_is_told_with_its_key(
    tmp_path: Path, corpora: list[dict[str, Any]], data: dict[str, Any], missing: str, told: str
) -> None:
    (tmp_path / "a.en").write_text("no pair\n", encoding="utf-8")
    config = _config(*corpora, data=data)
    with pytest.raises(CorpusError, match=rf"{tmp_path}/{re.escape(missing)} does not exist; wanted {told}"):
        check_files(config, tmp_path)
    nowhere = tmp_path / "nowhere"
    with pytest.raises(CorpusError, match=rf"does not exist, and neither does the folder {nowhere}; "):
        check_files(config, nowhere)


def test_files_that_are_there_and_standard_input_pass(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("no pair\n", encoding="utf-8")
    check_files(_config(data={"train_source": "a.en", "train_target": "-"}), tmp_path)
