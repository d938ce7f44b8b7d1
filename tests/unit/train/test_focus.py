"""Where the decoder looks: by hand, sentence by sentence, without padding."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch

from headway.config.model_config import ModelConfig
from headway.data.loader import collate
from headway.data.store import Store, StoreWriter
from headway.model.build import build_transformer
from headway.model.predictor import recorded
from headway.train import focus as focus_module
from headway.train.focus import measure_focus

SIZES = {"num_encoder_layers": 1, "num_decoder_layers": 2, "num_heads": 3, "d_model": 15, "d_ff": 13}


def store_of(folder, lengths):
    random = np.random.Generator(np.random.PCG64(3))
    with StoreWriter(folder, source_vocab_size=37, target_vocab_size=37) as writer:
        for source, target in lengths:
            writer.append(random.integers(4, 37, source).tolist(), random.integers(4, 37, target).tolist())
    return Store.open(folder)


@pytest.fixture
def model():
    return build_transformer(ModelConfig(vocab_size=37, **SIZES)).eval()


@torch.inference_mode()
def test_the_focus_is_that_of_the_head_that_gathers_least_over_whole_sentences(tmp_path, model):
    store = store_of(tmp_path / "text", [(5, 7), (3, 11), (17, 5), (7, 4), (11, 13)])
    by_sentence = []
    for row in (0, 2, 4):  # the others are too short on a side
        batch = collate(store, np.array([row]))
        layers = []
        for layer in model.decoder.each_layer():
            with recorded(layer.cross_attention) as weights:
                model.hidden(batch.source_BS, batch.source_mask_BS, batch.target_in_BT)
            layers.append(weights[0][0].mean(dim=1).amax(dim=-1))  # of each head
        by_sentence.append(torch.stack(layers))
    wanted = torch.stack(by_sentence).mean(dim=0).min().item()
    focus = measure_focus(model, store)
    assert focus is not None
    assert focus.share == pytest.approx(wanted, rel=1e-5)
    assert 0.0 < focus.share < 1.0
    assert all(layer.cross_attention.recorder is None for layer in model.decoder.each_layer())


def test_texts_too_short_have_no_focus(tmp_path, model):
    assert measure_focus(model, store_of(tmp_path / "text", [(4, 9), (9, 4)])) is None


def test_texts_too_long_are_not_looked_at(tmp_path, model):
    """Of 2,048 tokens a side, one layer's weights alone would be gigabytes."""
    short = store_of(tmp_path / "short", [(7, 11)])
    assert measure_focus(model, store_of(tmp_path / "both", [(7, 11), (131, 7), (7, 131)])) == measure_focus(
        model, short
    )
    assert measure_focus(model, store_of(tmp_path / "long", [(131, 137)])) is None


def test_of_each_layer_means_alone_are_kept(tmp_path, model, monkeypatch):
    kept = []

    @contextmanager
    def spied(*arguments):
        with recorded(*arguments) as weights:
            yield weights
        kept.extend(tuple(each.shape) for each in weights)

    monkeypatch.setattr(focus_module, "recorded", spied)
    measure_focus(model, store_of(tmp_path / "text", [(5, 7), (17, 11)]))
    assert kept == [(2, 3, 18)] * 2  # sentences, heads, source positions with EOS


def test_looking_draws_no_random_number(tmp_path, model):
    before = torch.get_rng_state()
    measure_focus(model, store_of(tmp_path / "text", [(5, 7)]))
    assert torch.equal(torch.get_rng_state(), before)
