"""A folder of prepared data: what lies in it, and whether it is whole.

It holds the stores ``train`` and ``validation``, the tokenizer files of a model folder, the text of validation and test
for decoding, one sentence a line, and last of all ``prepared.json``, without which the rest does not count.
"""

import shutil
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from headway.corpus.clean import FilterRow
from headway.corpus.lines import read_lines
from headway.corpus.overlap import Overlap
from headway.data.store import Store
from headway.errors import HeadwayError
from headway.folder.atomic import replace_file
from headway.folder.contents import SHARED_TOKENIZER_FILE, SOURCE_TOKENIZER_FILE, TARGET_TOKENIZER_FILE
from headway.text.tokenizer import Tokenizer

MARKER = "prepared.json"


@dataclass(frozen=True, slots=True)
class Dropped:
    """Pairs left out of a store, and the lines of the first three, from 1, in the file that they came from."""

    count: int
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Encoded:
    """What went into a store, tokens counted without EOS, and what did not."""

    pairs: int
    source_tokens: int
    target_tokens: int
    too_long: Dropped  # more than data.max_tokens on a side, EOS counted
    empty: Dropped  # in validation text only: cleaning takes them out of the training text


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """What became of one training corpus; every pair read is kept, held out, too long, or dropped by a filter."""

    name: str  # its source file, as the recipe has it
    tag: str  # before each source; "": none
    weight: float  # how often each pair comes in an epoch, on average
    pairs_read: int
    pairs_clean: int
    cleaning: tuple[FilterRow, ...]
    held_out: int
    pairs: int  # to train on
    too_long: Dropped  # of the rest


@dataclass(frozen=True, slots=True)
class Report:
    """What preparing did, in numbers, of all corpora together. ``digest`` stands for all input and settings.

    ``tags`` has the tag of each part of validation and test text: so many pairs of one tag, then so many of the next.
    """

    digest: str
    pairs_read: int
    pairs_clean: int
    cleaning: tuple[FilterRow, ...]
    held_out: int  # 0 when validation files are named
    source_vocab_size: int  # real ones: a small corpus gives fewer tokens than asked for
    target_vocab_size: int
    train: Encoded
    validation: Encoded
    validation_overlap: Overlap  # of validation text with the training text
    test_overlap: Overlap | None  # absent: no test files are named
    corpora: tuple[CorpusReport, ...]
    learnt_pairs: int  # that the vocabulary was learnt from, of all that could be trained on
    tags: dict[str, list[tuple[str, int]]]  # by part
    gaps: dict[str, Dropped]  # by part: units of TMX and the like that lack a side, and are not scored
    labels: tuple[str, ...] = ()  # of labelled text, in the order of their ids


@dataclass(frozen=True, slots=True)
class Prepared:
    """A folder of prepared data, complete."""

    folder: Path
    report: Report
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer  # the same object with a shared vocabulary

    def store(self, part: str) -> Store:
        """The store of ``train`` or ``validation``."""
        return Store.open(self.folder / part)

    def texts(self, part: str) -> tuple[list[str], list[str]]:
        """Sources and references of ``validation`` or ``test``: every pair of the file, in its order, uncleaned.

        Units that lack a side, which ``report.gaps`` counts, are none.
        """
        paths = text_paths(self.folder, part)
        return list(read_lines(paths[0])), list(read_lines(paths[1]))

    def tags(self, part: str) -> list[str]:
        """The tag of each pair of ``validation`` or ``test``, as ``texts`` has them; "" where there is none."""
        return [tag for tag, count in self.report.tags[part] for _ in range(count)]

    def known_tags(self) -> tuple[str, ...]:
        """The tags that sources were trained with, "" among them if some had none; nothing where none had a tag."""
        tags = dict.fromkeys(corpus.tag for corpus in self.report.corpora)
        return tuple(tags) if any(tags) else ()


def text_paths(folder: Path, part: str) -> tuple[Path, Path]:
    """The files of sources and references of ``validation`` or ``test``."""
    return folder / f"{part}.source.txt", folder / f"{part}.reference.txt"


def put_in_place(prepared: Prepared, folder: Path) -> Prepared:
    """Move what was prepared beside a folder into it, in place of what an earlier preparation left; all else stays.

    The marker goes first and comes last: a kill in between leaves a folder that is not whole.
    """
    (folder / MARKER).unlink(missing_ok=True)
    texts = (*text_paths(folder, "validation"), *text_paths(folder, "test"))
    for path in (*texts, *_tokenizer_paths(folder, shared=True), *_tokenizer_paths(folder, shared=False)):
        path.unlink(missing_ok=True)
    for path in sorted(prepared.folder.iterdir(), key=lambda path: path.name == MARKER):
        place = folder / path.name
        if place.is_dir():
            shutil.rmtree(place)
        path.rename(place)
    return replace(prepared, folder=folder)


def write_tokenizers(folder: Path, source: Tokenizer, target: Tokenizer) -> None:
    """Write the tokenizers: one file when both sides have the same."""
    paths = _tokenizer_paths(folder, shared=source is target)
    for path, tokenizer in {paths[0]: source, paths[1]: target}.items():
        with replace_file(path) as file:
            file.write(tokenizer.to_json().encode())


def write_report(folder: Path, report: Report) -> None:
    """Write the marker, which makes the folder complete."""
    with replace_file(folder / MARKER) as file:
        file.write(_report_adapter().dump_json(report, indent=2) + b"\n")


def read_prepared(folder: Path) -> Prepared | None:
    """What lies in a folder, if it is whole: anything missing, damaged or of another version gives None."""
    try:
        report = _report_adapter().validate_json((folder / MARKER).read_bytes())
        prepared = Prepared(folder, report, *_read_tokenizers(folder))
        counts = [len(prepared.store(part)) for part in ("train", "validation")]
    except (OSError, ValueError, HeadwayError):
        return None
    paths = [*text_paths(folder, "validation"), *(text_paths(folder, "test") if report.test_overlap else ())]
    whole = counts == [report.train.pairs, report.validation.pairs] and all(path.is_file() for path in paths)
    return prepared if whole else None


def _tokenizer_paths(folder: Path, *, shared: bool) -> tuple[Path, Path]:
    names = (SHARED_TOKENIZER_FILE,) * 2 if shared else (SOURCE_TOKENIZER_FILE, TARGET_TOKENIZER_FILE)
    return folder / names[0], folder / names[1]


def _read_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    shared = (folder / SHARED_TOKENIZER_FILE).exists()
    source, target = _tokenizer_paths(folder, shared=shared)
    source_tokenizer = Tokenizer.from_json(source.read_text(encoding="utf-8"))
    return source_tokenizer, source_tokenizer if shared else Tokenizer.from_json(target.read_text(encoding="utf-8"))


@cache
def _report_adapter() -> TypeAdapter[Report]:
    return TypeAdapter(Report)
