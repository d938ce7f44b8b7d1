"""headway parse and headway evaluate --task parsing: trees in and out of files, and what is refused."""

import json
import re

import pytest

from headway.cli.main import main
from headway.config.schema import ParsingConfig
from headway.translate.parser import Parser
from headway.trees.brackets import read_trees
from random_parser import write_parser

GOLD = ["(TOP (S (NP (DT the) (NN dog)) (VP (VBZ sleeps)) (. .)))", "(TOP (NP (DT a) (NN dog)))"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_parser(tmp_path_factory.mktemp("model") / "parser"))


@pytest.fixture(scope="module")
def reading_model(tmp_path_factory):
    return str(write_parser(tmp_path_factory.mktemp("model") / "reading", parsing=ParsingConfig(tags="given")))


@pytest.fixture
def sentences(tmp_path):
    path = tmp_path / "sentences.txt"
    path.write_text("the dog sleeps .\n\n-LRB- the dog )\n", encoding="utf-8")
    return str(path)


def words_of(tree):
    return re.findall(r" ([^\s()]+)\)", tree)


def test_a_line_gives_a_tree_and_an_empty_one_an_empty_line(model, sentences, capsys):
    assert main(["parse", "-m", model, sentences]) == 0
    first, second, third, end = capsys.readouterr().out.split("\n")
    assert words_of(first) == ["the", "dog", "sleeps", "."]
    assert second == end == ""
    assert words_of(third) == ["-LRB-", "the", "dog", "-RRB-"]


def test_a_parser_that_predicts_tags_is_not_told_those_of_the_trees(model, tmp_path, capsys):
    """Else it would be measured as one that reads tags."""
    (tmp_path / "gold").write_text("(TOP (X (VBZ the) (VBZ dog)))\n(TOP (VBZ sleeps))\n", encoding="utf-8")
    (tmp_path / "words").write_text("the dog\nsleeps\n", encoding="utf-8")
    assert main(["parse", "-m", model, str(tmp_path / "gold"), "--from-trees"]) == 0
    from_trees = capsys.readouterr().out
    assert main(["parse", "-m", model, str(tmp_path / "words")]) == 0
    assert capsys.readouterr().out == from_trees
    assert from_trees.count("VBZ") < 3


def test_words_end_at_spaces_and_tabs_alone(model, tmp_path, capsys):
    (tmp_path / "x").write_text("10\u00a0mg\tof \u3000 it\n", encoding="utf-8")
    assert main(["parse", "-m", model, str(tmp_path / "x")]) == 0
    (tree,) = read_trees(capsys.readouterr().out.split("\n")[:1])
    assert tree.words() == ("10\u00a0mg", "of", "\u3000", "it")


def test_trees_are_drawn_as_text_and_to_files_of_svg(model, sentences, tmp_path, capsys):
    assert main(["parse", "-m", model, sentences, "--draw", "text"]) == 0
    assert "TOP" in capsys.readouterr().out
    assert main(["parse", "-m", model, sentences, "--draw", "svg", "-o", str(tmp_path / "drawings")]) == 0
    assert sorted(path.name for path in (tmp_path / "drawings").iterdir()) == ["1.svg", "3.svg"]
    assert (tmp_path / "drawings" / "1.svg").read_text(encoding="utf-8").startswith("<svg")
    assert main(["parse", "-m", model, sentences, "--draw", "svg"]) == 2
    assert "name a folder" in capsys.readouterr().err


def test_pretty_trees_are_read_back_as_the_same_trees(model, sentences, tmp_path):
    for name, options in (("plain", []), ("pretty", ["--pretty"])):
        assert main(["parse", "-m", model, sentences, "-o", str(tmp_path / name), *options]) == 0
    assert list(read_trees(tmp_path / "plain")) == list(read_trees(tmp_path / "pretty"))


def test_jsonl_has_the_tree_of_the_line_and_its_score(model, sentences, capsys):
    assert main(["parse", "-m", model, sentences, "--length-penalty", "0.3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert main(["parse", "-m", model, sentences, "--format", "jsonl", "--length-penalty", "0.3"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["tree"] or "" for record in records] == lines
    first, empty, _ = records
    inner = len(re.findall(r"\((?=[^ ]+ \()", first["tree"])) - 1  # TOP is not written
    assert first["num_symbols"] == 2 * inner + len(words_of(first["tree"]))
    length = first["num_symbols"] + 1  # EOS
    assert first["score"] == pytest.approx(first["log_prob"] / ((5 + length) / 6) ** 0.3)
    assert first["score"] < 0.0
    assert (empty["tree"], empty["score"], empty["log_prob"], empty["num_symbols"]) == (None, None, None, 0)
    assert [record["num_unknown"] for record in records] == [
        parse.num_unknown
        for parse in Parser.from_folder(model).parse([["the", "dog", "sleeps", "."], [], ["(", "the", "dog", ")"]])
    ]


def test_a_reward_of_words_is_for_search_among_trees(model, sentences, capsys):
    outputs = []
    for options in ([], ["--word-reward", "0"], ["--word-reward", "40", "--beam-size", "2"]):
        assert main(["parse", "-m", model, sentences, *options]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != outputs[2]
    parses = Parser.from_folder(model).parse([["the", "dog", "sleeps", "."]], beam_size=2, word_reward=40.0)
    assert outputs[2].split("\n")[0] == str(parses[0].tree)
    assert main(["parse", "-m", model, sentences, "--word-reward", "1", "--unconstrained"]) == 2
    assert "--word-reward would have no effect" in capsys.readouterr().err


def test_tags_come_from_a_file_with_the_words_or_from_trees(reading_model, tmp_path, capsys):
    (tmp_path / "s").write_text("the dog\n\nBo\n", encoding="utf-8")
    (tmp_path / "t").write_text("DT NN\n\nNN\n", encoding="utf-8")
    (tmp_path / "tagged").write_text("the_DT  dog_NN\n\nBo_NN\n", encoding="utf-8")
    (tmp_path / "gold").write_text(
        "(TOP (X (DT the) (NN dog)))\n( (NP (-NONE- *)) )\n(TOP (NN Bo))\n", encoding="utf-8"
    )
    outputs = []
    for options in (
        [str(tmp_path / "s"), "--tags", str(tmp_path / "t")],
        [str(tmp_path / "tagged"), "--tagged"],
        [str(tmp_path / "gold"), "--from-trees"],
    ):
        assert main(["parse", "-m", reading_model, *options]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] == outputs[2]
    assert "(DT the)" in outputs[0]
    assert "(NN Bo)" in outputs[0]


def test_a_model_that_reads_tags_says_how_to_give_them(reading_model, sentences, capsys):
    assert main(["parse", "-m", reading_model, sentences]) == 2
    assert "Give --tags FILE, --tagged with word_TAG" in capsys.readouterr().err


def test_unconstrained_output_is_mended_and_told_by_number(model, sentences, capsys):
    assert main(["parse", "-m", model, sentences, "--unconstrained", "--engine", "torch"]) == 0
    told = capsys.readouterr()
    assert words_of(told.out.split("\n")[0]) == ["the", "dog", "sleeps", "."]
    assert "2 sentences whose output was no tree over its words, mended (docs/parsing.md): number 1, 3" in told.err


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ("a_DT dog_NN\n\na_DT dog\n", ["--tagged"], "word 2 of .*x line 3 is 'dog', which has no tag"),
        ("the dog\n", ["--from-trees"], r"line 1: found 'the' outside of brackets"),
        ("(S (NN dog)\n", ["--from-trees"], r"line 1: the tree that begins here is not closed"),
        ("the dog\n", ["--tagged", "--from-trees"], "wanted one"),
        ("the dog\n", ["--pretty", "--draw", "text"], "found 2 ways"),
        ("the dog\n", ["--pretty", "--format", "jsonl"], "--format jsonl and --pretty: found 2 ways"),
        ("the dog\n", ["--tag", "wsj"], "corpus tag 'wsj'"),
    ],
)
def test_what_cannot_be_parsed_is_told_in_one_line(model, tmp_path, capsys, lines, options, message):
    (tmp_path / "x").write_text(lines, encoding="utf-8")
    assert main(["parse", "-m", model, str(tmp_path / "x"), *options]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_unequal_counts_of_sentences_and_tags_are_refused(model, tmp_path, capsys):
    (tmp_path / "s").write_text("the dog\nBo\n", encoding="utf-8")
    (tmp_path / "t").write_text("DT NN\n", encoding="utf-8")
    assert main(["parse", "-m", model, str(tmp_path / "s"), "--tags", str(tmp_path / "t")]) == 2
    assert "pairs need equal counts" in capsys.readouterr().err


def evaluated(tmp_path, hypotheses, *options):
    (tmp_path / "gold").write_text("".join(f"{tree}\n" for tree in GOLD), encoding="utf-8")
    (tmp_path / "found").write_text("".join(f"{tree}\n" for tree in hypotheses), encoding="utf-8")
    files = ["--hypothesis", str(tmp_path / "found"), "--reference", str(tmp_path / "gold")]
    return main(["evaluate", "--task", "parsing", *files, *options])


def test_both_figures_are_printed_and_all_counts_what_failed(tmp_path, capsys):
    assert evaluated(tmp_path, [GOLD[0], ""]) == 0
    told = capsys.readouterr()
    rows = {
        tuple(line.split()[:2]): line.split() for line in told.out.split("\n") if line.startswith(("all ", "evalb "))
    }
    assert rows[("evalb", "any")][2:7] == ["2", "1", "100.00", "100.00", "100.00"]
    assert rows[("all", "any")][2:6] == ["2", "1", "75.00", "100.00"]  # 3 of 4 brackets
    assert rows[("all", "any")][6] == "85.71"
    assert "1 of 2 sentences have no parse" in told.err


def test_json_holds_the_same_figures_and_a_paired_test_with_a_baseline(tmp_path, capsys):
    (tmp_path / "other").write_text(f"{GOLD[0]}\n\n", encoding="utf-8")
    assert evaluated(tmp_path, GOLD, "--json", "--baseline", str(tmp_path / "other")) == 0
    table = json.loads(capsys.readouterr().out)
    assert table["all"]["every_length"]["f1"] == 100.0
    assert table["comparison"]["every_length"]["baseline"] == pytest.approx(600 / 7)
    assert evaluated(tmp_path, GOLD, "--baseline", str(tmp_path / "other")) == 0
    assert "+14.29" in capsys.readouterr().out


def test_tags_of_the_references_can_be_put_on_first(tmp_path, capsys):
    hidden = [tree.replace("(. .)", "(XX .)").replace("DT ", "XX ").replace("NN ", "XX ") for tree in GOLD]
    assert evaluated(tmp_path, hidden, "--json") == 0
    assert json.loads(capsys.readouterr().out)["evalb"]["every_length"]["num_errors"] == 1  # a full stop was a word
    assert evaluated(tmp_path, hidden, "--json", "--reference-tags") == 0
    assert json.loads(capsys.readouterr().out)["evalb"]["every_length"]["f1"] == 100.0


def test_whose_tags_stood_on_the_trees_is_told(tmp_path, capsys):
    for options, told, kept in ((["--reference-tags"], "those of the references", True), ([], "their own", False)):
        assert evaluated(tmp_path, GOLD, *options) == 0
        assert f"tags on the scored trees: {told}" in capsys.readouterr().out
        assert evaluated(tmp_path, GOLD, *options, "--json") == 0
        assert json.loads(capsys.readouterr().out)["reference_tags"] is kept


def test_a_sentence_of_punctuation_alone_is_no_failure(tmp_path, capsys):
    (tmp_path / "points").write_text("(TOP (S (. .)))\n", encoding="utf-8")
    files = ["--hypothesis", str(tmp_path / "points"), "--reference", str(tmp_path / "points")]
    assert main(["evaluate", "--task", "parsing", *files]) == 0
    assert "have no parse" not in capsys.readouterr().err


def test_a_file_of_parameters_or_their_name_is_taken(tmp_path, capsys):
    (tmp_path / "x.prm").write_text("LABELED 0\nDELETE_LABEL TOP\n", encoding="utf-8")
    renamed = [tree.replace("NP", "XP") for tree in GOLD]
    assert evaluated(tmp_path, renamed, "--json", "--parameters", str(tmp_path / "x.prm")) == 0
    assert json.loads(capsys.readouterr().out)["all"]["every_length"]["f1"] == 100.0
    assert evaluated(tmp_path, renamed, "--json", "--parameters", "new") == 0
    assert json.loads(capsys.readouterr().out)["all"]["every_length"]["f1"] == 50.0


@pytest.mark.parametrize(
    ("hypotheses", "options", "message"),
    [
        (GOLD[:1], [], r"found has 1 lines, .*gold has 2 trees"),
        (["(S (NP", ""], [], "line 1"),
        (["(TOP (S (NP (DT the) (NN dog))", " (VP (VBZ barks)) (. .)))"], [], r"line 1: .*without --pretty"),
        (GOLD, ["--lowercase"], "--lowercase would have no effect with --task parsing"),
        (GOLD, ["-m", "x"], "--model would have no effect with --task parsing"),
        (GOLD, ["--parameters", "nothing-here.prm"], "nothing-here"),
    ],
)
def test_what_cannot_be_scored_is_told_in_one_line(tmp_path, capsys, hypotheses, options, message):
    assert evaluated(tmp_path, hypotheses, *options) == 2
    assert re.search(message, capsys.readouterr().err)


def test_a_parser_in_place_of_trees_is_answered_with_the_way_to_trees(tmp_path, capsys):
    assert main(["evaluate", "--task", "parsing", "-m", str(tmp_path), "--reference", "y"]) == 2
    assert "write them with headway parse, and name it with --hypothesis" in capsys.readouterr().err


def test_options_of_parsing_are_refused_without_the_task(tmp_path, capsys):
    assert main(["evaluate", "--hypothesis", "x", "--reference", "y", "--parameters", "new"]) == 2
    assert "without --task parsing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("translate", "FILE"), "wanted a translator. Use it with `headway parse`"),
        (("evaluate", "--source", "FILE", "--reference", "FILE"), "wanted a translator"),
        (("evaluate", "--task", "language-model", "--reference", "FILE"), "wanted a language model"),
        (("shortlist", "FILE", "FILE"), "wanted a translator"),
        (("generate", "--prompt", "a"), "wanted a language model"),
        (("classify", "FILE"), "wanted a text encoder"),
        (("export", "--to", "huggingface", "--out", "new"), "use it with headway parse"),
    ],
)
def test_a_parser_is_refused_by_commands_of_other_models(tmp_path, capsys, monkeypatch, arguments, wanted):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").write_text("the dog\n", encoding="utf-8")
    name, *rest = arguments
    assert main([name, "-m", str(write_parser(tmp_path / "parser")), *rest]) == 2
    told = capsys.readouterr().err
    assert "is a parser" in told
    assert wanted.lower() in told.lower()
