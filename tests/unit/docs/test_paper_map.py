"""docs/paper.md names only code and tests that exist, and its numbers are those of the code."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from doc_pages import DOCS, PAGES, ROOT, ROOT_PAGES, links, table_rows

from headway.config.load import load, load_preset
from headway.config.model_config import ModelConfig
from headway.config.presets import PRESETS
from headway.model.size import count_parameters

PAGE = DOCS / "paper.md"
SOURCES = ROOT / "src" / "headway"
NAMED = re.compile(r"`([\w/.-]+\.(?:py|toml))(?:::([\w.]+))?`")
SECTIONS = ("1, 2", "3.1", "3.2.1, equation 1", "3.2.2", "3.2.3", "3.3, equation 2", "3.4", "3.4, 5.1", "3.5")
SECTIONS += ("4, Table 1", "5.1", "5.2", "5.3", "5.3, equation 3", "5.4", "6.1", "6.1, Table 2", "6.2, Table 3")
SECTIONS += ("6.3, Table 4", "7")
LINKED = ("../src/headway/", "../")  # where the links of code and of tests begin
# row and change of the table of parameters -> settings
TABLE_3 = {
    "base": {},
    "h = 1, 4, 16 or 32; d_k = d_v = 512/h": {"num_heads": 32, "d_k": 16, "d_v": 16},
    "d_k = 16": {"d_k": 16},
    "d_k = 32": {"d_k": 32},
    "N = 2": {"num_encoder_layers": 2, "num_decoder_layers": 2},
    "N = 4": {"num_encoder_layers": 4, "num_decoder_layers": 4},
    "N = 8": {"num_encoder_layers": 8, "num_decoder_layers": 8},
    "d_model = 256, d_k = d_v = 32": {"d_model": 256, "d_k": 32, "d_v": 32},
    "d_model = 1024, d_k = d_v = 128": {"d_model": 1024, "d_k": 128, "d_v": 128},
    "d_ff = 1024": {"d_ff": 1024},
    "d_ff = 4096": {"d_ff": 4096},
    "dropout 0 or 0.2, label smoothing 0 or 0.2": {"dropout": 0.2},
    "learned positions, a table of 1,024 a stack": {"positions": "learned", "max_positions": 1024},
    "d_model = 1024, d_ff = 4096, h = 16": {"d_model": 1024, "d_ff": 4096, "num_heads": 16},
}


@cache
def names_in(path: Path) -> frozenset[str]:
    """Functions, classes, methods as Class.method, and module-level values of a Python file."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(found)


def exists(path: str, name: str) -> bool:
    file = (ROOT if path.startswith("tests/") else SOURCES) / path
    return file.is_file() and (not name or name in names_in(file))


def map_rows():
    return [(line, cells) for line, cells in table_rows(PAGE) if len(cells) == 4 and cells[0] not in ("paper", "---")]


@pytest.mark.parametrize(("line", "cells"), map_rows(), ids=lambda value: value if isinstance(value, int) else "")
def test_every_file_function_and_test_of_the_map_exists(line, cells):
    for cell, is_test in ((cells[2], False), (cells[3], True)):
        named = NAMED.findall(cell)
        assert named or cell == "later", f"paper.md line {line}: {cell!r} names nothing"
        for path, name in named:
            assert exists(path, name), f"paper.md line {line}: {path}::{name} does not exist"
            assert path.startswith("tests/") == is_test, f"paper.md line {line}: {path} stands in the wrong column"
            assert not is_test or name.startswith("test_"), f"paper.md line {line}: {path}::{name} is no test"
            assert f"]({LINKED[is_test]}{path})" in cell, f"paper.md line {line}: {path} has no link to it"


def test_the_map_has_every_section_equation_and_table():
    places = [cells[0] for _, cells in map_rows()]
    named = {re.sub(r", (?=[A-Za-z]).*", "", place) for place in places} | set(places)
    named |= {place.rpartition(", ")[0] for place in places if ", Table" in place}  # 6.1, Table 2, cost
    assert set(SECTIONS) <= named


def test_a_name_that_does_not_exist_is_found():
    assert exists("nn/attention.py", "MultiHeadAttention.attend")
    assert not exists("nn/attention.py", "no_such_function")
    assert not exists("nn/no_such_file.py", "attention")


def test_the_parameters_of_the_page_are_those_of_the_code():
    rows = {cells[1] or cells[0]: cells[3:] for _, cells in table_rows(PAGE) if len(cells) == 5 and cells[0] != "row"}
    rows = {row: counts for row, counts in rows.items() if not row.startswith("---")}
    assert list(rows) == list(TABLE_3)
    for row, settings in TABLE_3.items():
        as_counted = count_parameters(ModelConfig(vocab_size=40_960, attention_bias=True, **settings)).total
        as_written = count_parameters(ModelConfig(**settings)).total
        assert rows[row] == [f"{as_counted:,}", f"{as_written:,}"], row


def test_the_parameters_of_the_results_are_those_of_the_code():
    rows = [cells for _, cells in table_rows(DOCS / "results.md") if len(cells) == 4 and cells[0].startswith("`")]
    assert len(rows) == 7
    for subjects, total, core, _ in rows:
        for subject in re.findall(r"`([^`]+)`", subjects):
            name, *overrides = subject.split(" --set ")
            run = load_preset(name, overrides=overrides) if name in PRESETS else load(name, overrides=overrides)
            counts = count_parameters(run.model)
            assert (total, core) == (f"{counts.total:,}", f"{counts.non_embedding:,}"), subject


@pytest.mark.parametrize("page", [*PAGES, *ROOT_PAGES], ids=lambda page: page.name)
def test_every_link_within_the_repository_leads_somewhere(page):
    for link in links(page):
        if not link.startswith(("http://", "https://", "#", "mailto:")):
            assert (page.parent / link.partition("#")[0]).exists(), f"{page.name}: {link}"


def test_every_page_is_in_the_index():
    listed = set(links(DOCS / "README.md"))
    assert {page.name for page in PAGES} - {"README.md"} <= listed


def interface_lines():
    """Of each file in the list of interfaces: its path and all that is said of it."""
    listed = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Interfaces")[2].partition("\n## ")[0]
    return re.findall(r"^    ([a-z]+/[a-z_]+\.py)((?:.*\n)(?: {20,}.*\n)*)", listed, re.M)


@pytest.mark.parametrize(("path", "said"), interface_lines(), ids=lambda value: value if value.endswith(".py") else "")
def test_every_file_and_function_of_the_architecture_exists(path, said):
    names = {name.rpartition(".")[2] for name in names_in(SOURCES / path)}
    called = set(re.findall(r"\b([A-Za-z_]+)\(", said)) - {"microbatch"}
    assert called <= names, f"{path} has no {sorted(called - names)}"
