import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.corpus.language import best_of, check_language, distance, is_code, matches, normalise
from headway.errors import CorpusError


@pytest.mark.parametrize(
    ("written", "one_way"),
    [
        ("EN_us", "en-US"),
        ("en-us", "en-US"),
        (" De ", "de"),
        ("ZH-hant", "zh-Hant"),
        ("zh_hans_cn", "zh-Hans-CN"),
        ("es-419", "es-419"),
        ("de_DE.UTF-8", "de-DE"),
        ("sr_RS.UTF-8@latin", "sr-Latn-RS"),
        ("sr@latin", "sr-Latn"),
        ("ca@valencia", "ca-valencia"),
        ("ENG", "eng"),
        ("*all*", "*all*"),
    ],
)
def test_a_code_has_one_way_of_writing(written, one_way):
    assert normalise(written) == one_way


@given(st.from_regex(r"[a-z]{2,3}(-[a-z]{4})?(-[a-z]{2})?", fullmatch=True), st.data())
@settings(deadline=None)
def test_case_and_separator_play_no_part(code, data):
    written = "".join(
        data.draw(st.sampled_from([char.lower(), char.upper()])) if char != "-" else data.draw(st.sampled_from("-_"))
        for char in code
    )
    assert normalise(written) == normalise(code)
    assert distance(code, written) == distance(written, code) == 0


@given(st.text(max_size=12), st.text(max_size=12))
@settings(deadline=None)
def test_any_text_is_taken_without_a_crash_and_serves_for_itself(one, other):
    assert distance(one, one) == 0
    assert matches(one, other) == matches(other, one) or is_code(one)
    assert normalise(normalise(one)) == normalise(one)


# From best to worst for who wants the first; what stands behind None serves not at all.
ORDERS = [
    ("en", ["en", "eng", "en-US", None, "de", "e", "english", ""]),
    ("en-GB", ["en_gb", "eng-GB", "en", "en-AU", "en-US", None, "gb", "de-GB", "enm"]),
    ("en-US", ["en-US", "en", "en-PH", "en-GB", None]),
    ("es-MX", ["es-MX", "es", "es-419", "es-ES", None]),
    ("pt", ["pt", "por", "pt-BR", None, "es"]),
    ("pt-PT", ["pt-PT", "pt", "pt-AO", "pt-BR", None]),
    ("zh", ["zh", "zh-Hans", "zh-CN", "zh-TW", None, "yue"]),
    ("zh-CN", ["zh-CN", "zh-Hans-CN", "zh", "zh-SG", None, "zh-TW", "zh-Hant"]),
    ("zh-Hans", ["zh-Hans", "zh", "zh-CN", None, "zh-TW", "zh-HK", "zh-Hant"]),
    ("zh-TW", ["zh-TW", "zh-Hant-TW", "zh-Hant", "zh-HK", None, "zh", "zh-CN", "zh-Hans"]),
    ("zh-HK", ["zh-HK", "zh-Hant", "zh-MO", "zh-TW", None, "zh-CN"]),
    ("sr", ["sr", "sr-Cyrl", "sr-RS", "sr-Latn", None, "hr"]),
    ("sr-Latn", ["sr-Latn", "sr-Latn-RS", None, "sr", "sr-RS"]),
    ("no", ["no", "nb", "nb-NO", None, "nn", "da"]),
    ("he", ["he", "iw", None]),
    ("de-DE", ["de-DE", "ger-DE", "de", "de-AT", "de-CH", None, "nl"]),
]


@pytest.mark.parametrize(("wanted", "order"), ORDERS)
def test_nearer_codes_come_first_and_other_languages_and_scripts_never(wanted, order):
    end = order.index(None)
    ranks = [distance(wanted, code) for code in order[:end]]
    assert None not in ranks
    assert ranks == sorted(ranks)
    assert ranks[0] == 0
    assert [distance(wanted, code) for code in order[end + 1 :]] == [None] * (len(order) - end - 1)


@pytest.mark.parametrize(("wanted", "order"), ORDERS)
def test_the_best_is_found_wherever_it_stands(wanted, order):
    serving = order[: order.index(None)]
    others = order[order.index(None) + 1 :]
    assert best_of(wanted, [*others, *reversed(serving)]) == serving[0]
    assert best_of(wanted, others) is None
    assert best_of(wanted, []) is None


def test_of_equals_the_first_is_taken():
    assert best_of("en", ["en-AU", "en-US"]) == "en-AU"
    assert best_of("en", ["en-US", "en-AU"]) == "en-US"


@pytest.mark.parametrize("code", ["en", "DE", "zh-Hans", "pt_BR", "yue", "nan", "es-419", "de-1996", "sr@latin", "iw"])
def test_a_code_passes(code):
    check_language(code, name="data.source_language")
    assert is_code(code)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("chinese", "zh"),
        ("Chinese", "zh"),
        ("german", "de"),
        ("Germann", "de"),
        ("deutsch", "de"),
        ("jp", "ja"),
        ("cz-CZ", "cs-CZ"),
        ("brazilian portuguese", "pt-BR"),
        ("english (US)", "en"),
        ("Norwegian Bokmål", "nb"),
        ("中文", "zh"),
    ],
)
def test_what_is_no_code_is_told_with_the_code_that_was_meant(written, meant):
    with pytest.raises(CorpusError, match=rf"data\.target_language: found .*Did you mean {meant}\?$"):
        check_language(written, name="data.target_language")


@pytest.mark.parametrize("written", ["xx", "klingonish", "*all*", "e", "en us", "1"])
def test_what_is_nothing_known_is_told_with_examples(written):
    with pytest.raises(CorpusError, match=r"Give a code such as en, de, pt-BR or zh-Hans\.$"):
        check_language(written, name="data.source_language")


def test_the_languages_are_those_of_the_standard():
    """Oracle: the names of CLDR, through babel."""
    babel = pytest.importorskip("babel", reason="CLDR's names come with the extra demo")
    names = {code: name for code, name in babel.Locale("en").languages.items() if len(code) == 2}
    assert {code for code in names if not is_code(code)} == set()
    for code, name in names.items():
        if len(name) == 3:  # Twi, Ewe, Ido and Lao are codes themselves
            continue
        with pytest.raises(CorpusError, match=rf"Did you mean {code}\?$"):
            check_language(name, name="x")
