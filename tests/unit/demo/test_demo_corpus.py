"""The demo corpus as files."""

from headway.demo.corpus import write_corpus
from headway.demo.phrases import Parts, Phrase

PARTS = Parts(
    train=[Phrase("time", "3:45\u202fPM", "15:45"), Phrase("unit", "2 miles", "2\u00a0Meilen")],
    validation=[Phrase("unit", "3 miles", "3\u00a0Meilen")],
    test=[Phrase("time", "1:00\u202fAM", "01:00"), Phrase("countries", "Cuba and Chile", "Kuba und Chile")],
)


def test_every_part_becomes_two_files_with_one_phrase_a_line(tmp_path):
    folder = tmp_path / "deep" / "corpus"
    write_corpus(folder, PARTS, target="de")
    assert {path.name: path.read_bytes().decode() for path in folder.iterdir()} == {
        "train.en": "3:45\u202fPM\n2 miles\n",
        "train.de": "15:45\n2\u00a0Meilen\n",
        "validation.en": "3 miles\n",
        "validation.de": "3\u00a0Meilen\n",
        "test.en": "1:00\u202fAM\nCuba and Chile\n",
        "test.de": "01:00\nKuba und Chile\n",
        "test.kinds": "time\ncountries\n",
    }


def test_writing_again_replaces_what_was_there(tmp_path):
    write_corpus(tmp_path, PARTS, target="de")
    write_corpus(tmp_path, Parts(PARTS.train[:1], [], []), target="de")
    assert (tmp_path / "train.de").read_bytes() == b"15:45\n"
    assert (tmp_path / "test.kinds").read_bytes() == b""
