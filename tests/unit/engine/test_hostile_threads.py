"""The engine where threads, memory and processes end: nothing hangs, nothing crashes, and it goes on after.

What may end a process runs in one of its own.
"""

import os
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from packed_models import drawn_sources, packed_model, small_engine, write_packed

from headway.config.model_config import ModelConfig
from headway.errors import CancelledError
from headway.search.cancel import Cancel
from headway.search.settings import SearchSettings

native = pytest.importorskip("headway_native", reason="headway-native is not built here")

NEVER_ENDS = SearchSettings(beam_size=2, reserved=(3,))  # no output has EOS before its limit
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
IS_SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
needs_limit = pytest.mark.skipif(
    not Path("/proc/self/statm").exists() or IS_SANITIZED,
    reason="memory can be limited on Linux alone, and not under a sanitizer, which reserves all of it",
)

BEGINNING = """
    import os, signal, sys, threading, time
    from pathlib import Path
    from headway.engine.engine import Engine
    from headway.engine.packed import read_packed
    from headway.errors import EngineError
    from headway.search.settings import SearchSettings

    packed = read_packed(Path(sys.argv[1]))
    sentences = [[4 + place % 50, 5, 6 + place % 7, 3] for place in range(9)]

    def search(engine, limit=11, cancel=None, **settings):
        return engine.search(
            sentences,
            prefixes=[()] * 9,
            limits=[limit] * 9,
            settings=SearchSettings(beam_size=3, **settings),
            cancel=cancel,
        )

    def search_for_ever(engine, cancel=None):
        return search(engine, 1 << 24, cancel, reserved=(3,))
"""


def run(tmp_path, script, packed=None):
    """Run the script in a process of its own, which must end by itself; what it wrote to the errors comes back."""
    path = write_packed(tmp_path / "packed.safetensors", packed or packed_model())
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BEGINNING) + textwrap.dedent(script), str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


@needs_limit
@pytest.mark.parametrize("long", [0, 1], ids=["the caller's thread", "a helper's thread"])
def test_memory_that_ends_on_any_thread_is_an_error_and_the_engine_goes_on(tmp_path, long):
    # Pairs are shared by length of target: the first is the caller's. Its source alone decides where memory ends.
    config = ModelConfig(
        vocab_size=61, d_model=8, d_ff=16, num_heads=4096, d_k=1, d_v=1, num_encoder_layers=1, num_decoder_layers=1
    )
    script = f"""
    import resource
    sources, targets = [[5, 3], [6, 3]], [[7, 8, 9, 3], [7, 3]]
    sources[{long}] = [5 + place % 50 for place in range(250)]
    engine = Engine(packed, threads=2)
    engine.score([[5, 3], [6, 3]], targets)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    for _ in range(3):
        # the weights of one block of queries are 16 x 4096 x 256 floats: 67 MB
        resource.setrlimit(resource.RLIMIT_AS, (taken + 50_000_000, resource.RLIM_INFINITY))
        try:
            engine.score(sources, targets)
        except EngineError as error:
            assert "memory" in str(error), error
        else:
            raise SystemExit("the memory sufficed")
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert engine.score([[5, 3], [6, 3]], targets) == Engine(packed, threads=1).score([[5, 3], [6, 3]], targets)
    """
    assert run(tmp_path, script, packed_model(config)) == ""


@needs_limit
def test_memory_grows_neither_with_the_square_of_a_length_nor_with_the_batch(tmp_path):
    script = """
    import resource
    engine = Engine(packed, threads=1)
    search(engine)
    asked = {"settings": SearchSettings(beam_size=2)}
    def ask(sources):
        return engine.search(sources, prefixes=[()] * len(sources), limits=[8] * len(sources), **asked)
    long = [[5 + place % 50 for place in range(5000)]]
    many = [[5 + (row + place) % 50 for place in range(19)] for row in range(10_000)]
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    # one square of 5,000 floats is 100 MB; the caches of 10,000 sentences are 106 MB
    resource.setrlimit(resource.RLIMIT_AS, (taken + 45_000_000, resource.RLIM_INFINITY))
    assert len(ask(long)[0]) == 1
    assert len(ask(many)) == 10_000
    """
    assert run(tmp_path, script) == ""


@needs_limit
def test_an_engine_that_gets_no_more_threads_computes_with_fewer(tmp_path):
    script = """
    import resource
    expected = search(Engine(packed, threads=1))
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    threading.stack_size(0)
    resource.setrlimit(resource.RLIMIT_AS, (taken + 60_000_000, resource.RLIM_INFINITY))
    assert search(Engine(packed, threads=64)) == expected  # one replica of 64
    few = Engine(packed, threads=4)
    assert few.search(
        sentences * 9, prefixes=[()] * 81, limits=[11] * 81, settings=SearchSettings(beam_size=3)
    ) == expected * 9
    """
    assert run(tmp_path, script) == ""


FORKING = """
    def child(work):
        number = os.fork()
        if number == 0:
            signal.alarm(60)  # a child that hangs is ended, and seen
            try:
                work()
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitpid(number, 0)[1] == 0

    engine, expected = Engine(packed, threads=2), search(Engine(packed, threads=1))
    many = sentences * 3
    def all_of(engine):
        assert search(engine) == expected
        assert engine.search(
            many, prefixes=[()] * 27, limits=[11] * 27, settings=SearchSettings(beam_size=3)
        ) == expected * 3
"""


@needs_fork
def test_a_forked_process_goes_on_with_the_engine(tmp_path):
    script = """
    def destroy():
        global engine
        del engine

    all_of(engine)  # it has its threads
    child(lambda: all_of(engine))
    child(destroy)
    child(lambda: (all_of(engine), destroy()))
    all_of(engine)
    """
    assert run(tmp_path, textwrap.dedent(FORKING) + textwrap.dedent(script)) == ""


@needs_fork
@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer's own locks stay locked in a child of a process that computes")
def test_a_process_that_is_forked_in_the_midst_of_calls_goes_on_with_the_engine(tmp_path):
    script = """
    all_of(engine)
    busy = True
    def compute():
        while busy:
            all_of(engine)
    callers = [threading.Thread(target=compute) for _ in range(3)]
    for caller in callers:
        caller.start()
    for _ in range(7):  # some of the calls hold the lock
        child(lambda: all_of(engine))
    busy = False
    for caller in callers:
        caller.join()
    all_of(engine)
    """
    assert run(tmp_path, textwrap.dedent(FORKING) + textwrap.dedent(script)) == ""


@pytest.mark.parametrize("threads", [1, 2])
def test_a_process_ends_while_daemon_threads_compute(tmp_path, threads):
    script = f"""
    engine = Engine(packed, threads={threads})
    def compute():
        try:
            search_for_ever(engine)
        except BaseException:
            pass
    for _ in range(3):
        threading.Thread(target=compute, daemon=True).start()
    time.sleep(0.3)
    """
    assert run(tmp_path, script) == ""


def test_a_process_ends_with_engines_that_are_left(tmp_path):
    script = """
    engine = Engine(packed, threads=2)
    search(engine)
    engine.itself = engine
    other = Engine(packed, threads=2)
    """
    assert run(tmp_path, script) == ""


@needs_fork
def test_ctrl_c_ends_a_call_whether_it_computes_or_waits_and_the_engine_goes_on(tmp_path):
    script = """
    from headway.errors import CancelledError
    from headway.search.cancel import Cancel
    signal.signal(signal.SIGINT, signal.default_int_handler)
    engine = Engine(packed, threads=2)
    expected = search(Engine(packed, threads=1))

    def interrupt():
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    def interrupted(call):
        threading.Thread(target=interrupt).start()
        try:
            call()
        except KeyboardInterrupt:
            return
        raise SystemExit("not interrupted")

    interrupted(lambda: search_for_ever(engine))
    assert search(engine) == expected
    # another thread holds all that computes
    cancel = Cancel()
    def hold():
        try:
            search_for_ever(engine, cancel)
        except CancelledError:
            return
        raise SystemExit("not cancelled")
    holder = threading.Thread(target=hold)
    holder.start()
    time.sleep(0.2)
    interrupted(lambda: search(engine))
    cancel.set()
    holder.join()
    assert search(engine) == expected
    """
    assert run(tmp_path, script) == ""


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_eight_threads_that_call_at_once_get_what_one_gets(threads):
    engine, alone = small_engine(threads=threads), small_engine()
    settings = SearchSettings(beam_size=3, n_best=2)
    batches = [drawn_sources(count, seed=count) for count in (1, 2, 3, 4, 5, 6, 7, 11)]

    def computed(engine, sources):
        limits = [len(source) + 9 for source in sources]
        found = engine.search(sources, prefixes=[()] * len(sources), limits=limits, settings=settings)
        return found, engine.score(sources, sources), [table.tolist() for table in engine.attend(sources, sources)]

    expected = [computed(alone, sources) for sources in batches]
    with ThreadPoolExecutor(8) as callers:
        for _ in range(2):
            assert list(callers.map(lambda sources: computed(engine, sources), batches)) == expected


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["search", "score", "attend"])
def test_a_call_is_cancelled_whether_it_computes_or_waits(threads, kind):
    engine = small_engine(threads=threads)
    sources = drawn_sources(9)
    asked = {"prefixes": [()] * 9, "limits": [1 << 24] * 9, "settings": NEVER_ENDS}
    cancels = [Cancel() for _ in range(5)]

    def call(cancel):
        # Only searches last: the first call is one, takes all threads, and the others wait for it.
        is_search = kind == "search" or cancel is cancels[0]
        with pytest.raises(CancelledError, match="the call was cancelled"):
            getattr(engine, "search" if is_search else kind)(
                sources, **(asked if is_search else {"targets": sources}), cancel=cancel
            )

    callers = [threading.Thread(target=call, args=[cancel]) for cancel in cancels]
    for caller in callers:
        caller.start()
        time.sleep(0.05)
    for cancel, caller in reversed(list(zip(cancels, callers, strict=True))):  # those that wait first
        cancel.set()
        caller.join(60)
        assert not caller.is_alive()
    assert engine.score(sources, sources, cancel=Cancel()) == small_engine().score(sources, sources)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted on Linux alone")
def test_one_sentence_is_computed_by_as_many_threads_as_can_work_together(tmp_path):
    script = """
    from headway.engine.engine import MOST_TOGETHER
    before = len(list(Path("/proc/self/task").iterdir()))
    for threads, computing in ((MOST_TOGETHER - 1, MOST_TOGETHER - 1), (MOST_TOGETHER + 13, MOST_TOGETHER)):
        engine = Engine(packed, threads=threads)
        assert engine.threads == threads
        search(engine)
        assert len(list(Path("/proc/self/task").iterdir())) == before + computing - 1
        del engine
    """
    assert run(tmp_path, script) == ""
