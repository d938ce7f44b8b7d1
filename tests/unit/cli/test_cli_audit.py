"""headway audit: what it prints, its JSON, its page, its exit codes, and what it refuses."""

import io
import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.cli.audit import marks_of
from headway.cli.main import main
from headway.text.comparison import find_marks

MARKS = ["www.a.de", "WwW.b", "a", " ", "{x}", "%s", "<b>", "mailto:x@y.de", "a://b", "$t(x)", "&nbsp;", ":"]
SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
LANGUAGES = ["--source-language", "en", "--target-language", "de"]
HOSTILE = "<script>alert(1)</script>\"'&amp; ]]> <img src=x onerror=alert(1)>"
WORDS = ["river", "garden", "letter", "winter", "morning", "doctor", "bridge"]
FINDING_KEYS = ["kind", "severity", "count", "of", "unit", "share", "title", "cost", "remedy", "detail", "examples"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = [(f"The {one} and the {other}.", f"Das {one} und das {other}.") for one in WORDS for other in WORDS]
    write("a.tsv", pairs)
    return pairs


def write(name, pairs):
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"{source}\t{target}\n" for source, target in pairs)


def audit(*arguments):
    return main(["audit", *map(str, arguments), *LANGUAGES])


def facts(capsys, *arguments):
    capsys.readouterr()
    code = audit(*arguments, "--json")
    return json.loads(capsys.readouterr().out), code


def test_clean_text_is_told_to_be_so(capsys):
    assert audit("a.tsv", "--strict") == 0
    shown = capsys.readouterr().out
    assert "pairs: 49, en to de" in shown
    assert "Nothing fatal, nothing costly." in shown


def test_json_has_stable_keys(capsys):
    found, code = facts(capsys, "a.tsv", "--vocab-size", 280)
    assert code == 0
    assert (found["schema"], found["pairs"], found["fatal"]) == (1, 49, False)
    assert list(found) == [
        "schema", "pairs", "source_language", "target_language", "fatal", "verdict", "findings", "files", "total",
        "sampled_pairs", "vocabulary",
    ]  # fmt: skip
    (file,) = found["files"]
    assert list(file) == ["name", "pairs", "error", "source", "target", "ratio", "stretches", "findings"]
    assert list(file["source"]) == ["characters", "words", "scripts", "languages"]
    assert list(file["source"]["characters"]) == ["mean", "median", "percentile_95", "longest", "longest_line"]
    assert all(list(finding) == FINDING_KEYS for finding in file["findings"] + found["findings"])
    assert found["vocabulary"]["unknown_tokens"] == 0.0


def test_several_files_have_a_row_each_and_a_total(capsys, here):
    write("b.tsv", [("Only this one.", "Nur dies hier."), here[0]])
    found, _ = facts(capsys, "a.tsv", "b.tsv")
    assert (found["pairs"], [file["pairs"] for file in found["files"]]) == (51, [49, 2])
    audit("a.tsv", "b.tsv")
    rows = [line.split() for line in capsys.readouterr().out.split("\n")]
    assert ["total", "51", "source"] in [row[:3] for row in rows]


def test_files_of_one_side_come_in_pairs_beside_files_of_both(capsys, here):
    for place, name in enumerate(("x.en", "x.de")):
        with Path(name).open("w", encoding="utf-8") as file:
            file.writelines(pair[place] + "\n" for pair in here[:5])
    found, code = facts(capsys, "x.en", "x.de", "a.tsv")
    assert code == 0
    assert [(file["name"], file["pairs"]) for file in found["files"]] == [("x.en + x.de", 5), ("a.tsv", 49)]
    assert next(finding for finding in found["findings"] if finding["kind"] == "duplicate")["count"] == 5


@pytest.mark.parametrize("files", [["x.en"], ["x.en", "a.tsv"], ["a.tsv", "x.en"], ["x.en", "x.de", "y.en"]])
def test_a_file_of_one_side_without_the_other_is_refused_by_name(files, capsys):
    assert audit(*files) == 2
    assert f"{files[-1] if files[-1] != 'a.tsv' else 'x.en'} should hold one side" in capsys.readouterr().err


def test_a_table_of_an_office_program_is_refused_with_what_to_do(capsys):
    assert audit("memory.CSV") == 2
    assert "memory.CSV is of a kind that is not read; save the table as tab-sep" in capsys.readouterr().err


def test_strict_ends_with_1_where_anything_is_fatal(capsys, here):
    write("bad.tsv", [(source, "Это русский текст") for source, _ in here])
    assert audit("bad.tsv") == 0
    assert audit("bad.tsv", "--strict") == 1
    assert "fatal: 100 % of the pairs (49): the target is in a script" in capsys.readouterr().out


def test_a_test_set_in_training_is_fatal(capsys, here):
    write("test.tsv", [here[3], ("Never seen before.", "Nie gesehen.")])
    assert audit("a.tsv", "--against", "test.tsv", "--strict") == 1
    shown = capsys.readouterr().out
    assert "fatal: about 50 % of the test pairs (1): the training text holds text of the test set" in shown
    assert "same pair in a.tsv at line 4" in shown


def test_a_file_that_breaks_off_is_told_and_ends_with_2(capsys):
    with Path("a.tsv").open("a", encoding="utf-8") as file:
        file.write("no tab here\n")
    assert audit("a.tsv") == 2
    shown = capsys.readouterr()
    assert "pairs: 49" in shown.out
    assert "fatal: the file could not be read to its end (corpus/tsv: a.tsv line 50: " in shown.out
    assert "ended-early (fatal): the file could not be read to its end" in shown.out
    assert "a.tsv line 50" in shown.out
    assert "a.tsv line 50" in shown.err


def test_a_file_that_breaks_inside_a_line_is_told_without_a_share(capsys):
    Path("broken.tsv").write_text("one\teins\ntwo\t\nzwei\n", encoding="utf-8")
    assert audit("broken.tsv", "--html", "broken.html") == 2
    shown = capsys.readouterr().out
    assert "fatal: the file could not be read to its end (corpus/tsv: broken.tsv line 3: " in shown
    page = Path("broken.html").read_text(encoding="utf-8")
    assert "<p>Training stops with the same error" in page
    for text in (shown, page):
        assert "the target is empty" not in text
        assert "100 % of the pairs (1): the file" not in text
    assert "pairs: 1" in shown


def test_a_missing_file_is_an_error_without_a_report(capsys):
    assert audit("missing.tsv") == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "missing.tsv" in shown.err


def test_the_page_is_well_formed_and_shows_hostile_text_as_text(here):
    write(
        f"{'&'}b.tsv",
        [*here, *[(f"{HOSTILE} \x07\u202e {number}", f"{HOSTILE}\ufeff{number}0") for number in range(3)]],
    )
    assert audit("&b.tsv", "--html", "out.html") == 0
    with Path("out.html").open(encoding="utf-8") as file:
        text = file.read()
    root = ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>"))
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not names & {"script", "img", "iframe", "link", "object"}
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in attributes if name.startswith("on") or name == "src"]
    assert all(element.attrib["href"].startswith("#") for element in root.iter() if "href" in element.attrib)
    shown = "".join(root.itertext())
    assert HOSTILE in shown
    assert "\\x07\\u202e" in shown


def test_terminal_output_holds_no_control_characters(capsys, here):
    write("b.tsv", [*here, ("evil \x1b[31m", "böse \x1b]0;x\x07")])
    audit("b.tsv")
    assert "\x1b" not in capsys.readouterr().out


def test_standard_input_is_audited_without_texts_of_repetitions(capsys, here, monkeypatch):
    lines = "".join(f"{source}\t{target}\n" for source, target in [*here, here[0]])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    found, code = facts(capsys, "-", "--format", "tsv")
    assert (code, found["pairs"]) == (0, 50)
    duplicate = next(finding for finding in found["findings"] if finding["kind"] == "duplicate")
    assert (duplicate["examples"][0]["line"], duplicate["examples"][0]["note"]) == (50, "line 1")


def test_units_of_a_memory_that_lack_a_language_are_told_with_the_languages_there_are(capsys):
    unit = "<tu>{}</tu>"
    texts = {language: f'<tuv xml:lang="{language}"><seg>Hello {{}}</seg></tuv>' for language in ("en", "de", "fr")}
    units = [unit.format("".join(texts[code].format(number) for code in ("en", "de"))) for number in range(7)]
    units += [unit.format("".join(texts[code].format(number) for code in ("en", "fr"))) for number in range(3)]
    with Path("m.tmx").open("w", encoding="utf-8") as file:
        file.write(f'<tmx version="1.4"><header srclang="en"/><body>{"".join(units)}</body></tmx>')
    found, code = facts(capsys, "m.tmx")
    assert (code, found["pairs"]) == (0, 10)
    by_kind = {finding["kind"]: finding for finding in found["findings"]}
    assert by_kind["empty-target"]["count"] == 3
    assert by_kind["other-languages"]["detail"] == "texts by language: en 10, de 7, fr 3"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(MARKS)))
def test_marks_are_those_of_the_text_room(parts):
    text = "".join(parts)
    assert marks_of(text) == [text[mark.start : mark.end] for mark in find_marks(text)]


@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data")
@pytest.mark.parametrize("corpus", ["homeassistant/en-de", "tatoeba/en-de"])
def test_real_text_has_nothing_fatal(corpus, capsys):
    lines = (SHARED / f"{corpus}.train.tsv").read_text(encoding="utf-8").split("\n")[:7001]
    Path("real.tsv").write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8", newline="")
    found, code = facts(capsys, "real.tsv", "--against", SHARED / f"{corpus}.test.tsv")
    assert (code, found["pairs"], found["fatal"]) == (0, 7000, False)
    wrong = {"shifted", "unrelated", "mojibake", "sides-swapped", "source-script", "target-script", "tokenised"}
    assert not wrong & {finding["kind"] for finding in found["findings"]}


def test_one_vocabulary_at_most_is_tried(capsys):
    assert audit("a.tsv", "--vocab-size", 280, "-m", "x") == 2
    assert "wanted one vocabulary" in capsys.readouterr().err


def test_a_language_that_is_none_is_refused(capsys):
    assert main(["audit", "a.tsv", "--source-language", "english", "--target-language", "de"]) == 2
    assert "Did you mean en?" in capsys.readouterr().err
