"""Each kind of trouble is provoked in a real run and told in one line with what to do; healthy runs are quiet."""

import json
import re
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from train_letters import letters_config, of_kind, run
from train_text import LABELLED_KEYS, text_config, write_labelled, write_text

from headway.corpus.overlap import Overlap
from headway.data.loader import collate
from headway.data.prepared import read_prepared
from headway.train import loop
from headway.train import validate as validate_module
from headway.train.events import Interrupted, StepDone, Validated, Warned
from headway.train.history import History, Step
from headway.train.kinds import KINDS, NAMES
from headway.train.look import unigram_nll
from headway.train.text_faults import overlap_trouble
from headway.train.validate import TextLoss
from headway.translate.translation import Translation

QUICK = ("train.max_steps=40", "train.validate_every=10", "train.checkpoint_every=40")
RATE = {"loss-rises", "stuck", "gradients-grow"}  # kinds that say that the learning rate is too high
LONGER = ("train.max_steps=180", "train.validate_every=60", "train.checkpoint_every=60")


def write_words(folder, *, train_target=None, validation_target=None, shared=0):
    """Five to eight words a line, the target the same in capitals where nothing else is said.

    ``shared``: of the 13 validation pairs, how many stand in the training text too.
    """
    random = Random(11)
    words = ["".join(random.choices("abcdefg", k=3)) for _ in range(17)]
    lines = list(dict.fromkeys(" ".join(random.choices(words, k=random.randint(5, 8))) for _ in range(90)))[:84]
    train, validation = lines[:71], lines[71:]
    train[:shared] = validation[:shared]
    folder.mkdir(parents=True, exist_ok=True)
    for part, texts, change in (("train", train, train_target), ("validation", validation, validation_target)):
        for language, of in (("en", str), ("de", change or str.upper)):
            text = "".join(of(line) + "\n" for line in texts)
            (folder / f"{part}.{language}").write_text(text, encoding="utf-8", newline="\n")
    return folder


def warned(events, kind=None):
    return [event for event in of_kind(events, Warned) if kind in (None, event.kind)]


def train_words(tmp_path, *overrides, **corpus):
    data = write_words(tmp_path / "data", **corpus)
    return run(letters_config("model.vocab_size=47", *overrides), data, tmp_path / "out")


@pytest.fixture
def says(monkeypatch):
    """Let the model's outputs be what a function makes of the source; all else of a validation is real."""

    def let(output, *, accuracy=None, **flags):
        class Speaker:
            def translate(self, texts, **_):
                return [Translation(output(text), **flags) for text in texts]

        monkeypatch.setattr(validate_module, "session_translator", lambda session, model, **_: Speaker())
        if accuracy is not None:
            measured = (TextLoss(1.0, 0.5, accuracy), None)
            monkeypatch.setattr(validate_module, "validation_losses", lambda session, model: measured)

    return let


def changing(monkeypatch, change):
    """After each step of a real run, ``change(model, step)``."""
    plain = loop.train_step

    def changed(model, optimizer, *, step, **more):
        result = plain(model, optimizer, step=step, **more)
        with torch.no_grad():
            change(model, step)
        return result

    monkeypatch.setattr(loop, "train_step", changed)


# Healthy runs


def test_a_run_whose_outputs_are_right_is_quiet(tmp_path, says):
    says(str.upper, accuracy=0.97)
    assert warned(train_words(tmp_path, *QUICK)) == []


def test_a_run_that_has_hardly_begun_is_quiet_though_its_outputs_loop(tmp_path, says):
    """During the warm-up, and at the first validation after it, a model that has learnt little does that."""
    says(lambda text: "AB " * 9)
    events = train_words(tmp_path, *QUICK, "train.warmup_steps=31")
    assert len(of_kind(events, Validated)) == 4
    assert warned(events) == []


def test_a_run_that_learns_letters_warns_of_neither_loss_nor_attention(tmp_path):
    events = train_words(tmp_path, *LONGER)
    assert not RATE & {w.kind for w in warned(events)}
    assert not {"loss-spike", "attention", "overlap", "unknown"} & {w.kind for w in warned(events)}


# Provoked, by the model itself


def test_training_text_that_holds_validation_text_is_told_at_the_start_and_beside_the_first_scores(tmp_path):
    events = train_words(tmp_path, *QUICK, shared=3)
    told = warned(events, "overlap")
    assert [event.step for event in told] == [0, 10]
    assert "3 of 13 validation pairs (about 23 %)" in told[0].text
    kinds = [type(event) for event in events]
    assert kinds.index(Warned) < kinds.index(StepDone)


def test_a_learning_rate_far_too_high_is_told_with_a_number_to_try(tmp_path):
    events = train_words(tmp_path, *LONGER, "train.learning_rate=4.0")
    assert {event.kind for event in warned(events)} <= {*RATE, "loss-spike", "attention"}
    told = next(event for event in warned(events) if event.kind in RATE)
    assert "no better than guessing" in told.text or "has risen from" in told.text
    assert "Set train.learning_rate = 1 (its peak is 4)" in told.text


def test_a_loss_that_rises_after_it_fell_is_told(tmp_path, monkeypatch):
    """The weights drift away by noise that grows, as with steps too large."""
    generator = torch.Generator().manual_seed(3)

    def drift(model, step):
        for parameter in model.parameters():
            if step > 130:
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))

    changing(monkeypatch, drift)
    told = warned(train_words(tmp_path, *LONGER, "train.max_steps=360"), "loss-rises")
    assert "the training loss has risen from" in told[-1].text


def test_a_jump_of_the_loss_is_told_with_its_steps(tmp_path, monkeypatch):
    kept = {}

    def jump(model, step):
        for name, parameter in model.named_parameters():
            if step == 96:
                kept[name] = parameter.clone()
                parameter.mul_(7.0)
            if step == 98:
                parameter.copy_(kept[name])

    changing(monkeypatch, jump)
    told = warned(train_words(tmp_path, *LONGER), "loss-spike")
    assert [event.step for event in told] == [120]
    assert "jumped at 2 steps (97, 98)" in told[0].text


def gather_on_end(model, store):
    """Make every head of every layer attend to EOS alone: keys along what tells EOS in the memory from the rest."""
    batch = collate(store, np.arange(min(40, len(store))))
    memory_BSD = model.encode(batch.source_BS, None)
    memory_ND = memory_BSD[batch.source_mask_BS].double()
    is_end_N = (batch.source_BS == 3)[batch.source_mask_BS].double()
    direction_D = torch.linalg.lstsq(memory_ND, is_end_N[:, None], driver="gelsd").solution[:, 0].float()
    for layer in model.decoder.each_layer():
        attention = layer.cross_attention
        attention.query.weight.zero_()
        attention.query.bias.fill_(1.0)
        attention.key.weight.copy_(60.0 * direction_D.expand_as(attention.key.weight))


def test_attention_that_gathers_on_one_position_is_told(tmp_path, monkeypatch):
    changing(
        monkeypatch,
        lambda model, step: gather_on_end(model, read_prepared(tmp_path / "out/training/data").store("validation")),
    )
    told = warned(train_words(tmp_path, *QUICK, "model.attention_bias=true", "model.dropout=0.0"), "attention")
    assert len(told) == 1
    assert "gathers on the end of the sentence" in told[0].text
    assert 'model.norm_placement = "pre"' in told[0].text


def test_outputs_that_loop_are_told_with_an_example(tmp_path):
    """Training text teaches it."""
    events = train_words(tmp_path, *LONGER, "search.max_extra_tokens=20", train_target=lambda text: "LA " * 8 + "LO")
    told = warned(events, "repeats")
    assert [event.step for event in told] == [120]
    assert "13 of 13 outputs repeat" in told[0].text
    assert "LA LA LA LA" in told[0].text


def test_one_output_for_many_sources_is_told(tmp_path):
    told = warned(train_words(tmp_path, *LONGER, train_target=lambda text: "GEH DA HIN"), "same-output")
    assert [event.step for event in told] == [120]
    assert "one output answers 13 of 13 sources" in told[0].text


def test_text_learnt_by_heart_is_told(tmp_path, says, monkeypatch):
    """The training loss falls by itself; what validation loses meanwhile is given."""
    says(str.upper)
    nlls = iter([0.52, 0.5, 0.61, 0.63, 0.64])
    monkeypatch.setattr(
        validate_module, "validation_losses", lambda session, model: (TextLoss(1.0, next(nlls, 0.7), 0.9), None)
    )
    (told,) = warned(train_words(tmp_path, *LONGER, "train.max_steps=300"), "overfitting")
    assert told.step == 240
    assert "rises, from 0.50 nats a token at step 120 to 0.63, while the training loss falls" in told.text
    assert "Raise model.dropout (it is 0.1; try 0.2)" in told.text


# Provoked, by what the outputs are made to be

OUTPUTS = {
    "empty": (lambda text: "", "13 of 13 outputs are empty (100 %)"),
    "copies": (str, "13 of 13 outputs copy the source (100 %)"),
    "repeats": (lambda text: text.upper() + " AB" * 4, "13 of 13 outputs repeat the same words"),
    "same-output": (lambda text: "IMMER", "one output answers 13 of 13 sources"),
    "length": (lambda text: " ".join(text.upper().split()[:4]), "set search.length_penalty = 1.2 (it is 0.6; 0.6 more"),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_what_outputs_show_at_two_validations_is_told_once(tmp_path, says, kind):
    output, wanted = OUTPUTS[kind]
    says(output)
    events = train_words(tmp_path, *QUICK, validation_target=lambda text: text[::-1].upper())
    told = warned(events, kind)
    assert [event.step for event in told] == [20]
    assert wanted in told[0].text
    assert "\n" not in told[0].text


def test_outputs_too_long_are_told_with_the_penalty_to_set(tmp_path, says):
    says(lambda text: f"{text} {text[::-1]}".upper())
    (told,) = warned(train_words(tmp_path, *QUICK, "search.length_penalty=1.0"), "length")
    assert "set search.length_penalty = 0.4 (it is 1)" in told.text
    assert "outputs have 200 % of the length" in told.text


def test_a_beam_of_one_is_not_given_a_length_penalty(tmp_path, says):
    says(lambda text: " ".join(text.upper().split()[:4]))
    (told,) = warned(train_words(tmp_path, *QUICK, "search.beam_size=1"), "length")
    assert "search.length_penalty does nothing: set it to 4" in told.text


def test_outputs_cut_at_the_limit_are_told_with_the_limit(tmp_path, says):
    says(str.upper, is_cut=True)
    (told,) = warned(train_words(tmp_path, *QUICK), "cut")
    assert "search.max_extra_tokens = 3: raise it to 50" in told.text


def test_sources_that_the_vocabulary_cannot_write_are_told_at_once(tmp_path, says):
    says(str.upper, num_unknown=1)
    (told,) = warned(train_words(tmp_path, *QUICK), "unknown")
    assert told.step == 10
    assert "text.byte_fallback = true" in told.text


def spaced(text):
    return text.upper() + " ."


WRITINGS = {
    "spaces before full stops or commas: in 13 of 13 references and in 0 of 13 outputs": (
        lambda text: text.upper() + ".",
        spaced,
    ),
    "spaces before full stops or commas: in 0 of 13 references and in 13 of 13 outputs": (
        spaced,
        lambda text: text.upper() + ".",
    ),
    "capital letters, of the lines whose letters have case: in 13 of 13 references and in 0 of 13 outputs": (
        str,
        str.upper,
    ),
}


@pytest.mark.parametrize("wanted", WRITINGS)
def test_outputs_written_otherwise_than_references_are_told_with_a_pair(tmp_path, says, wanted):
    output, reference = WRITINGS[wanted]
    says(output, accuracy=0.9)
    told = warned(train_words(tmp_path, *QUICK, validation_target=reference), "scores")
    assert [event.step for event in told] == [10]
    assert wanted in told[0].text
    assert "Output '" in told[0].text


def test_case_that_is_not_scored_is_not_told(tmp_path, says):
    says(str, accuracy=0.9)
    assert not warned(train_words(tmp_path, *QUICK, "evaluate.lowercase=true"), "scores")


CAUSES = {
    "outputs and references are divided into words otherwise": (lambda text: text.upper().replace(" ", ""), str.upper),
    "the search loses what the model knows": (lambda text: text[::-1].upper().replace("A", "Z Z"), str.upper),
    "a reference has 1.0 words": (str.upper, lambda text: text.replace(" ", "").upper()),
}


@pytest.mark.parametrize("wanted", CAUSES)
def test_bleu_far_under_what_accuracy_lets_expect_is_told_with_its_cause(tmp_path, says, wanted):
    output, reference = CAUSES[wanted]
    says(output, accuracy=0.97)
    (told,) = warned(train_words(tmp_path, *QUICK, validation_target=reference), "scores")
    assert wanted in told.text
    assert "about 97 % of the validation tokens are predicted right" in told.text


# What is remembered


def test_a_stopped_run_warns_and_logs_as_one_never_stopped(tmp_path, says):
    says(lambda text: "AB " * 9)
    data, config = write_words(tmp_path / "data", shared=2), letters_config("model.vocab_size=47", *QUICK)
    whole = [(w.step, w.kind, w.text, w.value) for w in warned(run(config, data, tmp_path / "whole"))]
    parts = []
    for stop_at in (1, 10, 13, 20, 31, None):
        events = run(config, data, tmp_path / "parts", stop_at=stop_at)
        parts += [(w.step, w.kind, w.text, w.value) for w in warned(events)]
        assert stop_at is None or events[-1] == Interrupted(stop_at)
    assert parts == whole
    assert {kind for _, kind, _, _ in whole} >= {"overlap", "repeats"}

    def logged(out):
        lines = (tmp_path / out / "training/metrics.jsonl").read_text("utf-8").split("\n")[:-1]
        records = [json.loads(line) for line in lines]
        return [record for record in records if record["event"] == "warning"], [r.get("signs") for r in records]

    assert logged("whole") == logged("parts")
    assert len(logged("whole")[0]) == len(whole)


def test_a_line_is_told_again_when_it_has_become_half_as_bad_again(tmp_path, says):
    calls = []

    def worsening(text):
        calls.append(text)
        bad = len(calls) % 13 < (3 if len(calls) <= 13 * 4 else 9)
        return "AB " * 9 if bad else text.upper()

    says(worsening)
    events = train_words(tmp_path, *QUICK, "train.max_steps=80")
    told = warned(events, "repeats")
    assert [event.step for event in told] == [20, 50]
    assert [round(event.value * 13) for event in told] == [3, 9]


def test_the_history_read_from_a_log_is_the_one_that_was_lived(tmp_path):
    data, config = write_words(tmp_path / "data"), letters_config("model.vocab_size=47", *LONGER)
    run(config, data, tmp_path / "out", stop_at=97)
    history = History.read(tmp_path / "out/training/metrics.jsonl")
    assert [step.step for step in history.steps] == list(range(1, 98))
    assert [signs.step for signs in history.validations] == [60]
    assert history.peak_rate == 0.02


def test_damaged_lines_of_the_log_are_passed_over(tmp_path):
    path = tmp_path / "metrics.jsonl"
    lines = [b"[1]", b"\xff\xfe", b'{"event": "step"}', b'{"event": "validation", "signs": {"old": 1}}', b"{", b"7"]
    path.write_bytes(b"\n".join([*lines, b'{"event": "validation", "signs": null}', b'{"event": "warning"}']))
    assert History.read(path) == History()


def test_a_spike_is_eight_deviations_and_a_nat_above_the_median_of_fifty_steps():
    def after(losses):
        history = History()
        for number, loss in enumerate(losses, start=1):
            history.add(Step(number, loss, loss, gradient_norm=1.0, learning_rate=0.1))
        return [spike.step for spike in history.spikes]

    even = [2.0 + 0.1 * (-1) ** number for number in range(50)]  # median 2.0, deviation 0.1
    assert after([*even, 3.05]) == [51]
    assert after([*even, 2.95]) == []
    wide = [2.0 + 0.2 * (-1) ** number for number in range(50)]
    assert after([*wide, 3.55]) == []
    assert after([*wide, 3.65]) == [51]
    assert after([*even[:49], 9.0]) == []  # too few steps to know what is usual


def test_the_unigram_level_by_hand(tmp_path):
    ids = np.array([4, 4, 5], dtype=np.uint16)
    store = SimpleNamespace(target_ids=ids, target_offsets=np.array([0, 1, 3]))
    # two EOS, two of 4, one of 5, among five tokens
    assert unigram_nll(store) == pytest.approx(-(0.8 * np.log(0.4) + 0.2 * np.log(0.2)))
    assert unigram_nll(store, has_ends=False) == pytest.approx(-(2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3)))


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("text", "the training text holds 3 of 11 validation lines (about 27 %): validation scores"),
        ("labels", "holds 3 of 11 validation texts with their labels (about 27 %) and 4 of the texts (about 36 %): "),
        ("pairs", "holds 3 of 11 validation pairs (about 27 %) and 4 of their sources (about 36 %): "),
    ],
)
def test_an_overlap_is_told_in_the_words_of_what_is_trained_on(kind, told):
    config = letters_config() if kind == "pairs" else text_config()
    if kind == "labels":
        config = text_config("model.architecture=encoder_only", "train.objective=labels", "train.best_by=accuracy")
    text = overlap_trouble(Overlap(num_pairs=11, pairs=3, sources=4, targets=3, examples=()), config=config).text
    assert told in text
    assert ("headway audit" in text) == (kind == "pairs")


@pytest.mark.parametrize("kind", ["text", "labels"])
def test_models_that_write_no_outputs_are_judged_by_their_losses_alone(tmp_path, kind):
    """A rate far too high: told for a language model and a classifier, with signs in the log."""
    settings = ["train.learning_rate=3.0", "train.max_steps=120", "train.validate_every=60", "train.average=none"]
    if kind == "labels":
        data = write_labelled(tmp_path / "data")
        config = text_config(*LABELLED_KEYS, *settings)
    else:
        data = write_text(tmp_path / "data")
        config = text_config(*settings)
    run(config, data, tmp_path / "m")
    lines = (tmp_path / "m" / "training" / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    (warning,) = [record for record in records if record["event"] == "warning"]
    assert (warning["kind"], warning["step"]) == ("stuck", 60)
    assert f"nats a {'label' if kind == 'labels' else 'token'}, no better than guessing" in warning["text"]
    assert "source and target" not in warning["text"]
    signs = [record["signs"] for record in records if record["event"] == "validation"]
    assert [(each["step"], each["outputs"]) for each in signs] == [(60, 0), (120, 0)]


def test_the_page_has_a_row_for_each_kind():
    page = (Path(__file__).parents[3] / "docs" / "train.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \|", page, flags=re.MULTILINE)
    assert rows == list(NAMES)
    assert set(NAMES) > set(KINDS)
