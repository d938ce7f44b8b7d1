"""Every command of the documents: sh blocks are run, console blocks may only name options that exist.

The sh and python blocks of a page run in order in one folder, which holds what a reader of the pages has: two aligned
files a.en and a.de, dev, test and new text, a treebank (all of them tiny), and the folder of a finished run. `headway
train` and `headway prepare` get the sizes of TINY on top of what the page says, so that a run takes seconds. A text
block right after an sh block shows its output: each of its lines must be printed, in that order; ... stands for
anything.
"""

import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise

import click
import pytest
from doc_pages import PAGES, ROOT_PAGES, Block, blocks, command_lines

from headway.cli.main import COMMANDS, group
from headway.config.load import load_preset, recipe_names
from toy_treebank import treebank

TINY = [
    "model.vocab_size=300",
    "model.d_model=8",
    "model.d_ff=13",
    "model.num_heads=2",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "train.max_steps=3",
    "train.batch_tokens=257",
    "train.microbatch_tokens=257",
    "train.warmup_steps=2",
    "train.validate_every=2",
    "train.checkpoint_every=1",
    "train.validation_sentences=3",
    "train.threads=1",
    "train.precision=float32",
]
SHIM = """#!/bin/sh
command=$1
case "$command" in
  train) shift; exec {python} -m headway train "$@" {sizes} ;;
  prepare) shift; exec {python} -m headway prepare "$@" --set model.vocab_size=300 ;;
  *) exec {python} -m headway "$@" ;;
esac
"""
TORCHRUN = """#!/bin/sh
exec {python} -m torch.distributed.run "$@" {sizes}
"""
RUN = "headway train --source a.en --target a.de --source-language en --target-language de --out runs/mine"
SUBJECTS = {"a dog": "ein Hund", "a man": "ein Mann", "a child": "ein Kind", "a girl": "ein Mädchen"}
VERBS = {"runs": "rennt", "sits": "sitzt", "eats": "isst", "sings": "singt", "waits": "wartet"}
PLACES = {"in the park": "im Park", "at home": "zu Hause", "outside": "draußen"}
PAIRS = [
    (f"{source} {verb} {place} .", f"{target} {german} {where} .")
    for source, target in SUBJECTS.items()
    for verb, german in VERBS.items()
    for place, where in PLACES.items()
]


def write_pairs(folder, name, pairs):
    for place, language in enumerate(("en", "de")):
        (folder / f"{name}.{language}").write_text("".join(pair[place] + "\n" for pair in pairs), encoding="utf-8")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """The folder that every page starts from, and the environment with the tiny `headway` on its path."""
    folder = tmp_path_factory.mktemp("workshop")
    tools = tmp_path_factory.mktemp("tools")
    shim = tools / "headway"
    shim.write_text(SHIM.format(python=sys.executable, sizes=" ".join(f"--set {size}" for size in TINY)))
    shim.chmod(0o755)
    shim = tools / "torchrun"  # its commands are all `-m headway train`
    shim.write_text(TORCHRUN.format(python=sys.executable, sizes=" ".join(f"--set {size}" for size in TINY)))
    shim.chmod(0o755)
    texts = folder / "texts"
    texts.mkdir()
    for place, names in ((folder, ("a", "dev", "test")), (texts, ("train", "dev", "test"))):
        for name, pairs in zip(names, (PAIRS[:47], PAIRS[47:53], PAIRS[53:]), strict=True):
            write_pairs(place, name, pairs)
    write_pairs(folder, "legal", PAIRS[41:])
    (folder / "new.en").write_text("a dog sings outside .\n\na man sings outside .\n", encoding="utf-8")
    trees = treebank(3, 61)
    for name, part in (("train", trees[:47]), ("dev", trees[47:53]), ("test", trees[53:])):
        (folder / f"{name}.trees").write_text("".join(f"{tree}\n" for tree in part), encoding="utf-8")
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS[:47]), encoding="utf-8")
    environment = {
        **{name: value for name, value in os.environ.items() if name != "HEADWAY_DATA"},
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "CUDA_VISIBLE_DEVICES": "",  # the pages tell of a CPU
        "OMP_NUM_THREADS": "1",
        "LC_ALL": "C.UTF-8",
    }
    run(RUN, folder, environment)
    return folder, environment


def run(text, folder, environment, kind="sh"):
    command = ["bash", "-eu", "-o", "pipefail", "-c", text] if kind == "sh" else [sys.executable, "-c", text]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    assert done.returncode == 0, f"{text}\nended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def missing_line(shown, printed):
    """The first line of a text block that was not printed in its turn; None when all were."""
    lines = iter(line.rstrip() for line in printed.split("\n"))
    wanted = [line.rstrip() for line in shown.split("\n") if line.strip() and line.strip() != "..."]
    patterns = [re.escape(line).replace(r"\.\.\.", ".*") for line in wanted]
    return next(
        (
            line
            for line, pattern in zip(wanted, patterns, strict=True)
            if not any(re.fullmatch(pattern, found) for found in lines)
        ),
        None,
    )


OF_THE_ENGINE = {"engine.md", "shortlist.md"}  # pages whose commands need headway-native
PAGES_THAT_RUN = [page for page in PAGES if any(block.kind in {"sh", "python"} for block in blocks(page))]


@pytest.mark.parametrize("page", PAGES_THAT_RUN, ids=lambda page: page.name)
def test_every_command_of_a_page_runs_and_prints_what_the_page_shows(page, workshop, tmp_path):
    if page.name in OF_THE_ENGINE:
        pytest.importorskip("headway_native", reason="headway-native is not built here")
    folder, environment = workshop
    place = tmp_path / "reader"
    shutil.copytree(folder, place)
    printed = ""
    for block in blocks(page):
        if block.kind in {"sh", "python"}:
            printed = run(block.text, place, environment, block.kind)
        elif block.kind == "text" and printed:
            missing = missing_line(block.text, printed)
            assert missing is None, f"{block.name}: {missing!r} was not printed; printed was:\n{printed}"
            printed = ""
        else:
            printed = ""


def shell_blocks():
    for page in PAGES:
        yield from (block for block in blocks(page) if block.kind in {"sh", "console"})
    for page in ROOT_PAGES:
        text = page.read_text(encoding="utf-8")
        indented = "\n".join(line.strip() for line in text.split("\n") if line.startswith("    "))
        yield Block(page, "console", indented, 1)
        yield from (block for block in blocks(page) if block.kind in {"sh", "console"})


@pytest.mark.parametrize("block", list(shell_blocks()), ids=lambda block: block.name)
def test_every_option_that_a_document_names_exists(block):
    for words in command_lines(block.text):
        check_command(words, block.name)


def check_command(words, where):
    if not words or not (words[0] in COMMANDS or re.fullmatch(r"--?[a-z][a-z-]*", words[0])):
        return  # the word in a sentence
    if words[0] not in COMMANDS:
        assert words[0] in {"--help", "-h", "--version"}, f"{where}: headway {words[0]}"
        return
    command = group.get_command(click.Context(group), words[0])
    if isinstance(command, click.Group) and len(words) > 1 and not words[1].startswith("-"):
        inner = command.get_command(click.Context(command), words[1])
        assert inner is not None, f"{where}: headway {words[0]} has no {words[1]}"
        command, words = inner, words[1:]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
    given = [word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-zA-Z]", word)]
    assert set(given) <= known, f"{where}: headway {words[0]} has no {sorted(set(given) - known)}"
    changes = [value for option, value in pairwise(words) if option == "--set"]
    load_preset("base", overrides=[change for change in changes if "SECTION" not in change and "..." not in change])


def test_every_recipe_and_preset_that_a_command_names_exists():
    for block in shell_blocks():
        for words in command_lines(block.text):
            if words[:1] in (["train"], ["prepare"]) and len(words) > 1 and re.fullmatch(r"[a-z0-9-]+", words[1]):
                assert words[1] in recipe_names() or words[1].startswith("-"), f"{block.name}: {words[1]}"


def test_a_line_that_was_not_printed_is_found():
    assert missing_line("one\n...\nthree\n", "zero\none\ntwo\nthree\n") is None
    assert missing_line("three\none\n", "one\nthree\n") == "one"
    assert missing_line("version:...|x\n", "version:2.5|x\n") is None
    assert missing_line("version:...|x\n", "version:2.5|y\n") == "version:...|x"


def test_an_option_that_does_not_exist_is_found():
    with pytest.raises(AssertionError, match="--no-such"):
        check_command(["translate", "-m", "x", "--no-such"], "here")
    with pytest.raises(AssertionError, match="--no-such"):
        check_command(["paper", "table2", "--no-such"], "here")
    with pytest.raises(AssertionError, match="has no table9"):
        check_command(["paper", "table9"], "here")
    assert list(command_lines("echo a | headway translate -m x > b; headway describe base")) == [
        ["translate", "-m", "x"],
        ["describe", "base"],
    ]
