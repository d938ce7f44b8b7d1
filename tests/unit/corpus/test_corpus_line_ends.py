r"""Trap 1: whatever reads or writes text, only ``\n`` ends a line."""

import json
from pathlib import Path

import pytest

from headway.config.schema import RunConfig
from headway.corpus.lines import open_writer, read_lines
from headway.corpus.read import read
from headway.data.prepare import prepare

# What str.splitlines() and text mode break lines at, besides \n.
SEPARATORS = ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r"]
SIDES = (("source", "en"), ("target", "de"))
WRITERS = {
    ".tsv": lambda source, target: f"{source}\t{target}",
    ".jsonl": lambda source, target: json.dumps({"en": source, "de": target}, ensure_ascii=False),
}


def trap(separator: str) -> list[tuple[str, str]]:
    return [("red", "rot"), (f"one {separator} two", "eins zwei"), ("blue", "blau")]


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("suffix", WRITERS)
def test_a_separator_inside_a_text_shifts_no_pair_in_any_format_of_one_file(
    tmp_path: Path, suffix: str, separator: str
):
    path = tmp_path / f"t{suffix}"
    path.write_bytes("".join(WRITERS[suffix](*pair) + "\n" for pair in trap(separator)).encode())
    pairs = list(read(path, source_language="en", target_language="de"))
    assert [(pair.source, pair.target, pair.line) for pair in pairs] == [
        (*pair, number) for number, pair in enumerate(trap(separator), 1)
    ]


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_separator_inside_a_line_is_written_as_it_is(tmp_path: Path, suffix: str, separator: str):
    path = tmp_path / f"text{suffix}"
    lines = [source for source, _ in trap(separator)]
    with open_writer(path) as writer:
        writer.writelines(line + "\n" for line in lines)
    assert list(read_lines(path)) == lines
    if not suffix:
        assert path.read_bytes() == "".join(line + "\n" for line in lines).encode()


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_separator_shifts_no_pair_on_the_way_through_preparing(tmp_path: Path, separator: str):
    """Cleaned text, held-out text and test text lie in files between two steps."""
    pairs = [*trap(separator), *((f"{number} green", f"{number} grün") for number in range(17))]
    for name in ("train", "validation", "test"):
        for side, language in enumerate(("en", "de")):
            (tmp_path / f"{name}.{language}").write_bytes("".join(pair[side] + "\n" for pair in pairs).encode())
    files = {f"{part}_{side}": f"{part}.{code}" for part in ("train", "validation", "test") for side, code in SIDES}
    config = RunConfig.model_validate(
        {
            "data": {"source_language": "en", "target_language": "de", **files},
            "clean": {"drop_control_characters": False},
            "model": {"vocab_size": 300},
        }
    )
    prepared = prepare(config, tmp_path, tmp_path / "out")
    for part in ("validation", "test"):
        assert list(zip(*prepared.texts(part), strict=True)) == pairs
    for part in ("train", "validation"):
        store = prepared.store(part)
        decoded = [
            tuple(prepared.source_tokenizer.decode(side(index).tolist()) for side in (store.source, store.target))
            for index in range(len(store))
        ]
        assert decoded == pairs
