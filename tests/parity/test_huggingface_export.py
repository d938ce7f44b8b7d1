"""An exported folder does as the model does, by Hugging Face's own library; one that does not is not kept."""

import json
import re

import numpy as np
import pytest
import torch
from marian_folders import sentences, strange_texts, transformers

from headway.config.data_config import TextConfig
from headway.config.model_config import ModelConfig
from headway.errors import InterchangeError
from headway.folder.contents import FolderConfig, write_folder
from headway.folder.weights import read_weights
from headway.interchange import huggingface_export, transformers_reading
from headway.interchange.formats import export_model, import_model
from headway.interchange.marian import Rows, from_marian, halves, to_marian
from headway.interchange.marian_config import read_marian_config
from headway.interchange.norm_scale import norm_scale, scale_norms
from headway.interchange.sentences import find_sentences
from headway.model.build import build_transformer, export_weights
from headway.text.subword import LEARNERS

SHAPE = {"d_model": 22, "d_ff": 37, "num_heads": 2, "num_encoder_layers": 2, "num_decoder_layers": 1}
VARIANTS = {
    "paper": {},
    "everything": {
        "attention_bias": True,
        "output_bias": True,
        "activation": "silu",
        "embedding_scale": False,
        "norm_epsilon": 1e-5,
    },
    "gelu, softmax apart": {"embedding_sharing": "none", "activation": "gelu"},
}


def write_own(path, *, shared=True, model="bpe", **changes):
    """A model folder of ours with random weights, each of which counts."""
    texts = sentences(300, 7)
    tokenizer = LEARNERS[model](texts, vocab_size=301, tags=("fr",))
    target_tokenizer = tokenizer if shared else LEARNERS[model](texts, vocab_size=313)
    sizes = {"vocab_size": target_tokenizer.vocab_size}
    if not shared:
        sizes |= {"source_vocab_size": tokenizer.vocab_size, "embedding_sharing": "target"}
    config = ModelConfig(**{**SHAPE, **sizes, **changes})
    built = build_transformer(config)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.1)
    return write_folder(
        path,
        config=FolderConfig(model=config, text=TextConfig(shared_vocabulary=shared), max_source_tokens=97),
        weights=export_weights(built),
        source_tokenizer=tokenizer,
        target_tokenizer=target_tokenizer,
        card="",
    )


def export(folder, out, count=20):
    return export_model(folder, out, target_format="huggingface", sentences=sentences(count, 99))


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_exported_folder_is_verified_and_gives_the_same_weights_back(variant, tmp_path):
    folder = write_own(tmp_path / "own", **VARIANTS[variant])
    exported = export(folder, tmp_path / "out")
    assert exported.verified.reading == "transformers"
    assert exported.verified.sentences == 20
    assert exported.verified.compares_text
    marian = read_marian_config(json.loads((tmp_path / "out" / "config.json").read_text()))
    rows = Rows(np.arange(folder.config.model.vocab_size))
    weights, model = from_marian(
        read_weights(tmp_path / "out" / "model.safetensors"), marian.model, source_rows=rows, target_rows=rows
    )
    weights = scale_norms(weights, model, 1 / norm_scale(folder.config.model.norm_epsilon, there=1e-5))
    wanted = folder.weights()
    assert weights.keys() == wanted.keys()
    assert all(np.array_equal(weights[name], wanted[name]) for name in wanted)
    same = ("d_model", "activation", "embedding_scale", "embedding_sharing", "output_bias", "attention_bias", "d_ff")
    assert [getattr(model, key) for key in same] == [getattr(folder.config.model, key) for key in same]


def test_200_sentences_are_verified_and_two_vocabularies_stand_apart(tmp_path):
    folder = write_own(tmp_path / "own", shared=False)
    exported = export(folder, tmp_path / "out", count=200)
    assert exported.verified.sentences == 200
    assert exported.verified.largest < 5e-6  # 1.2e-5 where norms read what they read here
    library = transformers()
    for name, tokenizer in (("source", folder.source_tokenizer), ("target", folder.target_tokenizer)):
        loaded = library.AutoTokenizer.from_pretrained(tmp_path / "out" / f"{name}_tokenizer")
        texts = sentences(20, 4)
        assert loaded(texts)["input_ids"] == [[*ids, 3] for ids in tokenizer.encode_batch(texts)]
    assert any("two vocabularies" in notice for notice in exported.notices)


@pytest.mark.parametrize("model", ["bpe", "wordpiece", "unigram"])
def test_the_exported_tokenizer_encodes_and_decodes_every_text_as_ours(model, tmp_path):
    folder = write_own(tmp_path / "own", model=model)
    export(folder, tmp_path / "out", count=3)
    loaded = transformers().AutoTokenizer.from_pretrained(tmp_path / "out")
    texts = [text for text in [*sentences(50, 5), *strange_texts(300, 6), " a ", ""] if "⟨pad⟩" not in text]
    ours = folder.source_tokenizer.encode_batch(texts)
    assert loaded(texts)["input_ids"] == [[*ids, 3] for ids in ours]
    decoded = [loaded.decode(ids, skip_special_tokens=True) for ids in ours]
    assert decoded == [folder.source_tokenizer.decode(ids) for ids in ours]
    assert loaded("⟨tag:fr⟩the cat")["input_ids"] == [4, *folder.source_tokenizer.encode("the cat"), 3]


def swap_matrix(arrays):
    names = ("model.decoder.layers.0.encoder_attn.k_proj.weight", "model.decoder.layers.0.encoder_attn.q_proj.weight")
    arrays[names[0]], arrays[names[1]] = arrays[names[1]], arrays[names[0]]


def alter_bias(arrays):
    arrays["final_logits_bias"] = arrays["final_logits_bias"].copy()
    arrays["final_logits_bias"][0, 57] += 0.1


def forget_order(arrays):
    order = np.argsort(halves(SHAPE["d_model"]))
    arrays["model.shared.weight"] = np.ascontiguousarray(arrays["model.shared.weight"][:, order])


@pytest.mark.parametrize("fault", [swap_matrix, alter_bias, forget_order])
@pytest.mark.parametrize("installed", [True, False])
def test_a_fault_in_the_weights_is_found_and_nothing_is_kept(fault, installed, tmp_path, monkeypatch):
    folder = write_own(tmp_path / "own")

    def faulty(weights, model):
        arrays = to_marian(weights, model)
        fault(arrays)
        return arrays

    monkeypatch.setattr(huggingface_export, "to_marian", faulty)
    monkeypatch.setattr(transformers_reading, "is_installed", lambda: installed)
    with pytest.raises(
        InterchangeError, match=r"sentence \d+, position \d+.*Headway has .*written folder.*Nothing is kept"
    ) as told:
        export(folder, tmp_path / "out")
    found = re.findall(r"-?\d+\.\d{6}", str(told.value))
    assert abs(float(found[0]) - float(found[1])) > 0.99e-4  # more than 1e-4, told in six digits
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]


def test_an_epsilon_that_marian_has_not_is_found(tmp_path):
    folder = write_own(tmp_path / "own", norm_epsilon=1e-2)
    with pytest.raises(InterchangeError, match=r"sentence 1, position \d+: log-probability of token"):
        export(folder, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]


def test_another_segmentation_is_found(tmp_path, monkeypatch):
    folder = write_own(tmp_path / "own")
    files = huggingface_export.tokenizer_files

    def faulty(tokenizer, *, longest):
        written = dict(files(tokenizer, longest=longest))
        values = json.loads(written["tokenizer.json"])
        del values["model"]["merges"][0]
        return written | {"tokenizer.json": json.dumps(values)}

    monkeypatch.setattr(huggingface_export, "tokenizer_files", faulty)
    with pytest.raises(InterchangeError, match=r"sentence \d+, token \d+ of the source: Headway has \d+"):
        export(folder, tmp_path / "out")


def test_without_transformers_the_folder_is_read_back_by_headway_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(transformers_reading, "is_installed", lambda: False)
    exported = export(write_own(tmp_path / "own"), tmp_path / "out")
    assert "transformers is not installed" in exported.verified.reading
    assert not exported.verified.compares_text


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"norm_placement": "pre"}, "norm_placement"),
        ({"norm": "rms"}, "norm"),
        ({"positions": "rope", "d_k": 12}, "positions"),
        ({"activation": "swiglu"}, "activation"),
        ({"num_kv_heads": 1}, "num_kv_heads"),
        ({"attention_score": "unscaled"}, "attention_score"),
        ({"attention_window": 5}, "attention_window"),
        ({"residual_scaling": "deepnorm"}, "residual_scaling"),
        ({"d_v": 7}, "d_v"),
    ],
)
def test_what_marian_cannot_be_is_an_error_that_names_the_key(changes, key, tmp_path):
    folder = write_own(tmp_path / "own", **changes)
    with pytest.raises(InterchangeError, match=rf"model\.{key}: found .* MarianMT has .* alone"):
        export(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_place_that_is_taken_is_left_as_it_is(tmp_path):
    folder = write_own(tmp_path / "own")
    out = tmp_path / "out"
    out.mkdir()
    (out / "letter.txt").write_text("mine")
    with pytest.raises(InterchangeError, match="not an empty folder"):
        export(folder, out)
    assert (out / "letter.txt").read_text() == "mine"
    beside = tmp_path / "other.part"
    beside.mkdir()
    with pytest.raises(InterchangeError, match="in the way"):
        export(folder, tmp_path / "other")
    assert beside.is_dir()


def test_made_sentences_are_the_same_every_time_and_differ(tmp_path):
    folder = write_own(tmp_path / "own")
    made, origin = find_sentences(folder, 37)
    assert (made, origin) == find_sentences(folder, 37)
    assert origin == "made of the vocabulary"
    assert len(set(made)) > 33
    with pytest.raises(InterchangeError, match="no sentence to compare by"):
        export_model(folder, tmp_path / "out", target_format="huggingface", sentences=[" "])


BACK = {
    "shared": {},
    "softmax apart": VARIANTS["gelu, softmax apart"],
    "everything": VARIANTS["everything"],
    "wordpiece": {"model": "wordpiece"},
    "unigram": {"model": "unigram"},
    "two vocabularies": {"shared": False},
}


@pytest.mark.parametrize("kind", BACK)
@pytest.mark.parametrize("resaved", [False, True], ids=["as written", "saved again there"])
def test_an_exported_folder_is_imported_as_the_model_that_it_was(kind, resaved, tmp_path):
    folder = write_own(tmp_path / "own", **BACK[kind])
    path = export(folder, tmp_path / "out", count=3).path
    if resaved:
        transformers().MarianMTModel.from_pretrained(path).save_pretrained(path)
    back = import_model(path, tmp_path / "back").folder
    assert back.config == folder.config
    wanted, found = folder.weights(), back.weights()
    assert wanted.keys() == found.keys()
    assert all(np.array_equal(wanted[name], found[name]) for name in wanted)
    texts = [*sentences(50, 5), *strange_texts(100, 6), "⟨pad⟩⟨tag:fr⟩ a"]
    for side in ("source_tokenizer", "target_tokenizer"):
        before, after = getattr(folder, side), getattr(back, side)
        assert after.names == before.names
        assert after.tags == before.tags
        ids = before.encode_batch(texts)
        assert after.encode_batch(texts) == ids
        assert [after.decode(row) for row in ids] == [before.decode(row) for row in ids]
    assert export(back, tmp_path / "again", count=3).verified.sentences == 3


def change_config(path, change):
    values = json.loads((path / "config.json").read_text())
    change(values)
    (path / "config.json").write_text(json.dumps(values))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values.pop("headway"), "use the folder that it was exported from"),
        (lambda values: values.update(headway=7), "headway: .*export again"),
        (lambda values: values["headway"].update(max_source_tokens=0), r"headway\.max_source_tokens: .*export again"),
        (lambda values: values["headway"]["text"].update(shared_vocabulary=False), "source_tokenizer/tokenizer.json"),
        (lambda values: values.update(d_model=24), "wanted"),
    ],
)
def test_an_export_whose_files_do_not_fit_together_is_refused_in_one_line(change, message, tmp_path):
    path = export(write_own(tmp_path / "own"), tmp_path / "out", count=3).path
    change_config(path, change)
    with pytest.raises(InterchangeError, match=message) as told:
        import_model(path, tmp_path / "back")
    assert "\n" not in str(told.value)
    assert not (tmp_path / "back").exists()
