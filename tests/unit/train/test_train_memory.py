import os
import subprocess
import sys

import pytest

BLOCKS = """
import resource, sys
import numpy as np
from headway.train.memory import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def fill():
    np.empty(67_000_001, dtype=np.uint8).fill(7)
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
fill()
before = faults()
for _ in range(5):
    fill()
print(faults() - before)
"""
SETTINGS = """
import os
from headway.train.memory import settle_memory
settle_memory()
print(os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"], os.environ["LRU_CACHE_CAPACITY"])
"""


def told(code: str, *arguments: str, environment: dict[str, str]) -> str:
    """What a process of its own prints: these settings hold for a whole process."""
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, check=True, capture_output=True, text=True
    )
    return run.stdout.strip()


def plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if "CAPACITY" not in name and "MALLOC" not in name}


@pytest.mark.skipif(sys.platform != "linux", reason="the settings are those of glibc")
def test_a_freed_block_is_taken_again_without_a_page_from_the_system():
    pages = 67_000_001 // 4096
    assert int(told(BLOCKS, "keep", environment=plain_environment())) < pages // 100
    assert int(told(BLOCKS, "not", environment=plain_environment() | {"NUMPY_MADVISE_HUGEPAGE": "0"})) > pages


def test_few_shapes_are_kept_unless_the_environment_says_how_many():
    assert told(SETTINGS, environment=plain_environment()) == "64 64"
    assert told(SETTINGS, environment=plain_environment() | {"LRU_CACHE_CAPACITY": "7"}) == "64 7"
