"""The demo corpus: laws over the whole of it, and phrases worked out by hand."""

import re
import sys
from collections import Counter
from datetime import datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.demo.phrases import EXAMPLES, TARGETS, Phrase, generate, split
from headway.errors import ConfigError, MissingExtraError

pytest.importorskip("babel", reason="the demo corpus needs the extra [demo]")


@pytest.fixture(scope="module", params=TARGETS)
def corpus(request) -> tuple[str, list[Phrase]]:
    return request.param, generate(request.param, num_pairs=40_000, seed=1)


@pytest.fixture(scope="module")
def german() -> list[Phrase]:
    return generate("de", num_pairs=40_000, seed=1)


def _of(phrases: list[Phrase], kind: str) -> list[Phrase]:
    return [phrase for phrase in phrases if phrase.kind == kind]


def test_every_source_stands_once_and_has_one_target(corpus):
    # generate() also asserts that a source drawn again, of whatever kind, was written the same in the target.
    _, phrases = corpus
    assert len(phrases) == 40_000
    assert len({phrase.source for phrase in phrases}) == 40_000


def test_kinds_are_at_least_eight_and_equally_many(corpus):
    _, phrases = corpus
    counts = Counter(phrase.kind for phrase in phrases)
    assert len(counts) >= 8
    assert max(counts.values()) - min(counts.values()) <= 1


def test_kinds_are_mixed_so_the_first_thousand_hold_them_all(german):
    assert {phrase.kind for phrase in german[:1000]} == {phrase.kind for phrase in german}


def test_no_phrase_is_its_own_translation_and_none_is_more_than_a_line(corpus):
    _, phrases = corpus
    for phrase in phrases:
        assert phrase.source != phrase.target
        for text in (phrase.source, phrase.target):
            assert text == text.strip()
            assert text
            # U+00A0, U+2009 and U+202F are the only spaces besides U+0020, and all else can be seen.
            assert re.sub("[\u00a0\u2009\u202f]", "", text).isprintable()


def test_the_same_seed_gives_the_same_phrases_in_the_same_order():
    assert generate("zh", num_pairs=1201, seed=7) == generate("zh", num_pairs=1201, seed=7)


def test_another_seed_gives_other_phrases():
    one = {phrase.source for phrase in generate("fr", num_pairs=1201, seed=7)}
    other = {phrase.source for phrase in generate("fr", num_pairs=1201, seed=11)}
    assert len(one & other) < 1201 // 2


def test_five_examples_of_different_kinds_are_never_in_the_corpus(corpus):
    target, phrases = corpus
    assert len(set(EXAMPLES[target])) == 5
    assert not set(EXAMPLES[target]) & {phrase.source for phrase in phrases}


@pytest.mark.parametrize("target", TARGETS)
def test_every_example_is_something_a_generator_can_write(target, monkeypatch):
    # Draw until each example is met would take too long; write their meanings with the generators' own pieces instead.
    from datetime import date, time
    from decimal import Decimal

    from babel.dates import format_date, format_interval, format_time
    from babel.lists import format_list
    from babel.numbers import format_currency
    from babel.units import format_unit

    long_date = format_date(date(2026, 3, 14), "full", locale="en")
    written = {
        f"{long_date}, {format_time(time(21, 26), 'short', locale='en')}",
        format_interval(date(2027, 9, 28), date(2027, 10, 3), "yMMMd", locale="en"),
        format_currency(Decimal(1250), "CAD", locale="en", format_type="name", currency_digits=False),
        format_list(
            [format_unit(n, f"duration-{u}", locale="en") for n, u in ((3, "hour"), (45, "minute"), (1, "second"))],
            locale="en",
        ),
        format_list(["Japan", "Germany", "Brazil", "New Zealand"], "or", locale="en"),
    }
    assert set(EXAMPLES[target]) == written


def test_an_example_that_is_drawn_is_left_out(monkeypatch):
    example = EXAMPLES["de"][0]
    texts = {"en": [example, "one", "two"], "de": ["Beispiel", "eins", "zwei"]}

    def draw(rng):
        index = rng.randrange(3)
        return lambda locale: texts[locale.language][index]

    monkeypatch.setattr("headway.demo.kinds.KINDS", {"toy": draw})
    assert {phrase.source for phrase in generate("de", num_pairs=2)} == {"one", "two"}


def test_a_source_with_two_targets_is_never_let_through(monkeypatch):
    def draw(rng):
        target = str(rng.random())
        return lambda locale: "always" if locale.language == "en" else target

    monkeypatch.setattr("headway.demo.kinds.KINDS", {"toy": draw})
    with pytest.raises(AssertionError, match="'always' has two targets"):
        generate("de", num_pairs=2)


def test_more_phrases_than_a_kind_has_is_an_error_that_says_how_many_it_found(monkeypatch):
    def draw(rng):
        number = rng.randrange(5)
        return lambda locale: f"{locale.language} {number}"

    monkeypatch.setattr("headway.demo.kinds.KINDS", {"toy": draw})
    with pytest.raises(ConfigError, match="7 phrases of kind 'toy' asked for; found 5 "):
        generate("de", num_pairs=7)


def test_fewer_pairs_than_kinds_is_an_error():
    with pytest.raises(ConfigError, match="3 pairs asked for; wanted at least 12"):
        generate("de", num_pairs=3)


@pytest.mark.parametrize("target", ["en", "ja", "DE", ""])
def test_another_language_is_an_error_that_names_the_three(target):
    with pytest.raises(ConfigError, match=f"'{target}'; wanted one of de, fr, zh"):
        generate(target)


def test_without_babel_the_error_gives_the_command_that_installs_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "headway.demo.kinds", raising=False)
    monkeypatch.setitem(sys.modules, "babel", None)
    with pytest.raises(MissingExtraError, match=re.escape("Remedy: pip install 'headway[demo]'")):
        generate("de", num_pairs=13)


def test_an_afternoon_hour_is_twelve_more_in_the_target(corpus):
    _, phrases = corpus
    times = _of(phrases, "time")
    for phrase in times:
        hour, rest, half = re.fullmatch(r"(?:\w+ )?(\d+):([\d:]+)[ \u202f](AM|PM)", phrase.source).groups()
        expected = f"{int(hour) % 12 + (12 if half == 'PM' else 0):02}:{rest}"
        assert phrase.target.endswith(expected)
        assert not phrase.target[: -len(expected)].endswith(tuple("0123456789:"))


def test_long_dates_keep_day_and_year_and_each_month_has_one_german_name(german):
    months = set()
    long_dates = [
        p for p in _of(german, "date") if re.fullmatch(r"[A-Z][a-z]+ \d+, \d{4}", p.source) and "." in p.target
    ]
    for phrase in long_dates:
        english = re.fullmatch(r"([A-Z][a-z]+) (\d+), (\d{4})", phrase.source).groups()
        numeric = re.fullmatch(r"(\d\d)\.(\d\d)\.(\d{4})", phrase.target)
        if numeric:
            assert datetime.strptime(phrase.source, "%b %d, %Y") == datetime.strptime(phrase.target, "%d.%m.%Y")
            continue
        day, name, year = re.fullmatch(r"(\d+)\. ([A-Z]\w+) (\d{4})", phrase.target).groups()
        assert (day, year) == english[1:]
        months.add((english[0], name))
    assert ("March", "März") in months
    assert len(months) == len({english for english, _ in months}) == len({name for _, name in months}) == 12


def test_a_day_in_may_is_always_written_long(german):
    # "May 5, 2026" is both the long and the medium English form; German has "5. Mai 2026" and "05.05.2026".
    in_may = [
        p for p in _of(german, "date") + _of(german, "date and time") if p.source.startswith("May ") and "," in p.source
    ]
    assert len(in_may) > 100
    assert not [phrase for phrase in in_may if " Mai " not in phrase.target]


@pytest.mark.parametrize("kind", ["money", "unit", "large number"])
def test_numbers_keep_every_digit_and_swap_the_separators_in_german(german, kind):
    for phrase in _of(german, kind):
        number = re.search(r"[\d,.]*\d", phrase.source).group()
        assert number.translate(str.maketrans(",.", ".,")) in phrase.target


def test_large_numbers_have_the_same_value_in_chinese():
    english = {"million": 6, "billion": 9, "trillion": 12}
    chinese = {"": 0, "万": 4, "亿": 8, "万亿": 12}

    def value(number: str, power: int) -> int:
        whole, _, decimals = number.partition(".")
        return int(whole + decimals) * 10 ** (power - len(decimals))

    for phrase in _of(generate("zh", num_pairs=5003), "large number"):
        number, name = phrase.source.split(" ")
        digits, unit = re.fullmatch(r"([\d.]+)(\D*)", phrase.target).groups()
        assert value(digits, chinese[unit]) == value(number, english[name])


def test_every_name_occurs_often_enough_to_be_learnt(german):
    from babel import Locale

    from headway.demo.names import LANGUAGES, TERRITORIES

    locale = Locale("en")
    named = Counter()
    for phrase in german:
        if phrase.kind in {"countries", "languages", "language (country)"}:
            named.update(re.split(r", and |, or | and | or |, | \(|\)", phrase.source))
    for code in TERRITORIES:
        assert named[locale.territories[code]] >= 50
    for code in LANGUAGES:
        assert named[locale.languages[code]] >= 50


def test_units_are_in_the_plural_that_the_number_asks_for(german):
    singular = {p.target for p in _of(german, "unit") if p.source.startswith("1 ")}
    assert "1 Meile" in singular or "1 Unze" in singular
    assert not [text for text in singular if re.search("Meilen|Unzen|Gallonen|Tassen", text)]
    assert [p for p in _of(german, "unit") if re.search("Meilen|Unzen|Gallonen|Tassen", p.target)]


@given(
    kinds=st.lists(st.sampled_from("abc"), min_size=1, max_size=97),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_a_split_gives_every_phrase_to_one_part_and_every_kind_its_share(kinds, seed, data):
    phrases = [Phrase(kind, f"source {index}", "target") for index, kind in enumerate(kinds)]
    held_out = data.draw(st.integers(0, len(phrases) - 1))
    test = data.draw(st.integers(0, held_out))
    parts = split(phrases, seed=seed, validation=held_out - test, test=test)
    assert (len(parts.validation), len(parts.test)) == (held_out - test, test)
    assert sorted(p.source for part in parts for p in part) == sorted(p.source for p in phrases)
    for kind in set(kinds):
        fair = test * kinds.count(kind) / len(kinds)
        assert abs(len(_of(parts.test, kind)) - fair) < 2


def test_no_source_is_on_two_sides_of_a_split_and_each_keeps_the_order(german):
    parts = split(german, seed=5, validation=997, test=1999)
    assert (len(parts.train), len(parts.validation), len(parts.test)) == (37_004, 997, 1999)
    sources = [{phrase.source for phrase in part} for part in parts]
    assert len(set().union(*sources)) == sum(map(len, sources)) == 40_000
    position = {phrase.source: index for index, phrase in enumerate(german)}
    for part in parts:
        places = [position[phrase.source] for phrase in part]
        assert places == sorted(places)


def test_a_split_depends_on_its_seed_only(german):
    assert split(german, seed=3, validation=101, test=211) == split(german, seed=3, validation=101, test=211)
    assert split(german, seed=3, validation=101, test=211).test != split(german, seed=4, validation=101, test=211).test


@pytest.mark.parametrize(("validation", "test"), [(5, 6), (0, 11), (-1, 3), (3, -1)])
def test_a_split_that_leaves_nothing_to_train_on_is_an_error(validation, test):
    phrases = [Phrase("a", str(index), "target") for index in range(11)]
    Random(1).shuffle(phrases)
    with pytest.raises(ConfigError, match="of 11; wanted at least one left"):
        split(phrases, seed=1, validation=validation, test=test)


def test_a_source_that_stands_twice_is_never_split():
    phrases = [Phrase("a", "same", "target")] * 3
    with pytest.raises(AssertionError, match="twice"):
        split(phrases, seed=1, validation=1, test=1)
