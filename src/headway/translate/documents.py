"""Documents of translators: their open segments translated, and all else left as it is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import tee

from headway.corpus.compression import FilePath
from headway.corpus.document import document_format
from headway.corpus.segment import Segment
from headway.text.markup import parse
from headway.translate.decoding import Decoding
from headway.translate.marked import EMPTY, MarkedTranslation, translate_parsed_lines
from headway.translate.translator import Translator

WORDLESS = "with an empty translation"
MARKUP = "with tags or placeholders that are not those of the source"
MENDED = "with tags or placeholders that were put in or taken out without the model"
CUT = "reached the length limit, so the translation may be incomplete"
UNKNOWN = "with characters outside the model's vocabulary, which it saw as one unknown token"
BROKEN = "with more or fewer lines than the source"


@dataclass(frozen=True, slots=True)
class Problem:
    """What a translator has to look at. ``kind`` is one of the constants above; ``details`` say more, if need be.

    ``number`` is the segment's, ``line`` where its source begins in the file.
    """

    number: int
    line: int
    kind: str
    details: tuple[str, ...] = ()


@dataclass(slots=True)
class DocumentReport:
    """What became of a document's segments; every segment is counted once."""

    num_filled: int = 0
    num_kept: int = 0  # that had a translation
    num_left: int = 0  # that the document wants left alone, or that are blank
    problems: list[Problem] = field(default_factory=list[Problem])  # of filled segments

    @property
    def num_segments(self) -> int:
        """All segments."""
        return self.num_filled + self.num_kept + self.num_left


def translate_document(
    translator: Translator,
    path: FilePath,
    out: FilePath,
    *,
    decoding: Decoding | None = None,
    batch_tokens: int | None = None,
    numbers: bool = False,
    overwrite: bool = False,
    for_review: bool = True,
    on_progress: Callable[[DocumentReport], None] | None = None,
) -> DocumentReport:
    """Write a copy of a document in which the open segments (with ``overwrite`` all) have their translations.

    The suffix of ``path`` tells the format; ``out`` may be ``path``. Segments that the document marks as not to be
    translated and blank ones are left as they are. ``numbers`` compares numbers with those of the source, as tags and
    placeholders always are. ``for_review`` marks what was filled as in need of review, where
    the format has a word for it. ``on_progress`` hears of the counts after each segment. Memory holds a chunk of
    segments and the report.

    Raises:
        CorpusError: the document is damaged, or for other languages than the model; ``out`` cannot be written.
        TranslationError: settings that the model cannot meet.

    """
    document = document_format(path)
    languages = translator.source_language, translator.target_language
    report = DocumentReport()
    segments = document.read_segments(path, source_language=languages[0], target_language=languages[1])
    chosen, kept = tee(_choose(segments, report, overwrite=overwrite))
    translations = translate_parsed_lines(
        translator,
        (parse(segment.source, syntax=segment.syntax, numbers=numbers) for segment in chosen),
        decoding=decoding,
        batch_tokens=batch_tokens,
    )

    def targets() -> Iterator[tuple[int, str]]:
        for segment, translation in zip(kept, translations, strict=True):
            report.num_filled += 1
            report.problems += _problems(segment, translation)
            if on_progress:
                on_progress(report)
            yield segment.number, translation.text

    document.write_targets(
        path, out, targets(), source_language=languages[0], target_language=languages[1], for_review=for_review
    )
    return report


def _choose(segments: Iterator[Segment], report: DocumentReport, *, overwrite: bool) -> Iterator[Segment]:
    """The segments to translate; the others are counted."""
    for segment in segments:
        if not segment.translate or not segment.source.strip():
            report.num_left += 1
        elif not segment.is_open and not overwrite:
            report.num_kept += 1
        else:
            yield segment


def _problems(segment: Segment, marked: MarkedTranslation) -> Iterator[Problem]:
    """What a translator has to look at in one translation."""
    place = segment.number, segment.line
    if EMPTY in marked.problems:
        yield Problem(*place, WORDLESS)
    details = tuple(problem for problem in marked.problems if problem != EMPTY)
    if details:
        yield Problem(*place, MARKUP, details)
    if marked.notes:
        yield Problem(*place, MENDED, marked.notes)
    if marked.text.count("\n") != segment.source.count("\n"):
        yield Problem(*place, BROKEN)
    if marked.translation.is_cut:
        yield Problem(*place, CUT)
    if marked.translation.num_unknown:
        yield Problem(*place, UNKNOWN)
