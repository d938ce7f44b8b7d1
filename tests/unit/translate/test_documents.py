"""Documents through a translator that copies: what is open is filled, the rest is counted and stays."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.corpus.document import document_format
from headway.errors import CorpusError
from headway.text.bpe import learn_bpe
from headway.translate import documents
from headway.translate.documents import DocumentReport, Problem, translate_document
from headway.translate.lines import translate_lines
from headway.translate.marked import MarkedTranslation
from headway.translate.torch_backend import TorchBackend
from headway.translate.translation import Translation
from headway.translate.translator import Translator

sys.path.insert(0, str(Path(__file__).parent))
from translate_copies import CopyPredictor, copying_translator, diagonal

PO = r"""#: a.c:1
#, c-format
msgid "the cat sat on %s"
msgstr ""

msgid ""
"\n"
"a small house\n"
"  on the hill.\n"
msgstr ""

msgid "the mat"
msgstr "die Matte"

msgid " "
msgstr ""
"""
XLIFF = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="de-DE" original="a" datatype="x"><body>
<trans-unit id="1"><source>the <g id="1">cat</g> sat &amp; <x id="2"/>on</source></trans-unit>
<trans-unit id="2"><source>the mat</source><target>die Matte</target></trans-unit>
<trans-unit id="3" translate="no"><source>three</source></trans-unit>
<trans-unit id="4"><source><x id="1"/></source></trans-unit>
<trans-unit id="5"><source><![CDATA[<b>how</b> & where]]></source></trans-unit>
</body></file></xliff>
"""


@pytest.fixture(scope="module")
def translator():
    return copying_translator()


def put(folder: Path, text: str, name: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder / name


def targets_of(path: Path):
    segments = document_format(path).read_segments(path, source_language="en", target_language="de")
    return [segment.target for segment in segments]


def counts(report: DocumentReport):
    return report.num_filled, report.num_kept, report.num_left


def test_open_entries_of_a_po_file_are_filled_with_their_lines_and_placeholders(tmp_path, translator):
    path, out = put(tmp_path, PO, "a.po"), tmp_path / "b.po"
    report = translate_document(translator, path, out)
    assert counts(report) == (2, 1, 1)
    assert report.num_segments == 4
    assert report.problems == []
    assert targets_of(out) == ["the cat sat on %s", "\na small house\n  on the hill.\n", "die Matte", ""]


def test_open_units_of_xliff_are_filled_with_their_tags_and_nothing_else_changes(tmp_path, translator):
    path, out = put(tmp_path, XLIFF, "a.xlf"), tmp_path / "b.xlf"
    report = translate_document(translator, path, out)
    assert counts(report) == (3, 1, 1)
    assert report.problems == []
    first = 'the <g id="1">cat</g> sat &amp; <x id="2"/>on'
    assert targets_of(out) == [
        first, "die Matte", None, '<x id="1"/>', "&lt;b&gt;how&lt;/b&gt; &amp; where",
    ]  # fmt: skip
    target = f'<target state="needs-review-translation">{first}</target>'
    assert out.read_text().startswith(XLIFF[: XLIFF.index("</trans-unit>")] + target + "</trans-unit>")


def test_overwriting_translates_what_has_a_translation_but_not_what_must_stay(tmp_path, translator):
    out = tmp_path / "b.xlf"
    report = translate_document(translator, put(tmp_path, XLIFF, "a.xlf"), out, overwrite=True)
    assert counts(report) == (4, 0, 1)
    assert targets_of(out)[1:3] == ["the mat", None]


def test_final_translations_are_not_marked_for_review(tmp_path, translator):
    out = tmp_path / "b.po"
    translate_document(translator, put(tmp_path, PO, "a.po"), out, for_review=False)
    assert "fuzzy" not in out.read_text()


def test_filling_twice_is_filling_once_and_the_file_itself_may_be_the_output(tmp_path, translator):
    path, once = put(tmp_path, XLIFF, "a.xlf"), tmp_path / "b.xlf"
    translate_document(translator, path, once)
    expected = once.read_bytes()
    assert counts(translate_document(translator, once, once)) == (0, 4, 1)
    assert once.read_bytes() == expected
    translate_document(translator, path, path)
    assert path.read_bytes() == expected


def test_a_document_for_another_language_is_refused_before_anything_is_written(tmp_path, translator):
    path = put(tmp_path, XLIFF.replace("de-DE", "fr"), "a.xlf")
    with pytest.raises(CorpusError, match='found target-language="fr", wanted de'):
        translate_document(translator, path, tmp_path / "b.xlf")
    assert [place.name for place in tmp_path.iterdir()] == ["a.xlf"]


def test_what_happened_to_tags_and_lines_is_told_for_each_segment(tmp_path, translator, monkeypatch):
    def lossy(translator, sources, **options):
        for number, _ in enumerate(sources):
            yield MarkedTranslation(
                "x\ny",
                Translation("x y", is_cut=number == 0, num_unknown=number),
                tags_ok=False,
                problems=("<g> is missing",) * (number == 1),
                notes=("%s was put in by position",) * (number == 0),
            )

    monkeypatch.setattr(documents, "translate_parsed_lines", lossy)
    report = translate_document(translator, put(tmp_path, XLIFF, "a.xlf"), tmp_path / "b.xlf")
    assert report.problems[:6] == [
        Problem(1, 3, documents.MENDED, ("%s was put in by position",)),
        Problem(1, 3, documents.BROKEN),
        Problem(1, 3, documents.CUT),
        Problem(4, 6, documents.MARKUP, ("<g> is missing",)),
        Problem(4, 6, documents.BROKEN),
        Problem(4, 6, documents.UNKNOWN),
    ]


def test_a_placeholder_that_the_vocabulary_cannot_write_is_put_in_and_told(tmp_path):
    tokenizer = learn_bpe(["the cat sat on the mat"] * 3, vocab_size=30, byte_fallback=False)
    backend = TorchBackend(CopyPredictor(tokenizer.vocab_size), torch.device("cpu"), attention=diagonal)
    translator = Translator(backend, tokenizer, tokenizer, max_source_tokens=23)
    path = put(tmp_path, 'msgid "the cat %s\\n"\nmsgstr ""\n', "a.po")
    report = translate_document(translator, path, tmp_path / "b.po")
    (target,) = targets_of(tmp_path / "b.po")
    assert target.count("%s") == 1
    assert target.endswith("\n")
    assert {problem.kind for problem in report.problems} >= {documents.MENDED}


def test_progress_is_told_after_each_segment(tmp_path, translator):
    heard: list[int] = []
    translate_document(
        translator,
        put(tmp_path, PO, "a.po"),
        tmp_path / "b.po",
        on_progress=lambda report: heard.append(report.num_filled),
    )
    assert heard == [1, 2]


def test_a_document_equals_its_segments_translated_one_by_one(tmp_path, translator):
    """Batches, chunks and neighbours change nothing."""
    words = ["the cat", "how are you?", "one, two; three!", "a small house on the hill."]
    entries = [f"{words[number % 4]} {number}" for number in range(101)]
    path = put(tmp_path, "\n".join(f'msgid "{entry}"\nmsgstr ""\n' for entry in entries), "a.po")
    translate_document(translator, path, tmp_path / "b.po")
    assert targets_of(tmp_path / "b.po") == [next(iter(translate_lines(translator, [entry]))).text for entry in entries]


pieces = st.sampled_from(
    ["the cat ", '<g id="1">', "</g>", '<x id="2"/>', "&amp;", " %s", " mat", "<!-- c -->", "<![CDATA[<]]>", "\n", "ä"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(pieces, max_size=7).map("".join), min_size=1, max_size=3))
def test_a_filled_document_is_well_formed_whatever_stands_in_its_sources(tmp_path_factory, translator, sources):
    units = "".join(f'<trans-unit id="{n}"><source>{source}</source></trans-unit>' for n, source in enumerate(sources))
    text = f'<xliff version="1.2"><file source-language="en" target-language="de"><body>{units}</body></file></xliff>'
    folder = tmp_path_factory.mktemp("document")
    path, out = put(folder, text, "a.xlf"), folder / "b.xlf"
    try:
        ET.fromstring(text)
    except ET.ParseError:
        with pytest.raises(CorpusError):
            translate_document(translator, path, out)
        assert not out.exists()
        return
    report = translate_document(translator, path, out)
    root = ET.fromstring(out.read_text())
    assert len(root.findall(".//target")) == report.num_filled
    for unit in root.iter("trans-unit"):
        source, target = unit.find("source"), unit.find("target")
        if target is not None and unit.get("id") not in {str(problem.number - 1) for problem in report.problems}:
            tags = [sorted((e.tag, e.get("id")) for e in side.iter() if e is not side) for side in (source, target)]
            assert tags[0] == tags[1]


def test_a_segment_that_came_out_empty_is_filled_and_told(tmp_path):
    path, out = put(tmp_path, XLIFF, "a.xlf"), tmp_path / "b.xlf"
    report = translate_document(copying_translator(end_bonus=1000.0), path, out)
    assert targets_of(out)[0] == '<g id="1"></g><x id="2"/>'
    assert [(problem.number, problem.details) for problem in report.problems if problem.kind == documents.WORDLESS] == [
        (1, ()),
        (5, ()),
    ]
    assert documents.MARKUP not in {problem.kind for problem in report.problems}
