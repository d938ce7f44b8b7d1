"""Validation scores the plain text that evaluation and the command score; its loss is a mean over tokens."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu

from headway.cli.main import main
from headway.config.load import load_text
from headway.config.model_config import ModelConfig
from headway.data.batching import plan
from headway.data.store import Store, StoreWriter
from headway.model.build import build_transformer
from headway.text.bpe import learn_bpe
from headway.train import validate as validate_module
from headway.train.distributed import ALONE
from headway.train.objective import Likelihood
from headway.train.validate import TextLoss, spread, store_losses, validate
from headway.translate.evaluate import evaluate
from headway.translate.translation import PairScore, Translation

RECIPE = '[data]\nsource_language = "en"\ntarget_language = "de"\ntrain_source = "a"\ntrain_target = "b"\n'
SOURCES = ["one", "two", "three"]
REFERENCES = ["It's 5-6 degrees, isn't it?", "The old road led nowhere, he said.", "So be it."]
OUTPUTS = ["It's 5-6 degrees, is it?", "The old road led nowhere, she said.", "So be it!"]


class PlainTranslator:
    """Gives the outputs as text; its tokens are pieces of it, which nobody must score."""

    max_output_tokens = None
    tag = ""

    def __init__(self):
        self.target_tokenizer = self.source_tokenizer = learn_bpe(REFERENCES, vocab_size=290)

    def translate(self, texts, **_):
        found = dict(zip(SOURCES, OUTPUTS, strict=True))
        encode, tokens = self.target_tokenizer.encode, self.target_tokenizer.tokens
        return [Translation(found[text], tokens=tuple(tokens(encode(found[text])))) for text in texts]

    def score(self, sources, targets, **_):
        return [PairScore(-1.0, (-1.0,), ()) for _ in targets]


@pytest.fixture
def session(monkeypatch):
    """What ``validate`` asks of a session, around that translator."""
    monkeypatch.setattr(validate_module, "validation_losses", lambda session, model: (TextLoss(2.0, 1.0, 0.5), None))
    searched = []
    monkeypatch.setattr(
        validate_module,
        "session_translator",
        lambda session, model, *, search: searched.append(search.beam_size) or PlainTranslator(),
    )
    prepared = SimpleNamespace(
        texts=lambda part: (list(SOURCES), list(REFERENCES)), tags=lambda part: [""] * len(SOURCES)
    )
    progress = SimpleNamespace(step=7)
    return SimpleNamespace(
        config=load_text(RECIPE),
        prepared=prepared,
        progress=progress,
        group=ALONE,
        whole_model=lambda: None,
        searched=searched,
    )


def test_validations_may_search_more_narrowly_than_users(session):
    validate(session)
    session.config = load_text(RECIPE, overrides=["search.beam_size=7"])
    validate(session)
    session.config = load_text(RECIPE, overrides=["search.beam_size=7", "train.validation_beam_size=2"])
    validate(session)
    assert session.searched == [4, 7, 2]


def test_fewer_sentences_are_spread_over_the_text(session):
    """The beginning of a text may be one document."""
    assert spread(10, 4) == [0, 2, 5, 7]
    assert spread(3, 4) == [0, 1, 2]
    session.config = load_text(RECIPE, overrides=["train.validation_sentences=2"])
    assert [sample.source for sample in validate(session).samples] == ["one", "two"]
    session.config = load_text(RECIPE, overrides=["train.validation_sentences=1000"])
    assert validate(session).seen.sources == SOURCES


def test_validation_evaluation_and_command_give_sacrebleu_s_score_of_the_plain_text(session, tmp_path, capsys):
    """Trap 17."""
    wanted = {
        "bleu": sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES], tokenize="13a").score,
        "chrf": sacrebleu.corpus_chrf(OUTPUTS, [REFERENCES]).score,
    }
    scores = validate(session).scores
    evaluation = evaluate(PlainTranslator(), SOURCES, REFERENCES, target_language="de")
    for name, lines in (("hyp", OUTPUTS), ("ref", REFERENCES)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    files = ["--hypothesis", str(tmp_path / "hyp"), "--reference", str(tmp_path / "ref")]
    assert main(["evaluate", *files, "--target-language", "de", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    for metric, value in wanted.items():
        assert 0.0 < value < 100.0
        assert getattr(scores, metric) == value
        assert getattr(evaluation.scores, metric).value == value
        assert printed[metric]["value"] == value


def test_the_samples_shown_are_the_text_that_is_scored(session):
    samples = validate(session).samples
    assert [(sample.source, sample.reference, sample.translation) for sample in samples] == list(
        zip(SOURCES, REFERENCES, OUTPUTS, strict=True)
    )


def test_losses_and_translations_are_of_one_whole_model_made_once(session, monkeypatch):
    """To make it may copy all weights, or gather them from all processes."""
    made, used = [], []
    session.whole_model = lambda: made.append(object()) or made[-1]
    losses, translator = validate_module.validation_losses, validate_module.session_translator

    def noted(plain):
        return lambda session, model, **more: used.append(model) or plain(session, model, **more)

    monkeypatch.setattr(validate_module, "validation_losses", noted(losses))
    monkeypatch.setattr(validate_module, "session_translator", noted(translator))
    validate(session)
    assert len(made) == 1
    assert used == [made[0], made[0]]


def test_the_loss_of_a_text_does_not_depend_on_its_batches(tmp_path):
    """Trap 5: short and long targets, in one batch or in many, have one mean over all their tokens."""
    random = np.random.Generator(np.random.PCG64(3))
    with StoreWriter(tmp_path / "text", source_vocab_size=37, target_vocab_size=37) as writer:
        for length in (1, 9, 2, 17, 1, 5, 23, 1, 3):
            writer.append(random.integers(4, 37, 3).tolist(), random.integers(4, 37, length).tolist())
    store = Store.open(tmp_path / "text")
    sizes = {"num_encoder_layers": 1, "num_decoder_layers": 1, "num_heads": 1}
    model = build_transformer(ModelConfig(vocab_size=37, d_model=11, d_ff=13, **sizes))
    budgets = (24, 41, 5003)
    counts = [
        len(plan(store.source_lengths, store.target_lengths, batch_tokens=budget, seed=0, epoch=0))
        for budget in budgets
    ]
    assert counts[0] > counts[1] > counts[2] == 1
    losses = [
        store_losses(model, store, batch_tokens=budget, measure=Likelihood(0.1), precision="float32")
        for budget in budgets
    ]
    for loss in losses[:2]:
        assert loss == pytest.approx(losses[2], rel=1e-6)
