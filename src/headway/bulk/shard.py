"""One process of several, each with its share of the lines; whichever ends last joins the parts.

Parts are never removed: a process that is started again finds its work done, and may join again.
"""

from dataclasses import dataclass, field
from itertools import islice

from headway.bulk.job import Job, Survey, read_chunks, survey
from headway.bulk.part import FORMAT, Entry, Part, check_header, open_part, part_path, read_part, read_text
from headway.corpus.lines import open_writer


@dataclass(frozen=True, slots=True)
class ShardReport:
    """What a process did: its first line, its lines, how many of them were there before, and all of the input.

    ``waiting`` are the processes (from 1) whose parts are not whole yet; without any, the output was written.
    ``notes``: the numbers of this share's lines by what is to be told.
    """

    first_line: int
    num_lines: int
    num_found: int
    num_all: int
    waiting: tuple[int, ...]
    notes: dict[str, list[int]] = field(default_factory=dict[str, list[int]])


def translate_shard(job: Job, out: str, *, index: int, count: int, settings: dict[str, str]) -> ShardReport:
    """Translate the share of process ``index`` (from 1) of ``count`` into its part file, going on where it stopped.

    ``settings`` are all that the output depends on but the input; parts with others do not go together. Raises
    TranslationError for such, CorpusError for an input that cannot be read or an output that cannot be written.
    """
    seen = survey(job)
    header = _header(seen, job, settings)
    _finished(out, count, seen, header)  # other parts that do not go together are refused before the work
    chunks = seen.shares(count)[index - 1]
    own = {**header, "shard": f"{index}/{count}"}
    with open_part(part_path(out, index, count), own, chunks) as part:
        num_found = sum(entry.lines for entry in part.entries)
        _go_on(job, part, chunks[len(part.entries) :], seen)
        entries = list(part.entries)
    waiting = _join(out, count, seen, header)
    notes: dict[str, list[int]] = {}
    for entry in entries:
        for name, numbers in entry.notes.items():
            notes.setdefault(name, []).extend(numbers)
    return ShardReport(
        first_line=sum(seen.sizes[: chunks.start]) + 1,
        num_lines=sum(entry.lines for entry in entries),
        num_found=num_found,
        num_all=seen.lines,
        waiting=waiting,
        notes=notes,
    )


def _header(seen: Survey, job: Job, settings: dict[str, str]) -> dict[str, str]:
    """What all parts of one output have in common."""
    return {"format": FORMAT, "input": seen.digest, "lines": str(seen.lines), "chunk": str(job.chunk), **settings}


def _go_on(job: Job, part: Part, chunks: range, seen: Survey) -> None:
    """Translate these chunks and put each on the disk."""
    if not chunks:
        return
    translate = job.load()
    for chunk in islice(read_chunks(job), chunks.start, chunks.stop):
        seen.check(chunk.number, chunk.digest())
        part.append(chunk.number, translate(chunk))
    if not part.entries or part.entries[-1].chunk != chunks[-1]:
        seen.check(chunks[-1], "")  # it is not there any more


def _finished(out: str, count: int, seen: Survey, header: dict[str, str]) -> dict[int, list[Entry]]:
    """The chunks of every part that is whole. Raises TranslationError where a part does not go with these settings."""
    whole: dict[int, list[Entry]] = {}
    for index, share in enumerate(seen.shares(count), start=1):
        path = part_path(out, index, count)
        found = read_part(path)
        if found is None:
            continue
        check_header(path, found[0], {**header, "shard": f"{index}/{count}"})
        if [entry.chunk for entry in found[1]] == list(share):
            whole[index] = found[1]
    return whole


def _join(out: str, count: int, seen: Survey, header: dict[str, str]) -> tuple[int, ...]:
    """Write the output if all parts are whole, and give those that are not."""
    whole = _finished(out, count, seen, header)
    waiting = tuple(index for index in range(1, count + 1) if index not in whole)
    if not waiting:
        with open_writer(out) as writer:
            for index, entries in sorted(whole.items()):
                for text in read_text(part_path(out, index, count), entries):
                    writer.write(text)
    return waiting
