"""A language model trains by the same path: prepared, batched, resumed bit for bit, and written to a model folder."""

import json
import math
from random import Random

import numpy as np
import pytest
import torch
from train_letters import final_state, of_kind, run, write_corpus
from train_text import LINES, VALIDATION_LINES, chain, text_config, write_text

from headway.config.load import load_text
from headway.data.prepared import read_prepared
from headway.errors import ConfigError, DataError, TranslationError
from headway.folder.contents import ModelFolder
from headway.metrics.perplexity import WordPerplexity
from headway.model.build import build_language_model, load_weights
from headway.train.events import Finished, Notice, Validated
from headway.train.run import train
from headway.translate.decoding import Decoding
from headway.translate.generator import Generator
from headway.translate.translator import Translator


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run: its folder, its text and its events."""
    folder = tmp_path_factory.mktemp("lm")
    data = write_text(folder / "data")
    return folder / "m", data, run(text_config(), data, folder / "m")


def lines_of(data, part):
    return (data / f"{part}.txt").read_text(encoding="utf-8").split("\n")[:-1]


def test_a_line_is_a_target_without_a_source(trained):
    out, data, _ = trained
    prepared = read_prepared(out / "training" / "data")
    store = prepared.store("train")
    assert len(store) == LINES == prepared.report.pairs_read
    assert not store.source_lengths.any()
    assert [prepared.target_tokenizer.decode(store.target(i).tolist()) for i in range(LINES)] == lines_of(data, "train")
    assert prepared.report.validation.pairs == VALIDATION_LINES


def test_validation_tells_the_loss_and_no_scores_of_translations(trained):
    out, _, events = trained
    validations = of_kind(events, Validated)
    assert [event.step for event in validations] == [5, 10, 14]
    assert all(event.bleu is None and event.chrf is None and event.samples == () for event in validations)
    assert validations[-1].perplexity < validations[0].perplexity
    assert not [notice for notice in of_kind(events, Notice) if "BLEU" in notice.text]
    records = [json.loads(line) for line in (out / "training" / "metrics.jsonl").read_text().splitlines()]
    assert [record["bleu"] for record in records if record["event"] == "validation"] == [None] * 3


def test_the_measured_perplexity_is_that_of_the_whole_forward_pass(trained):
    out, data, events = trained
    folder = ModelFolder.open(out)
    model = build_language_model(folder.config.model)
    load_weights(model, folder.weights())
    lines, nll = lines_of(data, "validation"), 0.0
    for ids in folder.target_tokenizer.encode_batch(lines):
        with torch.no_grad():
            log_probs = model.eval()(torch.tensor([[2, *ids]])).log_softmax(dim=-1)[0]
        nll -= sum(log_probs[place, token].item() for place, token in enumerate([*ids, 3]))
    words = sum(len(line.split()) + 1 for line in lines)
    (finished,) = of_kind(events, Finished)
    measured = Generator.from_folder(out).measure(lines)
    for found in (finished.evaluation, measured):
        assert isinstance(found, WordPerplexity)
        assert found.nll == pytest.approx(nll, rel=1e-5)
        assert (found.num_words, found.num_lines) == (words, VALIDATION_LINES)
        assert found.per_word == pytest.approx(math.exp(nll / words), rel=1e-5)
    assert finished.evaluated_on == "validation"


def test_each_line_has_its_own_cost_whatever_batches_they_are_read_in(trained):
    generator = Generator.from_folder(trained[0])
    lines = ["a b c a b c a", "a", "b c a b", "c"]  # not in the order of their lengths
    alone = [generator.measure([line]).nll for line in lines]
    assert len(set(alone)) == len(lines)
    for batch_tokens in (None, 8):
        assert generator.costs(lines, batch_tokens=batch_tokens) == pytest.approx(alone, rel=1e-5)


def test_the_card_says_what_the_model_is_and_how_well_it_predicts(trained):
    out, _, events = trained
    card = (out / "README.md").read_text(encoding="utf-8")
    (finished,) = of_kind(events, Finished)
    assert f"headway generate -m {out}" in card
    assert f"{finished.evaluation.per_word:.2f}" in card
    assert "decoder layers, d_model 16" in card
    assert "headway translate" not in card


@pytest.mark.parametrize("stop_at", [1, 7])
def test_stopped_and_resumed_is_never_stopped_bit_for_bit(trained, tmp_path, stop_at):
    out, data, _ = trained
    run(text_config(), data, tmp_path / "m", stop_at=stop_at)
    run(text_config(), data, tmp_path / "m")
    assert final_state(tmp_path / "m") == final_state(out)


def test_a_prompt_is_kept_and_draws_come_again_whatever_else_is_drawn(trained):
    out, _, _ = trained
    generator = Generator.from_folder(out)
    from headway.search.settings import Sampling

    drawing = Decoding(sampling=Sampling(seed=3), n_best=5)
    several = generator.generate(["a b", "", "c"], decoding=drawing, max_tokens=9)
    assert all(text.text.startswith("a b") for text in several[0])
    (alone,) = generator.generate(["c"], decoding=drawing, max_tokens=9, batch_tokens=1)
    assert [text.tokens for text in alone] == [text.tokens for text in several[2]]
    assert sum(text.count for text in several[1]) == 5
    other = generator.generate(["b c"], decoding=drawing, max_tokens=9)[0]
    assert [text.tokens[4:] for text in other] != [text.tokens[4:] for text in several[0]]


def test_no_more_tokens_are_added_than_allowed(trained):
    (found,) = Generator.from_folder(trained[0]).generate(["a b c"], decoding=Decoding(beam_size=2), max_tokens=1)
    assert found[0].text == "a b c"
    assert found[0].is_cut


def test_what_a_translator_needs_is_refused_of_a_language_model(trained, tmp_path):
    out, data, _ = trained
    with pytest.raises(TranslationError, match="Use it with `headway generate`"):
        Translator.from_folder(out)
    with pytest.raises(TranslationError, match="found one string"):
        Generator.from_folder(out).generate("a b")
    with pytest.raises(TranslationError, match="holds a line end"):
        Generator.from_folder(out).generate(["a\nb"])
    with pytest.raises(ConfigError, match=r"best_by is bleu and model\.architecture decoder_only gives"):
        text_config("train.best_by=bleu")
    with pytest.raises(DataError, match=r"train\.txt: found format moses; a run whose model\.architecture is"):
        run(text_config("data.format=moses", "data.train_target=train.txt"), data, tmp_path / "m")


def test_one_text_is_refused_of_a_translator(tmp_path):
    data = write_text(tmp_path / "data")
    config = text_config("model.architecture=transformer", "train.best_by=loss")
    with pytest.raises(DataError, match="wants none of the formats text, consecutive"):
        run(config, data, tmp_path / "m")


def test_a_translator_is_no_language_model(tmp_path):
    from train_letters import letters_config

    run(letters_config("train.max_steps=1"), write_corpus(tmp_path / "data"), tmp_path / "m")
    with pytest.raises(TranslationError, match="Use it with `headway translate`"):
        Generator.from_folder(tmp_path / "m")


def test_a_run_may_begin_with_a_language_model(trained, tmp_path):
    out, data, _ = trained
    config = text_config(f"train.init={out}", "train.max_steps=2", "train.validate_every=1")
    events = list(train(config, data, out_dir=tmp_path / "n"))
    first = of_kind(events, Validated)[0]
    last = of_kind(trained[2], Validated)[-1]
    assert first.loss == pytest.approx(last.loss, abs=0.3)
    assert ModelFolder.open(tmp_path / "n").config.training.parent == str(out)


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ([], "is a language model, which reads one text, and the recipe names a target side"),
        (["data.format=trees", "text.shared_vocabulary=false"], "is a language model, and the recipe makes a parser"),
    ],
)
def test_what_needs_another_model_does_not_begin_with_a_language_model(trained, tmp_path, keys, wanted):
    out, data, _ = trained
    recipe = '[data]\ntrain_source = "a.en"\ntrain_target = "a.de"\n[model]\nembedding_sharing = "target"\n'
    config = load_text(recipe, overrides=[f"train.init={out}", *keys])
    with pytest.raises(ConfigError, match=wanted):
        list(train(config, data, out_dir=tmp_path / "n"))


@pytest.mark.parametrize("keys", [["train.consistency=rdrop"], ["text.bpe_dropout=0.1"], ["train.optimizer=muon"]])
def test_what_trains_translators_trains_language_models(keys, tmp_path):
    data = write_text(tmp_path / "data")
    events = run(text_config("train.max_steps=3", *keys), data, tmp_path / "m")
    assert all(np.isfinite(event.loss) for event in of_kind(events, Validated))


@pytest.mark.slow
def test_a_language_model_learns_a_chain_to_its_entropy(tmp_path):
    """One of 7 first letters, then 7 times one of two: all that there is to learn, and a line ends after 8."""
    random, data = Random(5), tmp_path / "data"
    data.mkdir()
    for part, count in (("train", 1500), ("validation", 200)):
        (data / f"{part}.txt").write_text("".join(f"{chain(random, 8)}\n" for _ in range(count)))
    keys = ("train.max_steps=400", "train.batch_tokens=600", "train.validate_every=100", "model.dropout=0.0")
    run(text_config(*keys, "clean.drop_duplicates=false"), data, tmp_path / "m")
    found = Generator.from_folder(tmp_path / "m").measure(lines_of(data, "validation"))
    entropy = 200 * (math.log(7) + 7 * math.log(2))
    assert 0.98 * entropy < found.nll < 1.1 * entropy
