"""A translation memory becomes an engine that fills an XLIFF: the whole way of a person who has only a TMX.

    python bench/memory.py --train ../shared/data/homeassistant/en-de.train.tsv \
        --test ../shared/data/homeassistant/en-de.test.tsv --minutes 10 --work /tmp/memory

Builds memory.tmx from the training pairs and interface.xlf from the test sources (a third of them with inline tags),
runs `headway train` and `headway translate` on them, and checks the XLIFF that comes back: well-formed, every target
filled, everything outside the targets as it was, tags and placeholders of each unit the source's. Prints JSON.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from headway.metrics.translation import score_translations

NAMESPACE = "{urn:oasis:names:tc:xliff:document:1.2}"
PLACEHOLDER = re.compile(r"\{[^{}]*\}|%\(?\w*\)?[sd]")
TARGET = re.compile(r"\s*<target[^>]*>.*?</target>|\s*<target[^>]*/>", re.DOTALL)


def main() -> None:
    """Build, train, translate, check, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="TSV: English, German.")
    parser.add_argument("--test", type=Path, required=True, help="TSV: English, German.")
    parser.add_argument("--minutes", type=float, default=10.0, help="Of training.")
    parser.add_argument("--work", type=Path, required=True, help="A folder for the files made.")
    arguments = parser.parse_args()
    work: Path = arguments.work
    work.mkdir(parents=True, exist_ok=True)
    memory, source, filled = work / "memory.tmx", work / "interface.xlf", work / "interface.de.xlf"
    write_memory(memory, pairs(arguments.train))
    tested = list(pairs(arguments.test))
    write_xliff(source, [english for english, _ in tested])
    begin = time.monotonic()
    run(
        *("train", "--source", str(memory), "--source-language", "en", "--target-language", "de"),
        *("--out", str(work / "engine"), "--set", f"train.max_minutes={arguments.minutes}"),
    )
    trained = time.monotonic()
    run("translate", str(source), str(filled), "-m", str(work / "engine"))
    report = check(source, filled, [german for _, german in tested])
    report |= {"training_seconds": round(trained - begin), "translating_seconds": round(time.monotonic() - trained)}
    print(json.dumps(report, indent=2, ensure_ascii=False))


def pairs(path: Path) -> Iterator[tuple[str, str]]:
    """The rows of a TSV without quoting."""
    for row in path.read_text(encoding="utf-8").split("\n"):
        if row:
            english, german = row.split("\t")
            yield english, german


def write_memory(path: Path, rows: Iterator[tuple[str, str]]) -> None:
    """TMX 1.4 as a translation program exports it: UTF-16 with a DTD that is nowhere, codes with a region."""
    head = (
        '<?xml version="1.0" encoding="UTF-16"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
        '<header creationtool="bench" creationtoolversion="1" segtype="sentence" o-tmf="none" adminlang="en-US" '
        'srclang="en-US" datatype="plaintext"/>\n<body>\n'
    )
    with path.open("w", encoding="utf-16") as file:
        file.write(head)
        for number, (english, german) in enumerate(rows, start=1):
            file.write(
                f'<tu tuid="{number}"><tuv xml:lang="en-US"><seg>{escape(english)}</seg></tuv>'
                f'<tuv xml:lang="de_DE"><seg>{escape(german)}</seg></tuv></tu>\n'
            )
        file.write("</body>\n</tmx>\n")


def write_xliff(path: Path, sources: list[str]) -> None:
    """XLIFF 1.2; in every third unit of two words or more the second word stands between tags."""
    units: list[str] = []
    for number, source in enumerate(sources, start=1):
        words = [escape(word) for word in source.split(" ")]
        if number % 3 == 0 and len(words) > 1:
            words[1] = f'<g id="1">{words[1]}</g>'
        units.append(
            f'      <trans-unit id="{number}">\n        <source>{" ".join(words)}</source>\n      </trans-unit>'
        )
    body = "\n".join(units)
    path.write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        '  <file original="interface" source-language="en" target-language="de" datatype="plaintext">\n    <body>\n'
        f"{body}\n    </body>\n  </file>\n</xliff>\n",
        encoding="utf-8",
    )


def run(*arguments: str) -> None:
    """One headway command, as a user gives it."""
    print("headway", *arguments, file=sys.stderr)
    subprocess.run([sys.executable, "-m", "headway", *arguments], check=True)


def check(source: Path, filled: Path, references: list[str]) -> dict[str, object]:
    """What the filled file holds, counted."""
    units = list(ElementTree.parse(filled).iter(f"{NAMESPACE}trans-unit"))
    sources = [unit.find(f"{NAMESPACE}source") for unit in units]
    targets = [unit.find(f"{NAMESPACE}target") for unit in units]
    texts = ["".join(target.itertext()) if target is not None else "" for target in targets]
    scores = score_translations(texts, references, target_language="de")
    return {
        "units": len(units),
        "filled": sum(bool(text.strip()) for text in texts),
        "same_outside_targets": TARGET.sub("", filled.read_text("utf-8")) == TARGET.sub("", source.read_text("utf-8")),
        "tagged_units": sum(bool(tags(element)) for element in sources),
        "units_with_other_tags": sum(tags(one) != tags(other) for one, other in zip(sources, targets, strict=True)),
        "units_with_placeholders": sum(bool(placeholders(element)) for element in sources),
        "units_with_other_placeholders": sum(
            placeholders(one) != placeholders(other) for one, other in zip(sources, targets, strict=True)
        ),
        "bleu": round(scores.bleu.value, 2),
        "chrf": round(scores.chrf.value, 2),
    }


def tags(element: ElementTree.Element | None) -> Counter[str]:
    """The inline elements below, by name and id."""
    below = list(element.iter())[1:] if element is not None else []
    return Counter(f"{child.tag} {child.get('id')}" for child in below)


def placeholders(element: ElementTree.Element | None) -> Counter[str]:
    """The placeholders in the text below."""
    return Counter(PLACEHOLDER.findall("".join(element.itertext()))) if element is not None else Counter()


if __name__ == "__main__":
    main()
