"""The claims that the paper makes in words: each a study by the name that its command has."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch

from headway.folder.atomic import replace_file
from headway.paper import averaging, length, order, scaling, smoothing, subwords, warmup
from headway.paper.events import PaperEvent
from headway.paper.study import Study, Workshop
from headway.paper.table import Table
from headway.paper.writing import to_dict
from headway.train.memory import settle_memory

CLAIMS: dict[str, Study] = {
    "scaling": scaling.STUDY,
    "length": length.STUDY,
    "order": order.STUDY,
    "warmup": warmup.STUDY,
    "smoothing": smoothing.STUDY,
    "averaging": averaging.STUDY,
    "subwords": subwords.STUDY,
}
Made = Mapping[str, object]  # a table as its JSON file has it


def made_studies(folder: Path) -> tuple[list[Made], list[str]]:
    """The studies whose tables lie in a folder, in the order of CLAIMS, and what there is to tell of those left out."""
    found: list[Made] = []
    told: list[str] = []
    for name in CLAIMS:
        path = folder / f"{name}.json"
        if not path.is_file():
            continue
        made = _read(path, name)
        if made is None:
            again = f"headway paper claims {name} --out {folder}"
            told.append(f"{path} is damaged and left out of the overview; {again} writes it again")
        else:
            found.append(made)
    return found, told


def overview(studies: Sequence[Made]) -> str:
    """The verdicts of several studies as one page of Markdown, and the command that made each."""
    lines = ["# Claims of the paper", "", "| study | section | claim | verdict |", "|---|---|---|---|"]
    for study in studies:
        name = str(study["name"])
        lines += [
            f"| [{name}]({name}.md) | {CLAIMS[name].section} | {claim['text']} | {claim['verdict']} |"
            for claim in _claims(study)
        ]
    lines += ["", *(f"- {study['name']}: made by `{study['command']}`" for study in studies)]
    return "\n".join([*lines, ""])


def to_json(studies: Sequence[Made]) -> str:
    """The studies as one JSON object: what each examines and by what protocol, and its whole table."""
    found = {"name": "claims", "studies": [{**_examined(str(study["name"])), **study} for study in studies]}
    return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def tables_json(tables: Sequence[Table]) -> str:
    """``to_json`` of tables that were just made."""
    return to_json([to_dict(table) for table in tables])


def write_overview(folder: Path) -> tuple[list[Path], list[str]]:
    """Write ``claims.md`` and ``claims.json`` of all studies in a folder; give the paths, and what there is to tell."""
    studies, told = made_studies(folder)
    texts = {"claims.md": overview(studies), "claims.json": to_json(studies)}
    for name, text in texts.items():
        with replace_file(folder / name) as file:
            file.write(text.encode("utf-8"))
    return [folder / name for name in texts], told


def make_claims(names: Sequence[str], workshop: Workshop) -> Iterator[PaperEvent]:
    """Make the studies one after another; each ends in a TableDone, unless the user asked to stop.

    For the whole process: memory is kept for the next step, and the threads are those of the extent, if it has any.
    """
    settle_memory()
    threads = workshop.extent.threads or torch.get_num_threads()
    for name in names:
        torch.set_num_threads(threads)  # a run on text before may have settled on another number
        table = yield from CLAIMS[name].make(workshop)
        if table is None:
            return


def _examined(name: str) -> dict[str, object]:
    study = CLAIMS[name]
    return {
        "section": study.section,
        "statement": study.statement,
        "protocol": study.protocol,
        "verdict_rests_on": study.verdict,
    }


def _claims(study: Made) -> list[Mapping[str, object]]:
    claims = study["claims"]
    assert isinstance(claims, list)
    return claims


def _read(path: Path, name: str) -> Made | None:
    """A table's file; None where it holds no table of that name."""
    try:
        made = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    if not isinstance(made, dict) or made.get("name") != name or not isinstance(made.get("command"), str):
        return None
    claims = made.get("claims")
    if not isinstance(claims, list):
        return None
    is_whole = all(isinstance(claim, dict) and {"text", "verdict"} <= claim.keys() for claim in claims)
    return made if is_whole else None
