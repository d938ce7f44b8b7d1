"""An imported MarianMT folder encodes, translates and decodes as Hugging Face's own library does with the original."""

import json
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from marian_folders import LONGEST, build_folder, load, sentences, strange_texts, their_greedy

from headway.checkpoint.run_folder import RunFolder, write_average
from headway.config.load import load_text
from headway.errors import DataError
from headway.folder.contents import ModelFolder
from headway.inspection.explanation import explain
from headway.inspection.page import draw
from headway.inspection.subject import Subject
from headway.interchange.formats import import_model
from headway.interchange.huggingface_import import _read_arrays, _rows
from headway.interchange.marian_config import read_marian_config
from headway.interchange.marian_vocabulary import read_vocabulary
from headway.interchange.source_folder import SourceFolder
from headway.search.settings import SearchSettings
from headway.text.tokenizer import EOS_ID
from headway.train.events import Interrupted, StepDone
from headway.train.run import train
from headway.translate.translator import Translator

KINDS = {
    "two SentencePiece models": {"extra_words": (">>fra<<", ">>cmn_Hans<<", "本"), "dropped": 7, "padded": 3},
    "one SentencePiece model": {"same_spm": True, "seed": 3, "activation_function": "gelu", "scale_embedding": False},
    "two vocabularies": {"separate": True, "seed": 5, "activation_function": "relu", "decoder_layers": 2},
}


class Pair:
    """The original, the import and the rows that ids of ours stand for."""

    def __init__(self, original, out):
        self.tokenizer, self.model = load(original)
        self.imported = import_model(original, out)
        self.translator = Translator.from_folder(out, device="cpu", precision="float32")
        source = SourceFolder.open(original)
        marian = read_marian_config(source.read_json("config.json"))
        vocabulary = read_vocabulary(source, marian, _rows(_read_arrays(source, unsafe=False), marian))
        self.source_rows = vocabulary.source_rows.row_V.tolist()
        self.target_rows = vocabulary.target_rows.row_V.tolist()


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.replace(" ", "-"))
def pair(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    return Pair(build_folder(folder / "original", **KINDS[request.param]), folder / "imported")


def test_greedy_output_of_200_sentences_is_the_originals_token_for_token(pair):
    texts = sentences(200, 99)
    ids, translations = their_greedy(pair.model, pair.tokenizer, texts)
    assert len({tuple(row) for row in ids}) > 30
    sources = [(*row, EOS_ID) for row in pair.translator.source_tokenizer.encode_batch(texts)]
    found = pair.translator.backend.search(
        sources,
        prefixes=[()] * len(sources),
        limits=[LONGEST - 1] * len(sources),
        settings=SearchSettings(beam_size=1, length_penalty=0.0),
    )
    assert [[pair.target_rows[token] for token in hypotheses[0].token_ids] for hypotheses in found] == ids
    ended = [len(row) < LONGEST - 1 for row in ids]
    assert sum(ended) > 15
    for translation, text, is_whole in zip(
        pair.translator.translate(texts, beam_size=1), translations, ended, strict=True
    ):
        if is_whole:  # a longer one may go on here
            assert same_words(translation.text, text)


def same_words(ours, theirs):
    """Unknown words are left out there, and white space at the ends."""
    return ours.replace("\ufffd", "").split() == theirs.split()


def test_forced_scores_are_the_originals(pair):
    texts = sentences(20, 98)
    ids, _ = their_greedy(pair.model, pair.tokenizer, texts)
    ours_of = {row: place for place, row in reversed(list(enumerate(pair.target_rows)))}
    sources = [(*pair.translator.source_tokenizer.encode(text), EOS_ID) for text in texts]
    scores = pair.translator.backend.score(sources, [[ours_of[row] for row in output] for output in ids])
    for text, output, found in zip(texts, ids, scores, strict=True):
        start = [pair.model.config.decoder_start_token_id]
        with torch.inference_mode():
            logits = pair.model(
                **pair.tokenizer([text], return_tensors="pt"), decoder_input_ids=torch.tensor([start + output[:-1]])
            ).logits[0]
        wanted = logits.log_softmax(-1)[torch.arange(len(output)), torch.tensor(output)].tolist()
        assert found == pytest.approx(wanted, abs=1e-4)


def test_the_attention_of_every_head_is_the_originals(pair):
    subject = Subject.from_folder(pair.imported.folder.path, "cpu")
    pair.model.set_attn_implementation("eager")  # the one that gives its weights
    tag = "" if pair.translator.tags else None
    for text in [*sentences(5, 96), *strange_texts(7, 3)]:
        record = explain(subject, text, tag=tag)
        rows = [pair.source_rows[token] for token in record.axes["source"].token_ids]
        start = [pair.model.config.decoder_start_token_id]
        target = [pair.target_rows[token] for token in record.axes["target_in"].token_ids[1:]]
        with torch.inference_mode():
            theirs = pair.model(
                torch.tensor([rows]), decoder_input_ids=torch.tensor([start + target]), output_attentions=True
            )
        layers = {"encoder": theirs.encoder_attentions, "decoder": theirs.decoder_attentions}
        layers["cross"] = theirs.cross_attentions
        for head in record.heads:
            wanted = layers[head.kind][head.layer - 1][0, head.head - 1].numpy()
            np.testing.assert_allclose(head.tokens.weights_TS, wanted, atol=2e-4)
        for axis in record.axes.values():
            assert [place for word in axis.words for place in range(word.first, word.end)] == [*range(len(axis.tokens))]
        ElementTree.fromstring(draw(record))


def test_ids_of_a_text_are_the_originals_whatever_characters_it_has(pair):
    texts = ["", " ", "a", *sentences(300, 97), *strange_texts(3000, 5)]
    ours = pair.translator.source_tokenizer.encode_batch(texts)
    theirs = pair.tokenizer(texts)["input_ids"]
    differing = [
        text
        for text, one, other in zip(texts, ours, theirs, strict=True)
        if [pair.source_rows[token] for token in one] != other[:-1]
    ]
    assert differing == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = pair.tokenizer(text_target=texts)["input_ids"]
    ours = pair.translator.target_tokenizer.encode_batch(texts)
    assert [[pair.target_rows[token] for token in one] for one in ours] == [other[:-1] for other in theirs]


def test_decoded_text_is_the_originals(pair):
    generator = np.random.default_rng(3)
    size = pair.translator.target_tokenizer.vocab_size
    tags = set(pair.translator.target_tokenizer.tags.values())
    for _ in range(300):
        ids = [int(token) for token in generator.integers(4, size, 11)]
        rows = [pair.target_rows[token] for token in ids]
        if tags & set(ids) or any(row not in pair.tokenizer.decoder for row in rows):
            continue
        theirs = pair.tokenizer.decode(rows, skip_special_tokens=True)
        assert same_words(pair.translator.target_tokenizer.decode(ids), theirs)


def test_a_language_tag_is_asked_for_by_name(pair):
    if not pair.translator.source_tokenizer.tags:
        assert pair.imported.folder.config.tags == ()
        return
    assert set(pair.imported.folder.config.tags) == {"", "fra", "cmn_Hans"}
    texts = sentences(20, 96)
    tagged = [f">>cmn_Hans<< {text}" for text in texts]
    ids, translations = their_greedy(pair.model, pair.tokenizer, tagged)
    token = pair.translator.source_tokenizer.tag_id("cmn_Hans")
    theirs = pair.tokenizer(tagged)["input_ids"]
    ours = pair.translator.source_tokenizer.encode_batch(texts)
    assert [[pair.source_rows[place] for place in (token, *row)] for row in ours] == [row[:-1] for row in theirs]
    found = pair.translator.tagged("cmn_Hans").translate(texts, beam_size=1)
    whole = [len(row) < LONGEST - 1 for row in ids]
    assert sum(whole) > 5
    for one, text, is_whole in zip(found, translations, whole, strict=True):
        assert not is_whole or same_words(one.text, text)


def test_search_follows_the_folder_and_says_where_it_does_not(pair):
    config = pair.imported.folder.config
    assert config.search.beam_size == 4
    assert config.search.max_extra_tokens == LONGEST - 1
    assert config.max_source_tokens == 128
    assert (config.source_language, config.target_language) == ("en", "de")
    assert any("length_penalty" in notice for notice in pair.imported.notices)


def test_weights_in_a_pickle_are_read_on_request_and_are_the_same(pair, tmp_path):
    original = Path(pair.model.config._name_or_path)
    folder = tmp_path / "pickled"
    folder.mkdir()
    for path in original.iterdir():
        if path.suffix != ".safetensors":
            (folder / path.name).write_bytes(path.read_bytes())
    torch.save(pair.model.state_dict(), folder / "pytorch_model.bin")
    imported = import_model(folder, tmp_path / "out", unsafe=True).folder.weights()
    wanted = pair.imported.folder.weights()
    assert imported.keys() == wanted.keys()
    assert all(np.array_equal(imported[name], wanted[name]) for name in wanted)


RECIPE = """
[data]
train_source = "train.en"
train_target = "train.de"
validation_source = "validation.en"
validation_target = "validation.de"
[train]
max_steps = 6
batch_tokens = 300
warmup_steps = 3
learning_rate = 1e-4
precision = "float32"
threads = 1
validate_every = 3
checkpoint_every = 2
validation_sentences = 3
average = "none"
"""


@pytest.mark.parametrize("kind", ["two SentencePiece models", "two vocabularies"])
def test_an_import_is_trained_further_stopped_resumed_and_translates(kind, tmp_path):
    imported = import_model(build_folder(tmp_path / "original", **KINDS[kind]), tmp_path / "imported").folder
    for part, count, seed in (("train", 41, 17), ("validation", 5, 19)):
        for side, shift in (("en", 0), ("de", 100)):
            text = "".join(line + "\n" for line in sentences(count, seed + shift))
            (tmp_path / f"{part}.{side}").write_text(text, encoding="utf-8")
    config = load_text(RECIPE, overrides=(f"train.init={json.dumps(str(imported.path))}",))
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    list(train(config, tmp_path, out_dir=whole))
    heard = []
    for event in train(config, tmp_path, out_dir=parts, should_stop=lambda: any(type(e) is StepDone for e in heard)):
        heard.append(event)
    assert isinstance(heard[-1], Interrupted)
    list(train(config, tmp_path, out_dir=parts))
    assert (whole / "model.safetensors").read_bytes() == (parts / "model.safetensors").read_bytes()
    folder = ModelFolder.open(parts)
    assert folder.config.model == imported.config.model
    assert folder.source_tokenizer is not folder.target_tokenizer
    assert [folder.source_tokenizer.to_json(), folder.target_tokenizer.to_json()] == [
        imported.source_tokenizer.to_json(),
        imported.target_tokenizer.to_json(),
    ]
    assert any(not np.array_equal(array, imported.weights()[name]) for name, array in folder.weights().items())
    averaged = write_average(RunFolder.open(parts), tmp_path / "averaged", steps=[3, 6])
    for path in (parts, averaged.path):
        translations = Translator.from_folder(path, device="cpu").translate(sentences(20, 99))
        assert any(translation.text for translation in translations)  # random weights end some at once


def test_one_table_of_two_tokenizers_with_other_tokens_is_refused_before_training(tmp_path):
    imported = import_model(build_folder(tmp_path / "original"), tmp_path / "imported").folder
    values = json.loads(imported.target_tokenizer.to_json())
    values["model"]["vocab"][7][0] = "otherwise"
    (imported.path / "target_tokenizer.json").write_text(json.dumps(values), encoding="utf-8")
    for part in ("train", "validation"):
        for side in ("en", "de"):
            text = "".join(line + "\n" for line in sentences(7, ord(part[0]) + ord(side[0])))
            (tmp_path / f"{part}.{side}").write_text(text, encoding="utf-8")
    config = load_text(RECIPE, overrides=(f"train.init={json.dumps(str(imported.path))}",))
    with pytest.raises(DataError, match=r"have ([\d,]+) and \1 tokens; token 7 is .* and 'otherwise'\. Wanted"):
        list(train(config, tmp_path, out_dir=tmp_path / "out"))
