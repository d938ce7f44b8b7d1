"""The audit: each fault is found where it is, and none is found in clean text."""

import pytest
from audit_corpus import clean_pairs
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.corpus.audit import Audit
from headway.corpus.finding import KINDS, SEVERITIES
from headway.corpus.held_text import HeldText
from headway.corpus.pair import SentencePair
from headway.errors import CorpusError
from headway.text.comparison import find_marks

NUMBER = 211


def numbered(pairs):
    return [SentencePair(source, target, line) for line, (source, target) in enumerate(pairs, 1)]


def marks(text):
    return [text[mark.start : mark.end] for mark in find_marks(text)]


def audited(*corpora, languages=("en", "de"), **options):
    audit = Audit(*languages, marks=marks, **options)
    for number, pairs in enumerate(corpora, 1):
        known = numbered(pairs)
        audit.read(f"file {number}", lambda known=known: iter(known), may_reopen=True)
    return audit.report()


def kinds(report):
    return {finding.kind: finding for finding in report.total.findings}


def with_changed(line, source=None, target=None):
    pairs = clean_pairs(NUMBER)
    old = pairs[line - 1]
    pairs[line - 1] = (old[0] if source is None else source(old[0]), old[1] if target is None else target(old[1]))
    return pairs


def test_clean_text_has_no_findings():
    report = audited(clean_pairs(997))
    assert report.total.pairs == 997
    assert [
        finding for finding in report.total.findings if finding.kind not in ("near-duplicate", "many-sources")
    ] == []


def upper_only(text):
    return text.encode().decode("cp1252", "replace").replace("\ufffd", "")


ONE_LINE = {
    "empty-source": (lambda text: "", None),
    "empty-target": (None, lambda text: " \t"),
    "source-script": (lambda text: "Собака видит учителя у старого моста.", None),
    "target-script": (None, lambda text: "Ο σκύλος βλέπει τον δάσκαλο."),
    "mojibake": (None, lambda text: text + " schÃ¶n"),
    "replacement": (lambda text: text + " \ufffd", None),
    "surrogate": (None, lambda text: text + "\ud83d"),
    "control": (lambda text: text + "\x07", None),
    "line-separator": (None, lambda text: text + "\u2028und"),
    "invisible": (lambda text: "\ufeff" + text, None),
    "entity": (lambda text: text + " &amp; more", lambda text: text + " &amp; mehr"),
    "double-escaped": (lambda text: text + " &amp;lt;", lambda text: text + " &amp;lt;"),
    "not-composed": (None, lambda text: text + " scho\u0308n"),
    "marks-differ": (lambda text: text + " %s", None),
    "numbers-differ": (lambda text: text + " 17", lambda text: text + " 71 3"),
    "too-long": (lambda text: text * 200, lambda text: text * 200),
    "many-words": (lambda text: "so " * 211 + text, lambda text: "ja " * 211 + text),
    "ratio": (lambda text: "Yes", lambda text: "Ja, " + "sicher " * 7),
    "near-copy": (None, lambda text: ""),
    "copy": (None, lambda text: ""),
}


@pytest.mark.parametrize("kind", ONE_LINE)
def test_a_fault_in_one_line_is_found_there_and_nowhere_else(kind):
    source, target = ONE_LINE[kind]
    pairs = with_changed(101, source, target)
    if kind == "copy":
        pairs[100] = (pairs[100][0], pairs[100][0])
    if kind == "near-copy":
        pairs[100] = (pairs[100][0], pairs[100][0].upper())
    finding = kinds(audited(pairs))[kind]
    assert finding.count == 1
    assert [(example.file, example.line) for example in finding.examples] == [("file 1", 101)]
    assert finding.total == NUMBER


def test_a_german_column_in_cyrillic_is_fatal():
    pairs = [(source, "Это совсем не немецкий текст") for source, _ in clean_pairs(53)]
    finding = kinds(audited(pairs))["target-script"]
    assert (finding.severity, finding.count) == ("fatal", 53)
    assert "Cyrl 100.0%; wanted Latn" in finding.detail


def test_swapped_sides_of_different_scripts_are_told_as_swapped_only():
    pairs = [("这是一句中文。", source) for source, _ in clean_pairs(53)]
    found = kinds(audited(pairs, languages=("en", "zh")))
    assert (found["sides-swapped"].severity, found["sides-swapped"].count) == ("fatal", 53)
    assert not {"source-script", "target-script"} & found.keys()


def test_a_latin_name_in_chinese_text_is_not_another_script():
    pairs = [("Home Assistant Cloud settings", "Home Assistant Cloud 的设置选项"), ("Wi-Fi", "WiFi")] * 2
    assert "target-script" not in kinds(audited(pairs, languages=("en", "zh")))


def test_repetitions_and_contradictions_point_at_both_lines():
    first, *rest = clean_pairs(NUMBER)
    pairs = [first, *rest, first, (first[0], "Ganz anders übersetzt."), ("Something else.", first[1])]
    pairs += [(rest[0][0].upper(), rest[0][1].upper())]
    found = kinds(audited(pairs))
    duplicate = found["duplicate"]
    assert (duplicate.count, duplicate.examples[0].line, duplicate.examples[0].note) == (1, NUMBER + 1, "line 1")
    contradiction = found["many-targets"].examples[0]
    assert contradiction.line == NUMBER + 2
    assert contradiction.target == "Ganz anders übersetzt."
    assert contradiction.note == f"line 1: {first[0]} | {first[1]}"
    assert (NUMBER + 3) in [example.line for example in found["many-sources"].examples]
    assert found["near-duplicate"].examples[-1].line in {NUMBER + 4, *range(1, NUMBER)}


def test_what_repeats_another_file_names_that_file():
    pairs = clean_pairs(NUMBER)
    report = audited(pairs, [("A new one here.", "Ein neuer hier."), pairs[7]])
    finding = kinds(report)["duplicate"]
    assert (finding.count, finding.total) == (1, NUMBER + 2)
    assert (finding.examples[0].file, finding.examples[0].line) == ("file 2", 2)
    assert finding.examples[0].note == "file 1 line 8"
    assert [file.pairs for file in report.files] == [NUMBER, 2]


def test_a_small_file_that_is_wholly_wrong_is_fatal_among_large_ones():
    wrong = [(source, "Это не немецкий язык") for source, _ in clean_pairs(11, seed=2)]
    report = audited(clean_pairs(NUMBER), wrong)
    assert kinds(report)["target-script"].severity == "fatal"
    assert "target-script" not in {finding.kind for finding in report.files[0].findings}


def test_a_lost_line_is_told_as_a_stretch_with_its_shift():
    pairs = clean_pairs(499)
    sources = [source for source, _ in pairs]
    targets = [target for _, target in pairs]
    del targets[150]
    targets.insert(300, "Diese Zeile gab es vorher nicht, sie ist neu.")
    report = audited(list(zip(sources, targets, strict=True)))
    ((first, last, count, shift),) = report.files[0].stretches
    assert abs(first - 151) <= 3
    assert abs(last - 300) <= 3
    assert (count, shift) == (last - first + 1, -1)
    finding = kinds(report)["shifted"]
    assert (finding.severity, finding.count) == ("fatal", count)
    assert targets[first - 2] in finding.examples[0].note


def test_lower_cased_and_tokenised_text_is_told():
    pairs = [
        (source.lower().replace(".", " ."), target.lower().replace(".", " .")) for source, target in clean_pairs(97)
    ]
    found = kinds(audited(pairs))
    assert (found["lower-cased"].severity, found["lower-cased"].detail) == ("costly", "source and target")
    assert found["tokenised"].count == sum(" ." in source for source, _ in pairs)


def test_test_text_in_training_is_fatal_and_named():
    pairs = clean_pairs(NUMBER)
    held = HeldText("test.tsv", numbered([pairs[3], ("Unknown.", "Unbekannt."), (pairs[5][0].upper(), pairs[5][1])]))
    found = kinds(audited(pairs, held=[held]))
    exact = found["test-overlap"]
    assert (exact.severity, exact.count, exact.total, exact.unit) == ("fatal", 1, 3, "test pairs")
    assert exact.examples[0].note == "same pair in file 1 at line 4"
    assert found["test-near-overlap"].count == 1
    assert found["test-near-overlap"].examples[0].line == 3


def test_an_identifier_finds_text_in_another_language():
    def identify(text):
        return ("fr" if "fleuve" in text else "de" if text.startswith("Der") else "en"), 0.9

    pairs = [
        (source, "Le fleuve traverse toute la ville de Paris" if number % 3 == 0 else target + " Das ist nun so.")
        for number, (source, target) in enumerate(clean_pairs(NUMBER))
    ]
    finding = kinds(audited(pairs, identify=identify))["target-language"]
    assert (finding.unit, finding.severity) == ("sampled pairs", "costly")
    assert finding.count == sum(number % 3 == 0 for number in range(NUMBER))
    assert "looks like fr" in finding.examples[0].note


def test_swapped_sides_of_one_script_are_found_by_the_identifier():
    def identify(text):
        return ("de" if text.startswith("Der") else "en"), 0.9

    pairs = [(f"{target} Das ist nun so.", f"{source} And so it is.") for source, target in clean_pairs(NUMBER)]
    found = kinds(audited(pairs, identify=identify))
    assert (found["sides-swapped"].severity, found["sides-swapped"].count) == ("fatal", NUMBER)
    assert "source-language" not in found


def test_a_file_that_breaks_off_is_told_with_what_stands_before():
    def breaking():
        yield from numbered(clean_pairs(7))
        raise CorpusError("corpus/tsv: x line 8: broken")

    audit = Audit("en", "de")
    audit.read("x", breaking, may_reopen=False)
    report = audit.report()
    assert report.files[0].pairs == 7
    assert report.files[0].error == "corpus/tsv: x line 8: broken"
    assert kinds(report)["ended-early"].severity == "fatal"


@pytest.mark.parametrize("half", [("one", " "), ("", "eins")])
def test_half_a_line_before_the_place_where_a_file_breaks_is_no_empty_side(half):
    def breaking():
        yield from numbered([("", "leer"), *clean_pairs(7), half])
        raise CorpusError("corpus/tsv: x line 10: broken")

    audit = Audit("en", "de")
    audit.read("x", breaking, may_reopen=False)
    report = audit.report()
    assert report.files[0].pairs == 8
    assert kinds(report)["empty-source"].count == 1
    assert "empty-target" not in kinds(report)
    whole = kinds(audited([("", "leer"), *clean_pairs(7), ("one", " ")]))
    assert (whole["empty-source"].count, whole["empty-target"].count) == (1, 1)


def test_a_file_without_pairs_is_fatal():
    assert kinds(audited([]))["no-pairs"].severity == "fatal"


def test_findings_come_with_the_gravest_first():
    report = audited([*clean_pairs(23), ("", "x"), ("Odd\x00", "Even\x00")], [])
    order = [SEVERITIES.index(finding.severity) for finding in report.total.findings]
    assert order == sorted(order)
    assert len(order) >= 3


TEXTS = st.one_of(
    st.text(alphabet=st.characters(), max_size=40),
    st.sampled_from(["", "a", "A", "1", "{x}", "%s <b>", "Ã¤", "a\u0308", "你好", "\ud800", "&amp;lt;", "²", "same"]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=30), st.lists(st.tuples(TEXTS, TEXTS), max_size=9))
def test_any_text_can_be_audited_and_the_counts_add_up(first, second):
    held = HeldText("test", numbered(second))
    report = audited(first, second, identify=lambda text: ("de", 0.9), held=[held])
    assert report.total.pairs == len(first) + len(second) == sum(file.pairs for file in report.files)
    for finding in report.total.findings:
        assert 0 < finding.count <= finding.total or finding.kind == "no-pairs"
        assert finding.kind in KINDS
        if finding.unit == "pairs":
            parts = [other.count for file in report.files for other in file.findings if other.kind == finding.kind]
            assert finding.count == sum(parts)
    empty = sum(not source.strip() for source, _ in first + second)
    assert (kinds(report)["empty-source"].count if "empty-source" in kinds(report) else 0) == empty
    whole = [(one.strip(), other.strip()) for one, other in first + second if one.strip() and other.strip()]
    repeats = len(whole) - len(set(whole))
    assert (kinds(report)["duplicate"].count if "duplicate" in kinds(report) else 0) == repeats
    contradictions = len(set(whole)) - len({source for source, _ in whole})
    assert (kinds(report)["many-targets"].count if "many-targets" in kinds(report) else 0) == contradictions
