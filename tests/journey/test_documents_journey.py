"""A person with nothing but a translation memory: trains on it, and gets documents back that other tools can open."""

import xml.etree.ElementTree as ET

import pytest
from journey_command import SMALL, five_letter_strings, headway, set_options

STRINGS = five_letter_strings(211)
UNIT = (
    '<tu><tuv xml:lang="en-US"><seg><bpt i="1">&lt;b&gt;</bpt>{}<ept i="1">&lt;/b&gt;</ept></seg></tuv>'
    '<tuv xml:lang="de-DE"><seg>{}</seg></tuv><tuv xml:lang="fr"><seg>x</seg></tuv></tu>\n'
)
TMX = '<?xml version="1.0" encoding="UTF-16"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">'
TMX += '<header creationtool="x" creationtoolversion="1" segtype="sentence" o-tmf="x" adminlang="en" srclang="*all*" '
TMX += 'datatype="plaintext"/>\n<body>\n'
TMX += "".join(UNIT.format(text, text.upper()) for text in STRINGS) + "</body></tmx>\n"
XLIFF = f"""<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
 <file original="a" datatype="x" source-language="en-GB" target-language="de-AT">
  <body>
   <trans-unit id="1"><source>{STRINGS[0]} <g id="1">{STRINGS[1]}</g><x id="2"/></source></trans-unit>
   <trans-unit id="2" translate="no"><source>{STRINGS[2]}</source></trans-unit>
   <trans-unit id="3"><source>{STRINGS[3]}</source><target>FERTIG</target></trans-unit>
   <trans-unit id="4"><source>{STRINGS[4]}</source><target/></trans-unit>
  </body>
 </file>
</xliff>
"""
NAMESPACE = "{urn:oasis:names:tc:xliff:document:1.2}"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of 12 steps, trained on the memory alone."""
    folder = tmp_path_factory.mktemp("memory")
    (folder / "memory.tmx").write_bytes(TMX.encode("utf-16"))
    keys = ("model.vocab_size=20", "train.max_steps=12", "train.batch_tokens=300", "train.validate_every=6")
    done = headway(
        "train",
        *("--source", folder / "memory.tmx", "--source-language", "en", "--target-language", "de"),
        *("--out", folder / "model", *set_options(*SMALL, *keys)),
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"211 of 211" in done.stderr
    return folder / "model"


def test_an_xliff_comes_back_whole_with_its_open_targets_filled(model, tmp_path):
    (tmp_path / "in.xlf").write_text(XLIFF)
    done = headway("translate", "in.xlf", "out.xlf", "-m", model, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b""
    assert b"headway: out.xlf: 2 segments of 4 filled, 1 kept as they were, 1 not to be translated" in done.stderr
    units = ET.fromstring((tmp_path / "out.xlf").read_text()).findall(f".//{NAMESPACE}trans-unit")
    targets = [unit.find(f"{NAMESPACE}target") for unit in units]
    assert targets[1] is None
    assert targets[2].text == "FERTIG"
    assert [(tag.tag.removeprefix(NAMESPACE), tag.get("id")) for tag in targets[0]] == [("g", "1"), ("x", "2")]
    assert targets[0].get("state") == targets[3].get("state") == "needs-review-translation"
    without_targets = (tmp_path / "out.xlf").read_text().split("<target")
    assert without_targets[0] == XLIFF[: len(without_targets[0])]
    assert without_targets[-1].endswith(XLIFF[XLIFF.index("<target/>") + len("<target/>") :])


def test_a_second_round_changes_nothing(model, tmp_path):
    (tmp_path / "in.xlf").write_text(XLIFF)
    assert headway("translate", "in.xlf", "in.xlf", "-m", model, cwd=tmp_path).returncode == 0
    once = (tmp_path / "in.xlf").read_bytes()
    done = headway("translate", "in.xlf", "in.xlf", "-m", model, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert b"0 segments of 4 filled, 3 kept" in done.stderr
    assert (tmp_path / "in.xlf").read_bytes() == once


def test_a_damaged_document_is_told_in_one_line_and_nothing_is_written(model, tmp_path):
    (tmp_path / "in.xlf").write_text(XLIFF[:-30])
    done = headway("translate", "in.xlf", "out.xlf", "-m", model, cwd=tmp_path)
    assert done.returncode == 2
    (error,) = [line for line in done.stderr.splitlines() if line.startswith(b"headway: error: ")]
    assert b"in.xlf line 8: found the end of the file" in error
    assert done.stderr.splitlines()[-1] == error
    assert [path.name for path in tmp_path.iterdir()] == ["in.xlf"]


def test_a_po_file_is_filled_with_its_placeholders(model, tmp_path):
    (tmp_path / "in.po").write_text(f'#, c-format\nmsgid "{STRINGS[0]} %s\\n"\nmsgstr ""\n')
    done = headway("translate", "in.po", "out.po", "-m", model, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    head, tail = (tmp_path / "out.po").read_text().split("msgstr ")
    assert head == f'#, fuzzy, c-format\nmsgid "{STRINGS[0]} %s\\n"\n'
    assert tail.count("%s") == 1
    assert tail.endswith('\\n"\n')
