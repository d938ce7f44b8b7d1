"""What stays in a text and must come out of a translation as it went in.

Placeholders of format strings and templates, URLs, e-mail addresses, entities, and numbers on request. Every pattern
takes time linear in the text: repeats are bounded, or cannot meet the same character twice.
"""

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

What = Literal["tag", "placeholder", "url", "e-mail", "entity", "number"]


@dataclass(frozen=True, slots=True)
class Found:
    """A stretch of a text, and what it is."""

    start: int
    end: int
    what: What


# Where a URL ends: white space, quotes, angle brackets, typographic punctuation, and scripts written without spaces.
_NOT_IN_URL = r"\s<>\"`|\\^«»\u2000-\u206f\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\ufe10-\uffef\U00020000-\U0003ffff"
_URL = rf"(?<![A-Za-z0-9+.\-])(?:[A-Za-z][A-Za-z0-9+.\-]{{1,20}}+://|[Ww][Ww][Ww]\.|mailto:)[^{_NOT_IN_URL}]++"
_HOST_LETTER = r"A-Za-z0-9\u00c0-\u024f"
_EMAIL = (
    rf"(?<![{_HOST_LETTER}._%+\-])[{_HOST_LETTER}][{_HOST_LETTER}._%+\-]{{0,63}}+@"
    rf"(?:[{_HOST_LETTER}\-]{{1,63}}+\.){{1,8}}[A-Za-z]{{2,24}}(?![{_HOST_LETTER}\-])"
)

_FORMAT_NAME = r"(?:[A-Za-z_]\w{0,80}|\d{1,4})?(?:[.\-/][A-Za-z0-9_]{1,80}|\[[^\[\]{}\s]{1,50}\]){0,20}"
_BRACES = [
    r"\{\{\{[^{}]{1,200}\}\}\}",
    r"\{\{[^{}]{1,200}\}\}",  # {{x}} {{ x | upper }}
    r"\{%[^{}]{1,200}%\}|\{#[^{}]{1,200}#\}",
    r"[$%]\{[^{}]{1,200}\}",  # ${x} %{x}
    r"<%[^%<>]{1,200}%>",  # <%= x %> of ERB and EJS
    r"\{(?:\d{1,4}|[biu]{1,3}|[_^])>|<(?:\d{1,4}|[biu]{1,3}|[_^])\}",  # {1>text<1} of Phrase
    rf"\{{ ?{_FORMAT_NAME}(?:![rsa])?(?::[^\s{{}}][^{{}}\n]{{0,50}})? ?\}}",  # {} {0} {x.y[0]!r:>8}
    r"\{\s{0,3}\w{1,80}\s{0,3},\s{0,3}(?:number|date|time|spellout|ordinal|duration)(?:\s{0,3},[^{}]{0,100})?\}",
]
_LENGTH = r"(?:hh|ll|[hljztLq])?"
_CONVERSION = "@diouxXeEfFgGaAcspr"
_PERCENTS = [
    r"%%",
    r"(?<!\d)%[A-Z][A-Z0-9_]{1,40}%",  # %PATH%
    rf"%\([A-Za-z_][\w.]{{0,80}}\)[\-+0# ]{{0,5}}\d{{0,4}}(?:\.\d{{1,4}})?{_LENGTH}[{_CONVERSION}%]",  # %(name)s
    rf"%<[A-Za-z_]\w{{0,80}}>[\-+0# ]{{0,5}}\d{{0,4}}(?:\.\d{{1,4}})?[{_CONVERSION}]",  # %<name>s of Ruby
    rf"%\d{{1,3}}\$[\-+0#',]{{0,5}}\d{{0,4}}(?:\.\d{{1,4}})?{_LENGTH}[A-Za-z@]",  # %1$s
    # %-5.2f: a flag, width or precision says that this is a format; a digit before says that it is a percentage
    rf"(?<!\d)%(?=[\-+#0-9.*])[\-+#0]{{0,5}}(?:\d{{1,4}}|\*)?(?:\.(?:\d{{1,4}}|\*))?{_LENGTH}[{_CONVERSION}]",
    r"(?<!\d)%,(?:\.\d{1,4})?[df](?![A-Za-z])",
    # %s: bare, it may be followed by letters (%ds, %dMB) only when it is one of the common ones
    rf"(?<!\d)%{_LENGTH}(?:[sdiu@](?!\d)|[{_CONVERSION}](?![A-Za-z0-9]))",
    r"(?<!\d)%[YmHMSBbAajpyIZz](?![A-Za-z0-9])",  # of dates
    r"(?:(?<![\w%])|(?<=%\d))%(?:L?[1-9]\d?|n)(?!\w)",  # %1 %L2 %n
]
_DOLLARS = [
    r"\$t\([^()\n]{1,200}\)",  # of i18next
    r"\$[A-Z][A-Z0-9_]{1,40}\$",
    # $name, but neither $US 5 nor $m, $bn
    r"(?<![\w$])\$(?!(?:m|k|b|bn|mn|tn|mln|mio|mrd)\b)(?:[a-z_]\w{0,80}|[A-Z][A-Z0-9]{0,40}_\w{1,80}|[A-Z]{4,80})(?!\w)",
]
_LINKS = [
    r"(?<=\]\()[^\s()<>]{1,300}(?=[)\s])",  # [text](where) of Markdown
    r"@(?:\.[a-z]{1,20})?:(?:\([\w.]{1,100}\)|[A-Za-z_]\w{0,80}(?:\.\w{1,80}){0,9})",  # @:key of Vue I18n
]
_ENTITY = r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
_NUMBER = r"(?<!\d)\d+(?:[.,'’]\d+)*(?:[ \u00a0\u202f]\d{3}(?!\d)(?:[.,]\d+)?)*"

_KINDS = {
    "url": _URL,
    "email": _EMAIL,
    "placeholder": "|".join([*_BRACES, *_PERCENTS, *_DOLLARS, *_LINKS]),
    "entity": _ENTITY,
}
_FIXED = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _KINDS.items())  # compiled when a text has a sign
_WITH_NUMBERS = f"{_FIXED}|(?P<number>{_NUMBER})"
_WHAT: dict[str, What] = {
    "url": "url",
    "email": "e-mail",
    "placeholder": "placeholder",
    "entity": "entity",
    "number": "number",
}
# What any of them has. Most text has none of it, and then nothing else is looked for.
_SIGN = re.compile(r"[{%$&@]|<(?:\d{1,4}|[biu]{1,3}|[_^])\}|\]\(|://|[Ww][Ww][Ww]\.|mailto:")
_DIGIT = re.compile(r"\d")
_MESSAGE = re.compile(r"\{\s{0,3}\w{1,80}\s{0,3},\s{0,3}(?:plural|select|selectordinal|choice)\s{0,3},")

ENTITY = re.compile(_ENTITY)


def find_placeholders(text: str, *, numbers: bool = False) -> list[Found]:
    """Everything in a text that must stay as it is, in order; ``numbers`` adds numbers."""
    if not _SIGN.search(text) and not (numbers and _DIGIT.search(text)):
        return []
    return list(_scan(text, re.compile(_WITH_NUMBERS if numbers else _FIXED)))


def number_key(text: str) -> str:
    """The digits of a number alone, so that 1,234.50 and 1.234,50 are the same number."""
    return "".join(str(unicodedata.digit(character)) for character in text if character.isdigit())


def _scan(text: str, pattern: re.Pattern[str]) -> Iterator[Found]:
    """Matches of the pattern outside whole plural and select messages, which are one unit each."""
    position = 0
    for start, end in [*_messages(text), (len(text), len(text))]:
        while match := pattern.search(text, position, start):
            position = match.end()
            what = _WHAT[match.lastgroup or ""]
            if what == "url":
                position = match.start() + _length_of_url(match[0])
            elif what == "entity" and not _stays(match[0]):
                continue
            if position > match.start():
                yield Found(match.start(), position, what)
            else:
                position = match.start() + 1
        if end > start:
            yield Found(start, end, "placeholder")
        position = end


def _messages(text: str) -> list[tuple[int, int]]:
    """The outermost messages such as {n, plural, one {# file} other {# files}}, to their closing brace."""
    starts = [match.start() for match in _MESSAGE.finditer(text)] if "{" in text else []
    if not starts:
        return []
    ends: dict[int, int] = {}
    opened: list[int] = []
    for match in re.finditer(r"[{}]", text):
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            ends[opened.pop()] = match.end()
    found: list[tuple[int, int]] = []
    for start in starts:
        if start in ends and (not found or start >= found[-1][1]):
            found.append((start, ends[start]))
    return found


def _length_of_url(url: str) -> int:
    """The length without the punctuation that ends a sentence or closes a bracket opened before the URL."""
    surplus = {close: url.count(close) - url.count(opening) for opening, close in ("()", "[]", "{}")}
    end = len(url)
    while end:
        last = url[end - 1]
        if last in surplus and surplus[last] > 0:
            surplus[last] -= 1
        elif last not in ".,;:!?'*([{":
            break
        end -= 1
    scheme = url.find("://") + 3 if "://" in url else len("mailto:" if url.startswith("mailto:") else "www.")
    return end if end > scheme else 0


def _stays(entity: str) -> bool:
    """Whether an entity in plain text is a thing of its own: a space, a control or a symbol.

    Letters, digits, punctuation and everything of ASCII belong to words and sentences, which translation changes.
    """
    characters = html.unescape(entity)
    return len(characters) == 1 and not characters.isascii() and unicodedata.category(characters)[0] in "ZCS"
