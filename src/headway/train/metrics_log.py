"""``metrics.jsonl``: one JSON object a line for every step, validation and warning of a run."""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headway.folder.atomic import replace_file
from headway.train.events import Event, StepDone, Validated, Warned

METRICS_FILE = "metrics.jsonl"  # in a run's training folder
NAMES = {StepDone: "step", Validated: "validation", Warned: "warning"}


class MetricsLog:
    """Appends events; what a resumed run will do again is taken out first, so that every step stands once.

    Steps up to ``resume_step`` are done, and the validations of ``validated_steps`` with their warnings; what was
    warned of before the first step (0) stays too.
    """

    def __init__(self, path: Path, *, resume_step: int, validated_steps: Collection[int]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        done = {
            "step": range(resume_step + 1),
            "validation": validated_steps,
            "warning": {0, *validated_steps},
        }
        kept = [line for line, record in _records(path) if _belongs(record, done)]
        with replace_file(path) as file:
            file.write("".join(line + "\n" for line in kept).encode("utf-8"))
        self._file = path.open("a", encoding="utf-8", newline="\n")

    def write(self, event: Event) -> None:
        """Append a step, a validation or a warning; other events are not metrics."""
        if isinstance(event, StepDone | Validated | Warned):
            record: dict[str, Any] = {"event": NAMES[type(event)], **asdict(event)}
            self._file.write(json.dumps(record, ensure_ascii=False) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Release the file."""
        self._file.close()


def read_validations(path: Path) -> list[dict[str, Any]]:
    """The validations of a run, finished or under way, as its log has them; none where there is no log."""
    return [record for _, record in _records(path) if record.get("event") == NAMES[Validated]]


def _records(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The lines that are JSON objects, with what they say: a kill may have cut the last one short."""
    if not path.exists():
        return []
    lines = path.read_bytes().decode("utf-8", errors="replace").split("\n")
    return [(line, record) for line in lines if (record := _object(line)) is not None]


def _belongs(record: dict[str, Any], done: Mapping[str, Collection[int]]) -> bool:
    step = record.get("step")
    return isinstance(step, int) and step in done.get(str(record.get("event")), ())


def _object(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
