"""A cluster of two workers on this machine: results in order, whatever dies, and failures in one line."""

import importlib.util
import os
import signal
from functools import partial
from pathlib import Path

import pytest
from test_bulk_shard import expected, rows, shouting, write_input

from headway.bulk import cluster as cluster_module
from headway.bulk.cluster import Cluster, Worker, translate_on_ray
from headway.bulk.job import Job
from headway.errors import MissingExtraError, TextError, TranslationError

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra ray")
pytestmark = [  # Ray's own, about itself and what it leaves to the garbage collector
    pytest.mark.filterwarnings(f"ignore::{name}")
    for name in ("DeprecationWarning", "FutureWarning", "ResourceWarning", "pytest.PytestUnraisableExceptionWarning")
]
LOCAL = Cluster(workers=2, threads=1)


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    """Workers find this file's functions by name, and the Headway that is tested."""
    places = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, places)))


def dying_once(marker):
    """Kills its own process at chunk 5, the first time that anybody comes there."""
    translate = shouting(seconds=0.02)

    def dying(chunk):
        if chunk.number == 5 and not Path(marker).exists():
            Path(marker).write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return translate(chunk)

    return dying


def failing():
    def translate(chunk):
        if chunk.number == 2:
            raise TextError("text/tokenizer: line 11 is beyond me. Leave it out.")
        return shouting()(chunk)

    return translate


def refusing():
    raise TextError("text/tokenizer: there is none. Bring one.")


def broken():
    raise ZeroDivisionError("a fault of ours")


def first_or_later(marker):
    """What computes: the engine where nobody has asked before, elsewhere torch."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return "torch float32"
    return "native int8"


def batch(*numbers):
    return {"item": list(numbers)}


@needs_ray
@pytest.mark.slow
def test_two_workers_one_of_them_killed_write_what_one_process_writes(tmp_path):
    source, marker = write_input(tmp_path / "in", 101, end=""), tmp_path / "killed"
    job = Job(partial(rows, source), partial(dying_once, str(marker)), chunk=5)
    results = list(translate_on_ray(job, LOCAL))
    assert "".join(record + "\n" for result in results for record in result.records).encode() == expected(source)
    assert [number for result in results for number in result.notes["blank"]] == [
        number for number in range(1, 102) if number % 7 in (1, 2)
    ]
    assert not Path(f"/proc/{marker.read_text()}").exists()


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "kind", "message"),
    [
        (failing, TextError, r"^text/tokenizer: line 11 is beyond me\. Leave it out\.$"),
        (refusing, TextError, r"^text/tokenizer: there is none\. Bring one\.$"),
        (broken, TranslationError, r"^bulk/cluster: a worker on the Ray cluster failed: .*[^\n]+$"),
    ],
)
def test_a_failure_in_a_worker_is_one_error_here_and_the_cluster_is_gone(tmp_path, load, kind, message):
    import ray

    source = write_input(tmp_path / "in", 37)
    with pytest.raises(kind, match=message):
        list(translate_on_ray(Job(partial(rows, source), load, chunk=5), LOCAL))
    assert not ray.is_initialized()


@needs_ray
@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_named(tmp_path):
    job = Job(partial(rows, write_input(tmp_path / "in", 3)), shouting)
    with pytest.raises(TranslationError, match=r"bulk/cluster: no Ray cluster at 127\.0\.0\.1:1: "):
        list(translate_on_ray(job, Cluster("127.0.0.1:1")))


@needs_ray
@pytest.mark.slow
def test_workers_that_compute_in_two_ways_are_refused_with_both_named(tmp_path):
    source, marker = write_input(tmp_path / "in", 101), tmp_path / "asked"
    # One worker is killed, so that at least two compute.
    load, computed_by = partial(dying_once, str(tmp_path / "killed")), partial(first_or_later, str(marker))
    with pytest.raises(TranslationError, match=r"by (native int8, another by torch|torch float32, another by native)"):
        list(translate_on_ray(Job(partial(rows, source), load, chunk=5, computed_by=computed_by), LOCAL))


@needs_ray
def test_an_input_without_lines_starts_no_cluster(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_module, "_connected", None)
    assert list(translate_on_ray(Job(partial(rows, write_input(tmp_path / "in", 0, end="")), shouting), LOCAL)) == []


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'headway\[ray\]'"):
        list(translate_on_ray(Job(partial(rows, tmp_path / "in"), shouting), LOCAL))


def test_a_worker_gives_any_chunk_in_any_order_and_its_failures_as_results(tmp_path):
    import json

    source = write_input(tmp_path / "in", 101)
    worker = Worker(Job(partial(rows, source), shouting, chunk=5))
    want = [line + "\n" for line in expected(source).decode().split("\n")[:-1]]
    for number in (0, 1, 7, 7, 3, 20, 4):
        (result,) = worker(batch(number))["result"]
        records = json.loads(result)["records"]
        assert [record + "\n" for record in records] == want[5 * number : 5 * number + 5]
    failed = Worker(Job(partial(rows, source), failing, chunk=5))
    assert [json.loads(result).get("error") for result in failed(batch(1, 2, 3))["result"]] == [None, "TextError", None]
    refused = Worker(Job(partial(rows, source), refusing, chunk=5))
    assert json.loads(refused(batch(0))["result"][0]) == {
        "error": "TextError",
        "message": "text/tokenizer: there is none. Bring one.",
    }


def test_a_worker_says_what_it_computes_by(tmp_path):
    import json

    job = Job(
        partial(rows, write_input(tmp_path / "in", 7)),
        shouting,
        chunk=5,
        computed_by=partial(first_or_later, str(tmp_path / "asked")),
    )
    told = [json.loads(Worker(job)(batch(0))["result"][0])["computed_by"] for _ in range(2)]
    assert told == ["native int8", "torch float32"]
