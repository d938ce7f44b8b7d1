"""The work folder of a table: every finished row is a JSON record there, so that a stopped command goes on."""

import json
import re
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

from headway.errors import PaperError
from headway.folder.atomic import replace_file
from headway.paper.events import PaperEvent, RowBegun, RowKept
from headway.train.events import Notice

FORMAT = "headway-paper-row-2"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LONGEST_SHOWN = 40  # characters of a setting in a message

Values = Mapping[str, object]  # whatever JSON holds
Making = Generator[PaperEvent, None, Values | None]  # gives the values of a row, None when it was asked to stop


class WorkFolder:
    """``rows/NAME.json`` for each finished row, ``runs/NAME`` for the training run of a row that has one.

    Example, in a generator of PaperEvents::

        work = WorkFolder(out)
        for number, name in enumerate(names, start=1):
            settings = {"width": 128, "steps": 300}
            values = yield from work.row(name, settings, make, number=number, total=len(names))
            if values is None:
                return  # interrupted; the same call goes on

    ``make()`` is a generator too: it yields events and returns the values. It is called only where no record with
    equal settings is there; one with other settings is told of, with what changed, and its training may go on.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def run_folder(self, name: str) -> Path:
        """Where a row's training run lies: the same place for the same name, so that ``train`` resumes there."""
        return self.path / "runs" / _checked(name)

    def row(
        self, name: str, settings: Values, make: Callable[[], Making], *, number: int, total: int
    ) -> Generator[PaperEvent, None, Values | None]:
        """Give the values of a row: those on the disk, or new ones, which are then put there."""
        values, notices = self.find(name, settings)
        yield from (Notice(text) for text in notices)
        if values is not None:
            yield RowKept(name, is_new=False)
            return values
        yield RowBegun(name, number, total)
        values = yield from make()
        if values is None:
            return None
        self.keep(name, settings, values)
        yield RowKept(name, is_new=True)
        return _plain(values)

    def find(self, name: str, settings: Values) -> tuple[Values | None, list[str]]:
        """The values of a finished row of equal settings, and what there is to tell where there is none."""
        path = self._path(name)
        if not path.is_file():
            return None, []
        record = _read(path)
        if record is None:
            return None, [f"{path} is damaged; row {name} is made anew"]
        found, wanted = record["settings"], _plain(settings)
        keys = [key for key in {**wanted, **found} if found.get(key) != wanted.get(key)]
        if not keys:
            return record["values"], []
        named = "; ".join(f"{key} was {_shown(found.get(key))}, is {_shown(wanted.get(key))}" for key in keys)
        return None, [f"row {name} has other settings now, and is worked on again: {named}"]

    def keep(self, name: str, settings: Values, values: Values) -> None:
        """Write a finished row; it is there whole, or not at all."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        record = {"format": FORMAT, "row": name, "settings": settings, "values": values}
        with replace_file(path) as file:
            file.write((json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode("utf-8"))

    def _path(self, name: str) -> Path:
        return self.path / "rows" / f"{_checked(name)}.json"


def _checked(name: str) -> str:
    """A row's name is a file's name."""
    if NAME.fullmatch(name) is None:
        raise PaperError(
            f"paper/work: {name!r} cannot be the name of a row, which is a file's; wanted letters, digits and . _ - "
            "after the first."
        )
    return name


def _plain(values: Values) -> Values:
    """As JSON gives them back: lists for tuples, text for keys."""
    return json.loads(json.dumps(values))


def _read(path: Path) -> dict[str, Values] | None:
    """A record, None where the file holds none."""
    try:
        record = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        return None
    parts = [record.get(key) for key in ("settings", "values")]
    return record if all(isinstance(part, dict) for part in parts) else None


def _shown(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."
