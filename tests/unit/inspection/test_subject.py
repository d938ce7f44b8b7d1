"""A model folder is looked into as it is translated with; several are refused by name."""

from pathlib import Path

import pytest
from inspected_models import TEXTS, small_folder

from headway.config.schema import ParsingConfig
from headway.errors import FolderError, InspectionError, TranslationError
from headway.inspection.explanation import explain
from headway.inspection.subject import Subject, the_one_folder
from headway.translate.translator import Translator
from random_parser import write_parser


def test_the_subject_of_a_folder_translates_as_its_translator_in_torch_does(tmp_path):
    small_folder(tmp_path / "model")
    subject = Subject.from_folder(tmp_path / "model", "cpu")
    wanted = Translator.from_folder(tmp_path / "model", "cpu", engine="torch").translate(TEXTS[:3])
    assert subject.translator.translate(TEXTS[:3]) == wanted
    assert [explain(subject, text).target for text in TEXTS[:3]] == [translation.text for translation in wanted]
    assert not subject.model.training
    assert (subject.max_source_tokens, subject.longest_target) == (61, 111)


def test_what_is_no_model_folder_or_device_is_refused(tmp_path):
    with pytest.raises(FolderError, match="does not exist"):
        Subject.from_folder(tmp_path / "none")
    small_folder(tmp_path / "model")
    with pytest.raises(TranslationError, match="device is 'tpu'"):
        Subject.from_folder(tmp_path / "model", "tpu")


def test_a_parser_is_looked_into_only_when_it_reads_words_alone(tmp_path):
    assert Subject.from_folder(write_parser(tmp_path / "words"), "cpu").longest_target > 23
    with pytest.raises(InspectionError, match=r"given is a parser that reads a tag with every word"):
        Subject.from_folder(write_parser(tmp_path / "given", parsing=ParsingConfig(tags="given")))


def test_several_models_are_refused_by_name():
    assert the_one_folder([Path("a")]) == Path("a")
    with pytest.raises(InspectionError, match=r"found 2 model folders \(a, b/c\); wanted one"):
        the_one_folder([Path("a"), Path("b/c")])
