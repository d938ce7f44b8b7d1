"""Reading a large TMX: seconds, megabytes a second and peak memory.

    python bench/tmx.py                      100 MB
    python bench/tmx.py --megabytes 1000     the target: 60 s, 200 MB of memory
    python bench/tmx.py --inline-tags keep   tags in the canonical form
    python bench/tmx.py --fill               filled in place as well: every third unit lacks its target

The file is made in a temporary folder: units with attributes and props, in two languages or three, some with inline
tags, escapes and line breaks. It is read in a process of its own, whose own work (user and system time) is what
counts: the disk and other processes have no part in it.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random


def words_of(text: str) -> list[str]:
    """The words of a text."""
    return text.split(" ")


ENGLISH = words_of(
    "the user can open a new window and close all documents that were changed since last week before settings are "
    "saved in file server report page title button menu list value error number of items"
)
GERMAN = words_of(
    "die Benutzerin kann ein neues Fenster öffnen und alle Dokumente schließen die seit letzter Woche geändert wurden "
    "bevor Einstellungen in Datei Server Bericht Seite Titel Schaltfläche Menü Liste Wert Fehler Anzahl der Einträge"
)
FRENCH = words_of(
    "la personne peut ouvrir une nouvelle fenêtre et fermer tous les documents modifiés depuis la semaine dernière "
    "avant enregistrement fichier serveur rapport page titre bouton menu liste valeur erreur nombre éléments"
)
HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
  <header creationtool="bench" creationtoolversion="1" datatype="html" segtype="sentence" adminlang="en-US"
    srclang="en-US" o-tmf="none"/>
  <body>
"""
TAIL = "  </body>\n</tmx>\n"


def segment(words: list[str], rng: Random, kind: int) -> str:
    """One segment: of kind 0 with paired codes, 1 with a lone one, 2 with an escape and a line break, else plain."""
    text = [rng.choice(words) for _ in range(rng.randrange(4, 24))]
    if kind == 0:
        text[1] = f'<bpt i="1" x="1">&lt;b class="strong"></bpt>{text[1]}<ept i="1">&lt;/b></ept>'
    elif kind == 1:
        text[2] = f'{text[2]} <ph x="2" type="image">&lt;img src="a.png"/></ph>'
    elif kind == 2:
        text[0] = f"A &amp; B:\n        {text[0]}"
    return " ".join(text) + "."


def write_memory(path: Path, *, megabytes: float) -> int:
    """Write a file of this size and say how many units it has."""
    rng = Random(1)
    size = number = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(HEAD)
        while size < megabytes * 1e6:
            number += 1
            kind = rng.randrange(8)
            lines = [
                f'    <tu tuid="{number}" creationdate="20260101T120000Z" changeid="translator">\n'
                f'      <prop type="x-project">handbook</prop>\n'
                f'      <prop type="x-context">page {number % 97}</prop>\n'
            ]
            texts = [("en-US", ENGLISH), ("de-DE", GERMAN), ("fr-FR", FRENCH)]
            for language, words in texts[: 2 if number % 3 else 3]:
                lines.append(f'      <tuv xml:lang="{language}"><seg>{segment(words, rng, kind)}</seg></tuv>\n')
            if number % 3 == 2:
                lines[-1] = '      <tuv xml:lang="de-DE"><seg></seg></tuv>\n'
            unit = "".join(lines) + "    </tu>\n"
            file.write(unit)
            size += len(unit.encode())
        file.write(TAIL)
    return number


def read_memory(path: Path, *, inline_tags: str, fill: bool) -> None:
    """Read the file as a corpus, or fill it in place; print what it took."""
    from headway.corpus.read import read
    from headway.corpus.tmx import read_segments, write_targets

    start = time.perf_counter()
    if fill:
        languages = {"source_language": "en", "target_language": "de"}
        open_units = ((s.number, s.source) for s in read_segments(path, **languages) if s.is_open)
        write_targets(path, path.with_name("filled.tmx"), open_units, **languages)
        count = sum(segment.target is not None for segment in read_segments(path, **languages))
    else:
        pairs = read(path, source_language="en", target_language="de", inline_tags=inline_tags)
        count = sum(1 for _ in pairs)
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    own = used.ru_utime + used.ru_stime
    megabytes = path.stat().st_size / 1e6
    print(
        f"{megabytes:,.0f} MB, {count:,} units: {own:.1f} s of its own work ({megabytes / own:.1f} MB/s), "
        f"{seconds:.1f} s by the clock, peak memory {used.ru_maxrss / 1e3:.0f} MB"
    )


def main() -> None:
    """Make the file, and read it in another process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("--inline-tags", choices=["drop", "keep"], default="drop")
    parser.add_argument("--fill", action="store_true")
    parser.add_argument("--read", type=Path, help="read this file only (what the process of its own does)")
    options = parser.parse_args()
    if options.read:
        read_memory(options.read, inline_tags=options.inline_tags, fill=options.fill)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.tmx"
        number = write_memory(path, megabytes=options.megabytes)
        print(f"{number:,} units written", flush=True)
        words = [sys.executable, __file__, "--read", str(path), "--inline-tags", options.inline_tags]
        subprocess.run(words + ["--fill"] * options.fill, check=True)


if __name__ == "__main__":
    main()
