"""The scripts of bench/ as modules."""

import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def scripts(request):
    """Those that the test module names as its ``MODULES``, by name; forgotten when its tests are done."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        yield {name: pytest.importorskip(name) for name in request.module.MODULES}
    for name in request.module.MODULES:
        sys.modules.pop(name, None)
