"""``headway translate IN OUT`` around a model that copies."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from headway.cli.translate import command
from headway.corpus.document import document_format
from headway.errors import CorpusError
from headway.translate import documents
from headway.translate.marked import MarkedTranslation
from headway.translate.translation import Translation
from headway.translate.translator import Translator

sys.path.insert(0, str(Path(__file__).parents[1] / "translate"))
from translate_copies import copying_translator

PO = 'msgid "the cat"\nmsgstr ""\n\nmsgid "a mat"\nmsgstr "Matte"\n\nmsgid " "\nmsgstr ""\n'


@pytest.fixture(autouse=True)
def _copying_model(monkeypatch):
    monkeypatch.setattr(Translator, "from_folders", lambda paths, device, **_: copying_translator())


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.po").write_text(PO)
    return tmp_path / "a.po"


def run(*arguments, exit_code=0):
    result = CliRunner().invoke(command, ["-m", "model", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == exit_code, result.stderr
    assert result.stdout == ""
    return result.stderr


def targets_of(path: Path):
    segments = document_format(path).read_segments(path, source_language="en", target_language="de")
    return [segment.target for segment in segments]


def test_a_document_is_filled_and_the_counts_are_told_on_standard_error(path):
    out = path.with_name("b.po")
    assert run(path, out) == f"headway: {out}: 1 segment of 3 filled, 1 kept as they were, 1 not to be translated\n"
    assert targets_of(out) == ["the cat", "Matte", ""]
    assert out.read_text() == PO.replace('msgid "the cat"\nmsgstr ""', '#, fuzzy\nmsgid "the cat"\nmsgstr "the cat"')


def test_the_document_itself_may_be_the_output(path):
    run(path, path)
    assert targets_of(path) == ["the cat", "Matte", ""]


def test_overwriting_and_final_translations_may_be_asked_for(path):
    out = path.with_name("b.po")
    assert "2 segments of 3 filled" in run(path, out, "--overwrite", "--as-final", "--beam-size", "2")
    assert targets_of(out) == ["the cat", "a mat", ""]
    assert "fuzzy" not in out.read_text()


def test_problems_are_told_with_their_lines(path, monkeypatch):
    def lossy(translator, sources, **options):
        for _ in sources:
            yield MarkedTranslation("x", Translation("x", is_cut=True), False, ("%s is missing", "<b> is missing"))

    monkeypatch.setattr(documents, "translate_parsed_lines", lossy)
    assert run(path, path.with_name("b.po"), "--overwrite").split("\n")[1:] == [
        f"headway: 2 segments {documents.MARKUP}: line 1, 4",
        "headway:   line 1 (segment 1): %s is missing; <b> is missing",
        "headway:   line 4 (segment 2): %s is missing; <b> is missing",
        f"headway: 2 segments {documents.CUT}: line 1, 4",
        "",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.po"], "a.po is a document, by its suffix .po. Name the file to write too: headway translate a.po OUT.po"),
        (["a.po", "-o", "b.po"], "Name the file to write too"),
        (["a.po", "-"], "Name the file to write too"),
        (["a.po", "b.xlf"], "OUT has the format of a.po; give it the suffix .po, not b.xlf"),
        (["a.po", "b.po.gz"], "give it the suffix .po"),
        (["a.docx", "b.docx"], "a.docx is of a kind that is not read; bring it into XLIFF with a translation tool."),
        (["a.txt", "b.txt"], "a.txt is no document to be filled in place (these are: .po, "),
        (["a.po", "b.po", "--format", "tsv"], "A document has no use for --format; leave it out."),
        (["a.po", "b.po", "--prefix", "x", "--alignment"], "A document has no use for --alignment, --prefix"),
        (["a.po", "b.po", "--n-best", "2", "--score", "c"], "A document has no use for --n-best, --score"),
        (["a.po", "b.po", "--markup", "none", "-o", "c.po"], "A document has no use for --output, --markup"),
        (["a.po", "b.po", "--phrase", "x", "--phrases", "c"], "A document has no use for --phrase, --phrases"),
        (["a.po", "b.po", "-s", "x"], "Give either FILE or --sentence"),
        (["a.txt", "--overwrite"], "--overwrite and --as-final are for documents"),
        (["--as-final"], "--overwrite and --as-final are for documents"),
    ],
)
def test_what_makes_no_sense_is_refused_before_a_model_is_loaded(path, arguments, message, monkeypatch):
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(Translator, "from_folders", None)
    result = CliRunner().invoke(command, ["-m", "model", *arguments])
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert [place.name for place in path.parent.iterdir()] == ["a.po"]


def test_a_damaged_document_leaves_an_earlier_output_as_it_was(path):
    path.write_text(PO + 'msgid "x"\n')
    out = path.with_name("b.po")
    out.write_text("earlier")
    with pytest.raises(CorpusError, match=r"a\.po line 9: found the end of the file after msgid"):
        run(path, out)
    assert out.read_text() == "earlier"
    assert sorted(place.name for place in path.parent.iterdir()) == ["a.po", "b.po"]
