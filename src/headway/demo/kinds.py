"""The kinds of phrase in the demo corpus, each drawn once as a meaning and then written in any language by CLDR.

A generator draws a meaning from a random stream and returns a function that writes it in a locale. A kind may only hold
what the text itself decides: one source has one target over all kinds. So May is never written in the medium date form
(in English "May 5, 2026" is the long form too), and no amount needs rounding.

This file needs Babel, an extra; ``headway.demo.phrases`` loads it and says so when it is not there.
"""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Literal

from babel import Locale
from babel.dates import (
    format_date,
    format_interval,
    format_skeleton,
    format_time,
    format_timedelta,
    get_datetime_format,
)
from babel.lists import format_list
from babel.numbers import format_compact_decimal, format_currency, get_currency_precision
from babel.units import format_unit

from headway.demo.names import CURRENCIES, LANGUAGES, TERRITORIES, UNITS

Render = Callable[[Locale], str]
Generator = Callable[[Random], Render]

FIRST_DAY = date(1950, 1, 1)
LAST_DAY = date(2049, 12, 31)
MAY = 5

# Whole seconds in each unit of time; a month is 30 days and a year 365, only to name them to Babel.
SECONDS = {
    "year": 365 * 86_400,
    "month": 30 * 86_400,
    "week": 7 * 86_400,
    "day": 86_400,
    "hour": 3600,
    "minute": 60,
    "second": 1,
}

# Units of time said in a row, each with the most that may stand there before the next larger unit would be said.
DURATIONS: tuple[dict[str, int], ...] = (
    {"year": 99, "month": 11},
    {"year": 99, "month": 11, "day": 30},
    {"month": 35, "week": 4},
    {"month": 35, "day": 30},
    {"week": 51, "day": 6},
    {"day": 364, "hour": 23},
    {"day": 30, "hour": 23, "minute": 59},
    {"hour": 99, "minute": 59},
    {"hour": 23, "minute": 59, "second": 59},
    {"minute": 99, "second": 59},
)


def _day(rng: Random) -> date:
    return FIRST_DAY + timedelta(days=rng.randint(0, (LAST_DAY - FIRST_DAY).days))


def _time(rng: Random) -> time:
    return time(rng.randrange(24), rng.randrange(60), rng.randrange(60))


def _clock(twelve_hours: str, twenty_four_hours: str, locale: Locale) -> str:
    return twelve_hours if locale.language == "en" else twenty_four_hours


def _date_format(rng: Random, day: date) -> Literal["full", "long", "medium"]:
    chosen = rng.choice(("full", "long", "medium"))
    return "long" if chosen == "medium" and day.month == MAY else chosen


def _date(rng: Random) -> Render:
    """Full, long and medium dates, dates with a short weekday, months and quarters of a year."""
    day = _day(rng)
    form = _date_format(rng, day)
    skeleton = rng.choices(("", "yMMMEd", "yMMMM", "yQQQQ"), weights=(75, 15, 7, 3))[0]
    if skeleton:
        return lambda locale: format_skeleton(skeleton, day, locale=locale)
    return lambda locale: format_date(day, form, locale=locale)


def _time_of_day(rng: Random) -> Render:
    """Times with and without seconds or a weekday; English counts 12 hours, the other languages 24."""
    moment = datetime.combine(_day(rng), _time(rng))
    form = rng.choices(("short", "medium", "weekday"), weights=(20, 40, 40))[0]
    if form == "weekday":
        return lambda locale: format_skeleton(_clock("Ehm", "EHm", locale), moment, locale=locale)
    length: Literal["short", "medium"] = "short" if form == "short" else "medium"
    return lambda locale: format_time(moment.time(), length, locale=locale)


def _date_and_time(rng: Random) -> Render:
    day, moment = _day(rng), _time(rng)
    form = _date_format(rng, day)

    def render(locale: Locale) -> str:
        pattern = str(get_datetime_format(form, locale=locale))
        return pattern.replace("{0}", format_time(moment, "short", locale=locale)).replace(
            "{1}", format_date(day, form, locale=locale)
        )

    return render


def _interval(rng: Random) -> Render:
    """From one day or time (by five minutes) to another; what both ends share is written once."""
    if rng.random() < 0.35:
        first, last = (5 * step for step in sorted(rng.sample(range(24 * 12), 2)))
        start, end = time(first // 60, first % 60), time(last // 60, last % 60)
        return lambda locale: format_interval(start, end, _clock("hm", "Hm", locale), locale=locale)
    begin = _day(rng)
    finish = begin + timedelta(days=rng.choice((rng.randint(1, 20), rng.randint(20, 90), rng.randint(90, 300))))
    return lambda locale: format_interval(begin, finish, "yMMMd", locale=locale)


def _large_number(rng: Random) -> Render:
    """Millions, billions and trillions of one to four digits; Chinese counts in units of ten thousand."""
    digits = rng.choice((1, 2, 3, 3, 4, 4))
    decimals = rng.randint(max(0, digits - 3), digits - 1)  # no more than 999 before the point
    significand = Decimal(rng.randint(10 ** (digits - 1), 10**digits - 1)).scaleb(-decimals)
    number = significand * 10 ** rng.choice((6, 9, 12))
    return lambda locale: format_compact_decimal(number, format_type="long", locale=locale, fraction_digits=6)


def _amount(rng: Random, *, digits: int, decimals: int) -> Decimal:
    """Two or more, with at most `digits` before the point, each count of them as likely as another."""
    before = rng.randint(1, digits)
    whole = rng.randint(max(2, 10 ** (before - 1)), 10**before - 1)
    return Decimal(whole) + Decimal(rng.randrange(10**decimals)).scaleb(-decimals)


def _money(rng: Random) -> Render:
    """Amounts with the currency's name or its symbol."""
    currency = rng.choice(CURRENCIES)
    precision = get_currency_precision(currency)
    if rng.random() < 0.4:
        price = _amount(rng, digits=6, decimals=precision)
        return lambda locale: format_currency(price, currency, locale=locale)
    decimals = rng.choice((0, precision))
    amount = _amount(rng, digits=6, decimals=decimals)
    return lambda locale: format_currency(
        amount, currency, format_type="name", currency_digits=decimals > 0, locale=locale
    )


def _unit(rng: Random) -> Render:
    """Measures with the unit's full name, in the plural form that the number asks for."""
    unit = rng.choice(UNITS)
    value = Decimal(1) if rng.random() < 0.03 else _amount(rng, digits=5, decimals=rng.choice((0, 0, 1, 2)))
    return lambda locale: format_unit(value, unit, locale=locale)


def _duration(rng: Random) -> Render:
    """Two or three units of time in a row."""
    parts = [
        (1 if rng.random() < 0.2 else rng.randint(1, most), f"duration-{unit}")
        for unit, most in rng.choice(DURATIONS).items()
    ]
    return lambda locale: format_list([format_unit(count, unit, locale=locale) for count, unit in parts], locale=locale)


def _relative_time(rng: Random) -> Render:
    """So long ago, or in so long."""
    unit = rng.choice(tuple(SECONDS))
    count = rng.choice((rng.randint(1, 99), rng.randint(1, 999))) * rng.choice((1, -1))
    distance = timedelta(seconds=count * SECONDS[unit])
    return lambda locale: format_timedelta(
        distance,
        granularity=unit,  # pyright: ignore[reportArgumentType]  # one of Babel's own names, from SECONDS
        threshold=float("inf"),
        add_direction=True,
        locale=locale,
    )


def _list_style(rng: Random) -> Literal["standard", "or"]:
    return "or" if rng.random() < 0.3 else "standard"


def _countries(rng: Random) -> Render:
    codes = rng.sample(TERRITORIES, rng.randint(2, 4))
    style = _list_style(rng)
    return lambda locale: format_list([locale.territories[code] for code in codes], style, locale=locale)


def _languages(rng: Random) -> Render:
    codes = rng.sample(LANGUAGES, rng.randint(2, 4))
    style = _list_style(rng)
    return lambda locale: format_list([locale.languages[code] for code in codes], style, locale=locale)


def _language_in_country(rng: Random) -> Render:
    """A language as it is spoken in a country."""
    language, territory = rng.choice(LANGUAGES), rng.choice(TERRITORIES)
    return lambda locale: f"{locale.languages[language]} ({locale.territories[territory]})"


KINDS: dict[str, Generator] = {
    "date": _date,
    "time": _time_of_day,
    "date and time": _date_and_time,
    "interval": _interval,
    "large number": _large_number,
    "money": _money,
    "unit": _unit,
    "duration": _duration,
    "relative time": _relative_time,
    "countries": _countries,
    "languages": _languages,
    "language (country)": _language_in_country,
}
