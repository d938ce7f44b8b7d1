"""The documents as tests read them: fenced blocks, links, and the options that a command line names."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
ROOT_PAGES = sorted(ROOT.glob("*.md"))

_FENCE = re.compile(r"^```(\w*)\s*$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its kind (sh, console, text, python, toml ...), its text and its first line's number."""

    page: Path
    kind: str
    text: str
    line: int

    @property
    def name(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    kind, inside = "", None
    for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), start=1):
        fence = _FENCE.match(line)
        if inside is None and fence:
            kind, inside, first = fence[1], [], number + 1
        elif inside is not None and line == "```":
            found.append(Block(page, kind, "\n".join(inside) + "\n", first))
            inside = None
        elif inside is not None:
            inside.append(line)
    assert inside is None, f"{page}: a fenced block is not closed"
    return found


def links(page: Path) -> Iterator[str]:
    yield from _LINK.findall(page.read_text(encoding="utf-8"))


def command_lines(text: str) -> Iterator[list[str]]:
    """The words of every `headway ...` in a shell text, without pipes and redirections."""
    for line in text.replace("\\\n", " ").split("\n"):
        if "headway" not in line:
            continue
        words = list(shlex.shlex(line.removeprefix("$ ").strip(), posix=True, punctuation_chars="|<>;&"))
        while "headway" in words:
            words = words[words.index("headway") + 1 :]
            end = next((place for place, word in enumerate(words) if word and set(word) <= set("|<>;&")), len(words))
            yield words[:end]


def table_rows(page: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every row of every table, headings included."""
    for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), start=1):
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            yield number, [cell.strip() for cell in cells]
