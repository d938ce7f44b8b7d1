"""Trap 7: no file that Headway reads can run code, and none of its own needs to."""

import ast
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from train_letters import letters_config, run, write_corpus

from headway.checkpoint.average import average_weights
from headway.checkpoint.run_folder import RunFolder
from headway.data.prepared import read_prepared
from headway.errors import HeadwayError
from headway.folder.contents import ModelFolder
from headway.translate.translator import Translator

PACKAGE = Path(__file__).parents[3] / "src" / "headway"
UNPICKLERS = {
    "pickle",
    "_pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "marshal",
    "jsonpickle",
    "yaml",
}
RUNNERS = {"eval", "exec", "compile", "__import__"}
LOADERS = {"torch.load", "torch.jit.load", "torch.hub.load", "numpy.load", "np.load", "pandas.read_pickle"}


class Touch:
    """Unpickled, it creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def as_pickle(owned):
    return pickle.dumps({"model": Touch(owned)})


def as_torch_checkpoint(owned):
    file = io.BytesIO()
    torch.save({"model": Touch(owned)}, file)
    return file.getvalue()


CRAFTED = {"pickle": as_pickle, "torch": as_torch_checkpoint}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The corpus and the folder of a run that stopped at its 14th step: every kind of file that Headway writes."""
    data = write_corpus(tmp_path_factory.mktemp("letters"))
    out = tmp_path_factory.mktemp("finished") / "run"
    run(letters_config(), data, out)
    return data, out


def read_everything(data, out):
    """All that reads a folder, each by itself; an error that a user is told is as good as an answer."""
    readers = (
        lambda: Translator.from_folder(out, device="cpu").translate(["abc"]),
        lambda: ModelFolder.open(out).weights(),
        lambda: RunFolder.open(out),
        lambda: average_weights(sorted((out / "training" / "weights").iterdir())),
        lambda: read_prepared(out / "training" / "data"),
        lambda: run(letters_config(), data, out),
    )
    errors = []
    for read in readers:
        try:
            read()
        except HeadwayError as error:
            errors.append(str(error))
    return errors


def test_the_crafted_files_do_run_code_where_they_are_unpickled(tmp_path):
    """Without this the promises below would be empty."""
    pickle.loads(as_pickle(tmp_path / "one"))
    torch.load(io.BytesIO(as_torch_checkpoint(tmp_path / "two")), weights_only=False)
    assert (tmp_path / "one").exists()
    assert (tmp_path / "two").exists()


@pytest.mark.parametrize("kind", CRAFTED)
@pytest.mark.parametrize(
    "pattern",
    [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "training/recipe.toml",
        "training/metrics.jsonl",
        "training/states/*",
        "training/weights/*",
        "training/data/*.json",
        "training/data/*/*",
    ],
)
def test_a_crafted_file_in_any_place_creates_nothing(finished, tmp_path, pattern, kind):
    data, out = finished
    folder, owned = shutil.copytree(out, tmp_path / "run"), tmp_path / "owned"
    paths = sorted(folder.glob(pattern))
    assert paths
    for path in paths:
        path.write_bytes(CRAFTED[kind](owned))
    errors = read_everything(data, folder)
    assert not owned.exists()
    refused = {"config.json", "model.safetensors", "tokenizer.json", "training/states/*", "training/weights/*"}
    if pattern in refused:
        assert any(path.name in error for path in paths for error in errors), errors


OWN_FILES = """
import json, sys
from pathlib import Path

def hear(event, arguments):
    if event == "pickle.find_class":
        raise SystemExit(f"unpickled {arguments}")

sys.addaudithook(hear)
from safetensors.torch import load_file
shapes = {}
for path in sorted(Path(sys.argv[1]).rglob("*")):
    if path.suffix == ".safetensors":
        shapes[path.name] = len(load_file(path))
    elif path.suffix == ".json":
        json.loads(path.read_text(encoding="utf-8"))
    elif path.is_file() and path.suffix not in (".ids", ".offsets"):
        path.read_text(encoding="utf-8")
assert not [name for name in sys.modules if name.split(".")[0] == "headway"]
print(json.dumps(shapes))
"""


def test_own_files_are_plain_tensors_and_text_in_a_process_without_headway(finished):
    _, out = finished
    done = subprocess.run(
        [sys.executable, "-c", OWN_FILES, str(out)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    weights = len(ModelFolder.open(out).weights())
    assert counts["model.safetensors"] == weights
    assert {count for name, count in counts.items() if name.startswith("state-")} == {3 * weights}  # and two moments
    assert {count for name, count in counts.items() if name.startswith("weights-")} == {weights}


def forbidden(tree):
    """What of a module could run code from a file: (line, name)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            yield from ((node.lineno, name) for name in names if name.split(".")[0] in UNPICKLERS)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in RUNNERS | LOADERS and not _reads_weights_only(node):
                yield node.lineno, name


def _reads_weights_only(call):
    return any(keyword.arg == "weights_only" and ast.unparse(keyword.value) == "True" for keyword in call.keywords)


def test_the_one_reader_of_pickles_reads_weights_only_and_on_request_only():
    """``headway import --unsafe``; that it refuses without, and runs nothing with: tests/unit/interchange."""
    readers = [path.name for path in PACKAGE.rglob("*.py") if "torch.load(" in path.read_text(encoding="utf-8")]
    assert readers == ["pickled.py"]


def test_no_module_of_the_package_unpickles_or_runs_text():
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, name in forbidden(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []
    trap = "import pickle\nimport torch\ntorch.load('x')\ntorch.load('x', weights_only=False)\neval('1')\nmodel.eval()"
    assert [name for _, name in forbidden(ast.parse(trap))] == ["pickle", "torch.load", "torch.load", "eval"]
    assert not list(forbidden(ast.parse("torch.load('x', weights_only=True)")))
