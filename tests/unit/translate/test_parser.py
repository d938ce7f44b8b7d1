"""Sentences to trees: with a model that knows nothing, whose every output is a tree all the same."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.config.schema import ParsingConfig
from headway.errors import CancelledError, ModelError, TextError, TranslationError
from headway.folder.contents import ModelFolder
from headway.search.cancel import Cancel
from headway.search.tree_form import Brackets
from headway.text.symbols import learn_symbols
from headway.translate.compute import Compute
from headway.translate.evaluate_parser import evaluate_parser, f1_of_symbols
from headway.translate.kind import check_kind
from headway.translate.parser import Parser, brackets_of
from headway.translate.translator import Translator
from headway.trees.linear import linearise
from random_parser import TAGS, XX, parser_of, write_parser

WORDS = st.lists(st.sampled_from(["the", "dog", "(", ")", "sleeps", ".", "x_y", "日本"]), max_size=11)


@settings(max_examples=15)
@given(st.lists(WORDS, max_size=4), st.integers(1, 5), st.booleans())
def test_every_sentence_gets_a_tree_over_its_words_that_needed_no_repair(sentences, seed, is_greedy):
    parses = parser_of(seed=seed).parse(sentences, beam_size=1 if is_greedy else 3)
    assert len(parses) == len(sentences)
    for words, parse in zip(sentences, parses, strict=True):
        if not words:
            assert parse.tree is None
            continue
        assert parse.tree.label == "TOP"
        assert list(parse.tree.words()) == words
        assert parse.repairs.total == 0
        assert set(parse.tree.tags()) <= set(TAGS)
        assert linearise(parse.tree) == list(parse.symbols)


@settings(max_examples=10)
@given(WORDS.filter(bool), st.integers(1, 5))
def test_without_the_rules_every_output_is_mended_and_the_mending_is_counted(words, seed):
    parser = parser_of(seed=seed, constrained=False)
    (parse,) = parser.parse([words])
    assert list(parse.tree.words()) == words
    assert (parse.repairs.total == 0) == (linearise(parse.tree) == list(parse.symbols))


@settings(max_examples=10)
@given(WORDS.filter(bool), st.data())
def test_given_tags_are_in_the_tree_and_unknown_or_missing_ones_are_left_open(words, data):
    own = [data.draw(st.sampled_from([*TAGS, "", "UNSEEN"])) for _ in words]
    (parse,) = parser_of().parse([words], tags=[own])
    for tag, found, symbol in zip(own, parse.tree.tags(), leaves(parse), strict=True):
        assert found == (tag or symbol)
        assert symbol == tag or tag in ("", "UNSEEN")


def leaves(parse):
    return [symbol for symbol in parse.symbols if symbol in TAGS]


def test_a_model_that_reads_tags_sees_them_and_refuses_sentences_without():
    parser = parser_of(tags="given", style="xx", symbols=XX)  # whose outputs have no tags to differ by
    assert parser.needs_tags
    first, second = (parser.parse([["dog", "dog"]], tags=[[tag, tag]])[0] for tag in ("NN", "VBZ"))
    assert first.log_prob != second.log_prob
    assert parser.parse([["dog"]], tags=[["UNSEEN"]])[0].num_unknown == 1
    with pytest.raises(TranslationError, match="found no tags"):
        parser.parse([["dog"]])


def test_a_style_that_hides_tags_shows_those_that_are_given():
    parser = parser_of(symbols=XX, style="xx")
    free, tagged = parser.parse([["the", "dog"]])[0], parser.parse([["the", "dog"]], tags=[["DT", "NN"]])[0]
    assert free.symbols == tagged.symbols
    assert free.tree.tags() == ("XX", "XX")
    assert tagged.tree.tags() == ("DT", "NN")


def test_300_words_are_parsed_whole_and_flagged():
    (parse,) = parser_of(extra=300).parse([["the", "dog", "sleeps"] * 100], beam_size=1)
    assert len(parse.tree.words()) == 300
    assert parse.is_long


def test_the_other_sentences_change_nothing_and_neither_does_the_budget():
    sentences = [["dog"], ["the", "dog", "sleeps", "."], [], ["the"] * 7]
    parser = parser_of()
    together = parser.parse(sentences)
    assert [parser.parse([words])[0].tree for words in sentences] == [parse.tree for parse in together]
    assert [parse.tree for parse in parser.parse(sentences, batch_tokens=1)] == [parse.tree for parse in together]


@pytest.mark.parametrize(
    ("sentences", "options", "error", "message"),
    [
        ("the dog", {}, TranslationError, "found a string"),
        (["the dog"], {}, TranslationError, "found a string"),
        ([["the dog"]], {}, TextError, "'the dog'"),
        ([["dog"]], {"tags": []}, TranslationError, "tags for 0 sentences, and 1"),
        ([["dog"], ["a", "b"]], {"tags": [["NN"], ["NN"]]}, TranslationError, "sentence 2 has 2 words and 1 tags"),
        ([["dog"]], {"corpus_tags": "wsj"}, TranslationError, "corpus tag 'wsj'"),
        ([["dog"]], {"corpus_tags": ["", ""]}, TranslationError, "2 corpus tags for 1 sentences"),
        ([["dog"]], {"beam_size": 0}, TranslationError, "beam size is 0"),
    ],
)
def test_what_is_no_request_is_refused(sentences, options, error, message):
    with pytest.raises(error, match=message):
        parser_of().parse(sentences, **options)


def test_brackets_are_found_by_the_names_of_symbols():
    tokenizer = learn_symbols(["NP NN /NP \\/ / /X", "S /S"], vocab_size=53, tags=["wsj"])
    ids = {name.strip(): place for place, name in enumerate(tokenizer.names)}
    found = brackets_of(tokenizer)
    assert set(zip(found.opening, found.closing, strict=True)) == {
        (ids["NP"], ids["/NP"]),
        (ids["S"], ids["/S"]),
    }
    assert set(found.leaves) == {ids[symbol] for symbol in ("NN", "\\/", "/", "/X")}
    assert found == Brackets(found.opening, found.closing, found.leaves, tokenizer.vocab_size)


def test_a_folder_opens_as_a_parser_and_never_as_a_translator(tmp_path):
    path = write_parser(tmp_path / "one")
    parser = Parser.from_folder(path, compute=Compute(precision="float32"))
    assert parser.constrained
    assert parser.parse([["the", "dog"]])[0].tree == parser_of().parse([["the", "dog"]])[0].tree
    assert not Parser.from_folder(path, constrained=False).constrained
    with pytest.raises(TranslationError, match=r"is a parser .*; wanted a translator\. Use it with `headway parse`"):
        Translator.from_folder(path)


def test_a_model_is_sent_to_the_command_that_uses_it(tmp_path):
    path = write_parser(tmp_path / "one")
    with pytest.raises(TranslationError, match=r"wanted a language model. Use it with `headway parse`"):
        check_kind(ModelFolder.open(path), "generate")
    settings = json.loads((path / "config.json").read_text(encoding="utf-8"))
    del settings["parsing"]
    for architecture, command in (("transformer", "translate"), ("decoder_only", "generate")):
        if architecture != "transformer":
            settings["model"] = {"vocab_size": 7, "architecture": architecture}
        (path / "config.json").write_text(json.dumps(settings), encoding="utf-8")
        with pytest.raises(TranslationError, match=rf"wanted a parser. Use it with `headway {command}`"):
            Parser.from_folder(path)


def test_several_models_parse_together(tmp_path):
    paths = [write_parser(tmp_path / str(seed), seed=seed) for seed in (1, 2)]
    single, both, twice = (
        Parser.from_folders(chosen, compute=Compute(engine="torch")).parse([["the", "dog"]])[0]
        for chosen in (paths[:1], paths, paths[:1] * 2)
    )
    assert twice.tree == single.tree
    assert twice.log_prob == pytest.approx(single.log_prob, abs=1e-5)
    assert both.log_prob != pytest.approx(single.log_prob, abs=1e-5)
    other = write_parser(tmp_path / "xx", parsing=ParsingConfig(style="xx"))
    with pytest.raises(TranslationError, match=r"differs from .* in parsing\.style"):
        Parser.from_folders([paths[0], other])


def test_too_few_positions_are_told_and_no_sentence_is_cut(tmp_path):
    parser = Parser.from_folder(write_parser(tmp_path / "learned", positions="learned"))
    assert parser.parse([["the"] * 7])[0].tree.words() == ("the",) * 7
    with pytest.raises((TranslationError, ModelError), match="the model has 31 positions"):
        parser.parse([["the"] * 31])


def test_another_thread_can_end_the_parsing():
    cancel = Cancel()
    parser = parser_of().cancelled_by(cancel)
    assert parser.parse([["dog"]])[0].tree is not None
    cancel.set()
    with pytest.raises(CancelledError):
        parser.parse([["dog"]])


@pytest.mark.parametrize(
    ("positions", "cross_positions"), [("sinusoidal", "none"), ("words", "none"), ("rope", "words")]
)
def test_a_search_among_trees_is_the_engines_too(tmp_path, positions, cross_positions):
    pytest.importorskip("headway_native", reason="headway-native is not built here")
    path = write_parser(tmp_path / "one", positions=positions, cross_positions=cross_positions)
    sentences = [["the", "dog"], [], ["the", "dog", "sleeps", "."] * 3, ["dog"]]
    tags = [["DT", ""], [], ["UNSEEN", "NN", "VBZ", "."] * 3, ["NN"]]
    native = Compute(device="cpu", engine="native", precision="float32")
    for constrained in (True, False):
        ours, torchs = (
            Parser.from_folder(path, compute=compute, constrained=constrained)
            for compute in (native, Compute(engine="torch"))
        )
        for beam_size in (1, 4, 21):
            for own in (None, tags):
                found, expected = (parser.parse(sentences, tags=own, beam_size=beam_size) for parser in (ours, torchs))
                assert [parse.symbols for parse in found] == [parse.symbols for parse in expected]
                assert [parse.tree for parse in found] == [parse.tree for parse in expected]
                assert [parse.score for parse in found] == pytest.approx([parse.score for parse in expected], abs=1e-4)


def test_on_a_cpu_the_engine_parses_in_8_bits_and_torch_where_it_cannot(tmp_path):
    pytest.importorskip("headway_native", reason="headway-native is not built here")
    path = write_parser(tmp_path / "one")
    notices = []
    parser = Parser.from_folder(path, compute=Compute(device="cpu"), on_notice=notices.append)
    assert parser.backend.engine.packed.precision == "int8"
    (parse,) = parser.parse([["the", "dog"]])
    assert parse.tree.words() == ("the", "dog")
    assert parse.repairs.total == 0
    assert not notices
    Parser.from_folders([path, path], compute=Compute(device="cpu"), on_notice=notices.append)
    assert notices == ["the engine does not join several models: torch computes"]


def f1_of(outputs, references, sources, *, phrases=("S", "NP", "VP")):
    own = frozenset(phrases)
    return f1_of_symbols(outputs, references, sources=sources, parsing=ParsingConfig(), phrases=own)


def test_validations_mend_outputs_by_the_labels_that_the_parser_knows():
    """As the parser does: a CAPTION without its end is a phrase where the vocabulary opens CAPTION, else a tag."""
    sources, right = ["Figure_NN 1_CD"], ["CAPTION NN CD /CAPTION"]
    assert f1_of(["CAPTION NN CD"], right, sources, phrases=("S", "CAPTION")) == 100.0
    assert f1_of(["CAPTION NN CD"], right, sources, phrases=("S",)) < 100.0


@pytest.mark.parametrize("extra", range(1, 7))
def test_a_tree_that_filled_its_room_is_cut_though_its_length_is_one_below_the_limit(extra):
    """A phrase is two tokens, so of two limits that follow each other one is never met."""
    parser = parser_of(extra=extra, max_openings=99)
    longest = []
    for number in range(1, 9):
        (parse,) = parser.parse([["dog"] * number], beam_size=1)
        limit = len(parser.source_tokenizer.encode(" ".join(["dog"] * number))) + 1 + extra
        longest.append(len(parse.symbols) + 1 >= limit - 1)
        assert parse.is_cut == longest[-1]
    assert any(longest)


def test_f1_is_100_for_the_references_themselves_and_falls_with_a_wrong_bracket():
    sources = ["the_DT dog_NN sleeps_VBZ ._.", "", "a_DT dog_NN"]
    right = ["S NP DT NN /NP VP VBZ /VP . /S", "", "NP DT NN /NP"]
    assert f1_of(right, right, sources) == 100.0
    wrong = ["S NP DT /NP VP NN VBZ /VP . /S", "", "NP DT NN /NP"]
    assert f1_of(wrong, right, sources) == pytest.approx(50.0)  # S and NP of 4, of 4
    mended = ["S NP DT NN /NP VP VBZ", "", "NP DT NN NN /NP"]  # closed at the end; a tag too many is dropped
    assert f1_of(mended, right, sources) == 100.0


def test_an_evaluation_counts_what_was_mended_and_what_has_no_words():
    sources, references = ["the_DT dog_NN", "", "x_y_NN"], ["NP DT NN /NP", "", "NP NN /NP"]
    found = evaluate_parser(parser_of(constrained=False, seed=3), sources, references)
    assert found.num_empty == 1
    assert found.num_repaired == 2
    assert any("2 of 3 outputs were no trees" in warning for warning in found.warnings)
    assert found.scores.all.every_length.num_sentences == 2
    table = found.to_dict()
    assert table["tags"] == "predicted"
    assert table["all"]["every_length"]["tagging_accuracy"] < 100.0  # its own tags, and not those of the references
    assert "sentences" not in table
