"""What every format of documents keeps, whichever it is."""

import pytest

from headway.corpus.document import DOCUMENTS, document_format, is_document
from headway.corpus.segment import PendingTargets
from headway.errors import CorpusError

XLIFF = (
    '<xliff version="1.2"><file source-language="en" target-language="de"><body>'
    '<trans-unit id="1"><source>a</source></trans-unit></body></file></xliff>'
)
TMX = '<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>a</seg></tuv></tu></body></tmx>'
SMALLEST = {
    "headway.corpus.po": 'msgid "a"\nmsgstr ""\n',
    "headway.corpus.tmx": TMX,
    "headway.corpus.xliff": XLIFF,
}


def smallest(suffix: str) -> str:
    """A file with one open segment, a."""
    return SMALLEST[document_format("x" + suffix).__name__]


@pytest.mark.parametrize("suffix", DOCUMENTS)
def test_a_document_is_known_by_its_suffix_in_any_case(suffix):
    assert is_document(f"a.b{suffix}")
    assert is_document(f"A{suffix.upper()}")
    assert document_format(f"A{suffix.upper()}").__name__ == f"headway.corpus.{DOCUMENTS[suffix]}"


@pytest.mark.parametrize("name", ["a.txt", "a", "po", "a.po.gz", "-", ".po"])
def test_what_is_no_document_by_its_suffix_is_told_with_the_suffixes_there_are(name):
    assert not is_document(name)
    with pytest.raises(CorpusError, match=r"wanted one of \.po, \.pot, "):
        document_format(name)


@pytest.mark.parametrize("suffix", DOCUMENTS)
def test_a_document_may_be_filled_where_it_stands(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_text(smallest(suffix))
    form = document_format(path)
    form.write_targets(path, path, [(1, "b")], source_language="en", target_language="de")
    (segment,) = form.read_segments(path, source_language="en", target_language="de")
    assert (segment.source, segment.target, segment.is_open) == ("a", "b", False)
    assert [place.name for place in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", DOCUMENTS)
def test_targets_are_asked_for_only_when_their_turn_has_come_and_a_failure_leaves_the_earlier_file(tmp_path, suffix):
    path, out = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    path.write_text(smallest(suffix))
    out.write_text("earlier")

    def targets():
        yield 1, "b"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        document_format(path).write_targets(path, out, targets(), source_language="en", target_language="de")
    assert out.read_text() == "earlier"
    assert sorted(place.name for place in tmp_path.iterdir()) == sorted([path.name, out.name])


@pytest.mark.parametrize("suffix", DOCUMENTS)
def test_a_file_that_is_missing_or_cannot_be_written_is_told(tmp_path, suffix):
    form = document_format(f"a{suffix}")
    with pytest.raises(CorpusError, match="does not exist"):
        list(form.read_segments(tmp_path / f"a{suffix}", source_language="en", target_language="de"))
    path = tmp_path / f"a{suffix}"
    path.write_text(smallest(suffix))
    with pytest.raises(CorpusError, match="its folder does not exist"):
        form.write_targets(path, tmp_path / "no" / path.name, [], source_language="en", target_language="de")


def test_pending_targets_are_taken_by_number_and_what_is_left_is_told():
    pending = PendingTargets([(2, "b"), (5, "e")], "a.po")
    assert [pending.take(number) for number in range(1, 5)] == [None, "b", None, None]
    assert not pending.is_empty
    with pytest.raises(CorpusError, match=r"corpus/segment: a\.po: found no segment 5 to write a target to"):
        pending.check_all_taken()
    assert pending.take(5) == "e"
    assert pending.is_empty
    pending.check_all_taken()


def test_the_smallest_files_are_of_every_format():
    assert {document_format(f"a{suffix}").__name__ for suffix in DOCUMENTS} == set(SMALLEST)
