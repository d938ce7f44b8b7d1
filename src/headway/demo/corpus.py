"""The demo corpus as files, the same plain pairs of files that a user would bring."""

from pathlib import Path

from headway.corpus.lines import open_writer
from headway.demo.phrases import SOURCE, Parts

KINDS_FILE = "test.kinds"


def write_corpus(folder: Path, parts: Parts, *, target: str) -> None:
    """Write train, validation and test into `folder` as line-aligned files named by language, and `test.kinds`.

    Line n of ``test.kinds`` names the kind of line n of the test files. The folder is made when it is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, phrases in zip(Parts._fields, parts, strict=True):
        _write_lines(folder / f"{name}.{SOURCE}", [phrase.source for phrase in phrases])
        _write_lines(folder / f"{name}.{target}", [phrase.target for phrase in phrases])
    _write_lines(folder / KINDS_FILE, [phrase.kind for phrase in parts.test])


def _write_lines(path: Path, lines: list[str]) -> None:
    with open_writer(path) as stream:
        stream.writelines(f"{line}\n" for line in lines)
