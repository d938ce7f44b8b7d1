"""Shards around a job that shouts: their union is what one process writes, whatever was killed or damaged between."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.bulk.job import Job, Result, Survey, check_files, survey
from headway.bulk.part import journal_path, open_part, part_path
from headway.bulk.shard import translate_shard
from headway.corpus.lines import read_lines
from headway.errors import CorpusError, TranslationError

SETTINGS = {"model": "abc", "--format": "lines"}
LINES = ["", "  ", "one\u2028two", "three\u0085", "a\rb", "vier", "\tfive"]


def rows(path):
    return ((line, ()) for line in read_lines(path))


def shouting(*, calls=None, seconds=0.0):
    """Each line in capitals, with its number and the first line of its chunk, so that a shift would show."""

    def translate(chunk):
        if calls is not None:
            calls.append(chunk.number)
        time.sleep(seconds)
        numbered = list(enumerate((line for line, _ in chunk.rows), start=chunk.first_line))
        records = [f"{number}/{chunk.first_line} {line.upper()}" for number, line in numbered]
        return Result(records, {"blank": [number for number, line in numbered if not line.strip()]})

    return translate


def job_of(path, *, chunk=5, **options):
    return Job(partial(rows, path), lambda: shouting(**options), chunk=chunk)


def write_input(path, count, *, end="\n"):
    lines = [LINES[number % len(LINES)] for number in range(count)]
    path.write_bytes("".join(line + "\n" for line in lines[:-1]).encode() + "".join(lines[-1:]).encode() + end.encode())
    return path


def expected(path, *, chunk=5):
    """Without the code under test: chunks of ``chunk`` lines, numbered."""
    content = path.read_bytes().decode()
    lines = content.split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    return "".join(f"{n + 1}/{n // chunk * chunk + 1} {line.upper()}\n" for n, line in enumerate(lines)).encode()


def shard(job, out, index, count, **settings):
    return translate_shard(job, str(out), index=index, count=count, settings={**SETTINGS, **settings})


@pytest.mark.parametrize("count", range(1, 8))
@pytest.mark.parametrize(("num_lines", "end"), [(0, ""), (1, ""), (4, "\n"), (13, ""), (37, "\n"), (101, "")])
def test_shards_in_any_order_write_what_one_process_writes(tmp_path, count, num_lines, end):
    source, out = write_input(tmp_path / "in", num_lines, end=end), tmp_path / "out"
    order = Random(count + num_lines).sample(range(1, count + 1), count)
    reports = {}
    for index in order:
        assert not out.exists()
        reports[index] = shard(job_of(source), out, index, count)
    assert out.read_bytes() == expected(source)
    assert reports[order[-1]].waiting == ()
    assert all(report.waiting for index, report in reports.items() if index != order[-1])
    blank = [number for index in range(1, count + 1) for number in reports[index].notes.get("blank", [])]
    lines = expected(source).decode().split("\n")[:-1]
    assert blank == [number for number, line in enumerate(lines, 1) if not line.split(" ", 1)[1].strip()]
    firsts = [reports[index].first_line for index in range(1, count + 1)]
    sizes = [reports[index].num_lines for index in range(1, count + 1)]
    assert firsts == [1 + sum(sizes[:place]) for place in range(count)]
    assert sum(sizes) == len(lines)


@given(sizes=st.lists(st.integers(1, 99), max_size=31), count=st.integers(1, 17))
def test_shares_are_neighbours_that_hold_every_chunk_once_and_none_is_far_too_large(sizes, count):
    seen = Survey(tuple(sizes), ("",) * len(sizes))
    shares = seen.shares(count)
    assert [number for share in shares for number in share] == list(range(len(sizes)))
    for share in shares:
        assert sum(sizes[number] for number in share) <= seen.lines / count + max(sizes, default=0)


def test_a_finished_shard_is_not_translated_again(tmp_path):
    source, out = write_input(tmp_path / "in", 37), tmp_path / "out"
    shard(job_of(source), out, 1, 1)
    calls = []
    report = shard(job_of(source, calls=calls), out, 1, 1)
    assert calls == []
    assert report.num_found == report.num_lines == 37


def test_only_the_last_chunk_is_redone_after_a_stop_at_any_byte(tmp_path):
    """As a kill may leave them: the journal of some chunks, and data that goes on beyond it, or not."""
    source, out = write_input(tmp_path / "in", 37), tmp_path / "out"
    shard(job_of(source), out, 1, 1)
    part = part_path(str(out), 1, 1)
    data, journal = part.read_bytes(), journal_path(part).read_bytes()
    header_end = journal.index(b"\n") + 1
    random = Random(5)
    for journal_size in [0, 1, header_end - 1, *random.sample(range(header_end, len(journal)), 23)]:
        entries = [json.loads(line) for line in journal[:journal_size].split(b"\n")[:-1]][1:]
        written = sum(entry[2] for entry in entries)
        journal_path(part).write_bytes(journal[:journal_size])
        part.write_bytes(data[: random.randint(written, len(data))])
        if journal_size < header_end:
            part.unlink()
        out.unlink()
        calls = []
        report = shard(job_of(source, calls=calls), out, 1, 1)
        assert calls == list(range(len(entries), 8))
        assert report.num_found == sum(entry[1] for entry in entries)
        assert out.read_bytes() == expected(source)
        assert (part.read_bytes(), journal_path(part).read_bytes()) == (data, journal)


def test_damaged_data_are_found_and_done_again(tmp_path):
    source, out = write_input(tmp_path / "in", 37), tmp_path / "out"
    shard(job_of(source), out, 1, 2)
    part = part_path(str(out), 1, 2)
    data = bytearray(part.read_bytes())
    data[-1] ^= 1
    part.write_bytes(data)
    with pytest.raises(TranslationError, match=r"out\.part-1-of-2 is not as it was written: chunk 4 differs"):
        shard(job_of(source), out, 2, 2)
    assert not out.exists()
    calls = []
    shard(job_of(source, calls=calls), out, 1, 2)
    assert calls == [3]
    assert out.read_bytes() == expected(source)


def test_other_settings_or_another_input_are_refused_by_name_before_any_work(tmp_path):
    source, out = write_input(tmp_path / "in", 37), tmp_path / "out"
    shard(job_of(source), out, 1, 2)
    before = part_path(str(out), 1, 2).read_bytes()
    calls = []
    for index in (1, 2):
        with pytest.raises(TranslationError, match="part-1-of-2 was begun otherwise: model: there abc, now xyz"):
            shard(job_of(source, calls=calls), out, index, 2, model="xyz")
        with pytest.raises(TranslationError, match=r"begun otherwise: .*chunk: there 5, now 3"):
            shard(job_of(source, calls=calls, chunk=3), out, index, 2)
    write_input(tmp_path / "in", 38)
    with pytest.raises(TranslationError, match=r"begun otherwise: input: .*; lines: there 37, now 38"):
        shard(job_of(source, calls=calls), out, 2, 2)
    assert calls == []
    assert part_path(str(out), 1, 2).read_bytes() == before


def test_a_file_that_is_no_part_is_left_alone(tmp_path):
    source, out = write_input(tmp_path / "in", 3), tmp_path / "out"
    part = part_path(str(out), 1, 1)
    part.write_text("mine")
    with pytest.raises(TranslationError, match="exists and is no part that Headway began"):
        shard(job_of(source), out, 1, 1)
    part.unlink()
    journal_path(part).write_text("mine\n")
    with pytest.raises(TranslationError, match="is no part that Headway began"):
        shard(job_of(source), out, 1, 1)
    assert journal_path(part).read_text() == "mine\n"


def test_a_shard_at_work_is_not_taken_by_a_second_process(tmp_path):
    source, out = write_input(tmp_path / "in", 3), tmp_path / "out"
    path = part_path(str(out), 1, 1)
    header = {"format": "headway-part-1"}
    with (
        open_part(path, header, range(1)),
        pytest.raises(TranslationError, match="another process is writing"),
        open_part(path, header, range(1)),
    ):
        pass
    path.unlink()
    journal_path(path).unlink()
    shard(job_of(source), out, 1, 1)


@pytest.mark.parametrize("after", ["vier\n" * 36, "vier\n" * 40, "FIVE" + "vier\n" * 37, ""])
def test_an_input_that_changes_under_way_is_refused(tmp_path, after):
    source, out = write_input(tmp_path / "in", 37), tmp_path / "out"

    def load():
        source.write_text(after)
        return shouting()

    with pytest.raises(TranslationError, match="the input changed while it was translated: chunk"):
        translate_shard(Job(partial(rows, source), load, chunk=5), str(out), index=1, count=1, settings=SETTINGS)
    assert not out.exists()


def test_what_can_be_read_only_once_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("-", str(tmp_path / "pipe")):
        with pytest.raises(CorpusError, match="is no file; each process reads the input from its start"):
            check_files([path])
    check_files([str(write_input(tmp_path / "in", 3))])


def test_phrases_are_part_of_the_input(tmp_path):
    source = write_input(tmp_path / "in", 3)
    with_phrases = Job(lambda: ((line, ("x",)) for line in read_lines(source)), shouting)
    assert survey(job_of(source)).digest != survey(with_phrases).digest


KILLED = """
import sys
sys.path.insert(0, {folder!r})
from test_bulk_shard import job_of, shard
print("ready", flush=True)
shard(job_of(sys.argv[1], seconds=0.01), sys.argv[2], int(sys.argv[3]), 2)
"""


def test_shards_killed_at_random_moments_and_started_again_write_the_same_bytes(tmp_path):
    source, out = write_input(tmp_path / "in", 301), tmp_path / "out"
    program = KILLED.format(folder=str(Path(__file__).parent))
    random = Random(7)
    kills = 0
    for index in (1, 2):
        for _ in range(3):
            arguments = [sys.executable, "-c", program, str(source), str(out), str(index)]
            with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
                process.stdout.readline()
                time.sleep(random.uniform(0.0, 0.2))
                process.send_signal(signal.SIGKILL)
            kills += process.returncode == -signal.SIGKILL
        shard(job_of(source), out, index, 2)
    assert kills >= 4
    assert out.read_bytes() == expected(source)
