"""A text longer than a model knows becomes pieces that it knows; joined again, the pieces are the text."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise

from headway.errors import TextError
from headway.text.tokenizer import check_encodable

WINDOW = 4000  # characters that the splitter sees at once: with Chinese its time is quadratic

_PARAGRAPH = re.compile(r"[^\n]*\n\s*|[^\n]+")
_CLAUSE = re.compile(r"[,;:.!?…–—][)\]\"'”’»]{0,3}\s+|[、。，；：！？،؛؟।][」』）”]{0,3}\s*")
_SPACE = re.compile(r"\s+")
_WIDE_SPACE = re.compile(r"[^\S\x00-\x7f]")  # white space of more than one byte

_JOINER = "\N{ZERO WIDTH JOINER}"
_EXTENDS = frozenset([_JOINER, *map(chr, range(0x1F3FB, 0x1F400)), *map(chr, range(0x1160, 0x1200))])  # skin, jamo
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))


def split_sentences(text: str, language: str) -> list[str]:
    r"""Split a text into sentences, each with the white space after it: ``"".join(...) == text``.

    ``language`` is a code such as ``de`` or ``pt-BR``; a language without rules of its own is split by those of
    English. A line end also ends a sentence. A sentence that runs on for thousands of characters may take the next
    one with it. Raises TextError for a lone surrogate.
    """
    check_encodable(text)
    code = re.split("[-_]", language.lower())[0] or "en"
    sentences: list[str] = []
    for paragraph in _PARAGRAPH.findall(text):
        for part in _split_paragraph(paragraph, code):
            if sentences and not (part.strip() and sentences[-1].strip()):  # white space is no sentence
                sentences[-1] += part
            else:
                sentences.append(part)
    return sentences


def split_long(text: str, language: str, *, max_length: int, length_of: Callable[[str], int]) -> list[str]:
    """Split a text into pieces of which ``length_of`` gives ``max_length`` at most: ``"".join(...) == text``.

    A text that is short enough stays whole. Otherwise each sentence is a piece; one that is still too long is cut after
    the last clause that fits, or else the last word, or else the last whole character. ``length_of`` is called on
    strings of about a piece's size, so the time grows with the length of the text.
    Raises TextError when a single character is too long.
    """
    if not text:
        return []
    if length_of(text) <= max_length:
        return [text]
    pieces: list[str] = []
    for sentence in split_sentences(text, language):
        if length_of(sentence) <= max_length:
            pieces.append(sentence)
        else:
            pieces.extend(_cut(sentence, max_length, length_of=length_of))
    return pieces


def _split_paragraph(paragraph: str, code: str) -> Iterator[str]:
    """Split what holds no line end but at its own end, window by window; the last sentence of one opens the next."""
    start, held = 0, list[str]()
    while start + WINDOW < len(paragraph):
        window = paragraph[start : start + WINDOW]
        sentences = _split_window(window, code)
        if len(sentences) == 1:
            held.append(window)
            start += len(window)
        else:
            yield "".join([*held, sentences[0]])
            yield from sentences[1:-1]
            held.clear()
            start += len(window) - len(sentences[-1])
    sentences = _split_window(paragraph[start:], code)
    yield "".join([*held, sentences[0]])
    yield from sentences[1:]


def _split_window(window: str, code: str) -> list[str]:
    """Split one window by the library; one in which it would lose text stays whole. There is at least one part.

    The library takes every white space for one byte long and fails at wider ones (``D\u3000.``), so it sees plain
    spaces in their places; the parts are cut from the window itself.
    """
    seen = _WIDE_SPACE.sub(" ", window)
    sentences = _segment(seen, code)
    if "".join(sentences) != seen:  # it has lost some among thousands of blank lines
        return [window]
    ends = list(accumulate(map(len, sentences)))
    return [window[start:end] for start, end in pairwise([0, *ends])]


def _segment(text: str, code: str) -> list[str]:
    """The library's sentences, without empty ones; the whole text where it fails."""
    # Compiled and without stubs, so pyright cannot see its function; imported here, as this room must load at once.
    from sentencex import segment  # noqa: PLC0415  # pyright: ignore[reportAttributeAccessIssue]

    try:
        return [sentence for sentence in segment(code, text) if sentence]
    except BaseException as error:  # a panic of compiled code is no Exception, and its class cannot be imported
        if type(error).__name__ != "PanicException":
            raise
        return [text]


def _cut(sentence: str, max_length: int, *, length_of: Callable[[str], int]) -> Iterator[str]:
    """Cut a sentence that is too long, from its start on, each time at the best place that leaves one that fits."""
    start, guess = 0, max(max_length, 1)
    while start < len(sentence):
        fit = _longest_fit(sentence, start, guess=guess, max_length=max_length, length_of=length_of)
        guess = fit - start
        end = fit
        if fit < len(sentence):
            end = _last_boundary(sentence, start, fit=fit)
            if length_of(sentence[start:end]) > max_length:  # rare: fewer characters, but a merge less
                end = fit
        yield sentence[start:end]
        start = end


def _longest_fit(sentence: str, start: int, *, guess: int, max_length: int, length_of: Callable[[str], int]) -> int:
    """Return up to where ``sentence`` fits from ``start`` on, to within a sixteenth of the most that does."""
    fits, high = 0, min(guess, len(sentence) - start)
    while length_of(sentence[start : start + high]) <= max_length:
        fits = high
        if start + fits == len(sentence):
            return len(sentence)
        high = min(2 * fits, len(sentence) - start)
    while high - fits > 1 + fits // 16:
        middle = (fits + high) // 2
        if length_of(sentence[start : start + middle]) <= max_length:
            fits = middle
        else:
            high = middle
    if not fits:
        character = sentence[start]
        raise TextError(
            f"text/segment: character U+{ord(character):04X} alone has length {length_of(character)}, pieces may "
            f"have {max_length}. Remedy: allow longer pieces."
        )
    return start + fits


def _last_boundary(sentence: str, start: int, *, fit: int) -> int:
    """Return the last good end, ``fit`` at most: after a clause, else a word, else a character with its marks."""
    for pattern in (_CLAUSE, _SPACE):
        ends = [match.end() for match in pattern.finditer(sentence, start, fit)]
        for end in reversed(ends):
            if not _splits_character(sentence, end):
                return end
    for end in range(fit, start, -1):
        if not _splits_character(sentence, end):
            return end
    return fit


def _splits_character(text: str, index: int) -> bool:
    """Tell whether a reader sees one character across ``index``: marks, joined emoji, flags, Hangul parts, CR LF."""
    before, after = text[index - 1 : index], text[index : index + 1]
    if not before or not after:
        return False
    if unicodedata.category(after).startswith("M") or after in _EXTENDS or before == _JOINER:
        return True
    if before in _FLAG_LETTERS and after in _FLAG_LETTERS:
        nearby = text[max(0, index - 1000) : index]
        return len(nearby) % 2 != len(nearby.rstrip(_FLAG_LETTERS)) % 2  # an odd number of letters: half a flag
    return before + after == "\r\n"
