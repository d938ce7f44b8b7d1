"""The Translator around a real model with random weights, from a folder."""

import pytest
import torch
from translate_copies import TEXTS

from headway.config.model_config import ModelConfig
from headway.config.schema import SearchConfig
from headway.errors import TranslationError
from headway.folder.contents import FolderConfig, write_folder
from headway.model.build import build_transformer, export_weights
from headway.search.settings import SearchSettings
from headway.text.bpe import learn_bpe
from headway.translate.backend import choose_device
from headway.translate.translator import Translator

WORDS = ["cat", "mat", "hill", "house", "three", "sat"]
# 1, 3, 9, 27 and 60 words, and a neighbour of 200.
SENTENCES = [" ".join(WORDS[(7 * place + count) % 6] for place in range(count)) for count in (1, 3, 9, 27, 60)]
NEIGHBOUR = " ".join(WORDS[place % 5] for place in range(200))


def folder(path, **model):
    tokenizer = learn_bpe(TEXTS, vocab_size=300)
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        d_model=32,
        d_ff=48,
        num_heads=2,
        num_encoder_layers=2,
        num_decoder_layers=2,
        **model,
    )
    write_folder(
        path,
        config=FolderConfig(
            source_language="en",
            target_language="de",
            model=config,
            max_source_tokens=300,
            search=SearchConfig(max_extra_tokens=7),
        ),
        weights=export_weights(build_transformer(config)),
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        card="",
    )
    return path


@pytest.fixture(scope="module", params=["torch", "native"])
def translator(request, tmp_path_factory):
    if request.param == "native":
        pytest.importorskip("headway_native", reason="headway-native is not built here")
    path = folder(tmp_path_factory.mktemp("model"))
    return Translator.from_folder(path, device="cpu", engine=request.param, precision="float32")


@pytest.mark.parametrize("beam_size", [1, 4])
def test_batch_mates_order_and_batch_size_never_change_a_translation(translator, beam_size):
    def run(texts, batch_tokens=100_000):
        results = translator.translate(texts, beam_size=beam_size, batch_tokens=batch_tokens)
        return {text: result for text, result in zip(texts, results, strict=True) if text != NEIGHBOUR}

    alone = {text: result for sentence in SENTENCES for text, result in run([sentence]).items()}
    for together in (run(SENTENCES), run(SENTENCES[::-1]), run([NEIGHBOUR, *SENTENCES]), run(SENTENCES, 500)):
        for text, result in together.items():
            assert result.tokens == alone[text].tokens
            assert result.score == pytest.approx(alone[text].score, abs=1e-4)


def test_the_printed_log_probability_is_that_of_forced_decoding(translator):
    # A random model writes bytes that decode to no text, so the ids are scored, not the text.
    sources = [(*translator.source_tokenizer.encode(text), 3) for text in SENTENCES[:4]]
    found = translator.backend.search(sources, prefixes=[()] * 4, limits=[13] * 4, settings=SearchSettings(beam_size=4))
    scores = translator.backend.score(sources, [best[0].token_ids for best in found])
    for best, token_log_probs in zip(found, scores, strict=True):
        assert best[0].log_prob == pytest.approx(sum(token_log_probs), abs=1e-4)


def test_every_target_token_is_aligned_to_a_source_token(translator):
    for translation in translator.translate(SENTENCES[:3], with_alignment=True):
        assert [target for _, target in translation.alignment] == list(range(len(translation.tokens)))
        assert all(0 <= source < len(translation.source_tokens) for source, _ in translation.alignment)


def test_alignment_is_the_same_alone_and_in_a_batch(translator):
    alone = [translator.translate([text], with_alignment=True)[0].alignment for text in SENTENCES[:3]]
    together = [result.alignment for result in translator.translate(SENTENCES[:3], with_alignment=True)]
    assert together == alone


def test_translating_leaves_the_weights_trainable(tmp_path):
    translator = Translator.from_folder(folder(tmp_path), device="cpu", engine="torch")
    model = translator.backend.predictor.model
    translator.translate(["the cat"])
    batch = torch.tensor([[5, 6, 3]])
    model(batch, batch != 0, batch).sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())
    model.zero_grad(set_to_none=True)


def test_a_model_with_learned_positions_is_never_asked_beyond_its_table(tmp_path):
    translator = Translator.from_folder(folder(tmp_path, positions="learned", max_positions=31), device="cpu")
    short, long = translator.translate([" ".join(WORDS[:5] * 4), NEIGHBOUR])
    assert len(short.tokens) + 1 <= 31
    assert long.num_pieces > 1


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(TranslationError, match="wanted one of auto, cpu, cuda, mps"):
        choose_device("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(TranslationError, match="device cuda was asked for"):
            choose_device("cuda")
        assert choose_device("auto") == torch.device("cpu")
