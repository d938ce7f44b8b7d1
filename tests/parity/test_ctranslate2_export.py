"""A folder exported for CTranslate2 does as the model does, by that library; one that does not is not kept."""

import json
import random
import re
import subprocess
import sys

import ctranslate2
import numpy as np
import pytest
import tokenizers
import torch
from click.testing import CliRunner
from marian_folders import sentences, strange_texts

from headway.cli.main import group
from headway.config.data_config import TextConfig
from headway.config.model_config import ModelConfig
from headway.config.schema import SearchConfig
from headway.engine.engine import is_installed
from headway.errors import InterchangeError, MissingExtraError
from headway.folder.contents import FolderConfig, write_folder
from headway.interchange import ctranslate2_export, engine_reading
from headway.interchange.formats import export_model, import_model
from headway.interchange.reading import pad, read_model
from headway.interchange.verification import verify
from headway.model.build import build_transformer, export_weights
from headway.search.run import search
from headway.search.settings import SearchSettings
from headway.text.subword import LEARNERS
from headway.text.tokenizer import Tokenizer

SHAPE = {"d_model": 22, "d_ff": 37, "num_heads": 2, "num_encoder_layers": 2, "num_decoder_layers": 1}
VARIANTS = {
    "paper": {},
    "learned": {"positions": "learned", "max_positions": 83},
    "no positions": {"positions": "none"},
    "rope": {"positions": "rope", "d_k": 12, "d_v": 12},
    "alibi, three heads": {"positions": "alibi", "num_heads": 3, "d_k": 7, "d_v": 7},
    "t5": {"positions": "t5"},
    "pre-norm, depths apart": {"norm_placement": "pre", "num_encoder_layers": 1, "num_decoder_layers": 3},
    "rms": {"norm": "rms", "norm_epsilon": 1e-2},
    "gelu": {"activation": "gelu"},
    "silu": {"activation": "silu"},
    "swiglu": {"activation": "swiglu"},
    "grouped heads": {"num_heads": 6, "num_kv_heads": 2, "d_k": 5, "d_v": 5},
    "one head of keys": {"num_heads": 3, "num_kv_heads": 1, "d_k": 4, "d_v": 4, "positions": "rope"},
    "small keys": {"d_k": 4, "d_v": 7, "positions": "rope"},
    "small values": {"d_k": 8, "d_v": 3},
    "deepnorm": {"residual_scaling": "deepnorm", "num_decoder_layers": 3, "norm_epsilon": 1e-2},
    "deepnorm, rms, learned": {"residual_scaling": "deepnorm", "norm": "rms", "positions": "learned"},
    "biases": {"attention_bias": True, "output_bias": True},
    "unscaled": {"embedding_scale": False},
    "softmax apart": {"embedding_sharing": "none"},
}


def words_of(count, seed):
    """Two words each, but the third text has more: distances beyond T5's 16 single buckets."""
    texts = sentences(count, seed)
    return [" ".join(text.split()[: 11 if place == 2 else 2]) for place, text in enumerate(texts)]


def write_own(path, *, shared=True, model="bpe", tokenizer=None, search=None, sharper=2.0, ending=1.0, **changes):
    """A model folder of ours with random weights, each of which counts."""
    texts = sentences(300, 7)
    tokenizer = tokenizer or LEARNERS[model](texts, vocab_size=301, tags=("fr",))
    target_tokenizer = tokenizer if shared else LEARNERS[model](texts, vocab_size=313)
    sizes = {"vocab_size": target_tokenizer.vocab_size}
    if not shared:
        sizes |= {"source_vocab_size": tokenizer.vocab_size, "embedding_sharing": "target"}
    config = ModelConfig(**{**SHAPE, **sizes, **changes})
    return write_folder(
        path,
        config=FolderConfig(
            model=config,
            text=TextConfig(shared_vocabulary=shared),
            search=search or SearchConfig(),
            max_source_tokens=97,
        ),
        weights=scrambled(config, sharper, ending),
        source_tokenizer=tokenizer,
        target_tokenizer=target_tokenizer,
        card="",
    )


def scrambled(config, sharper, ending):
    """Weights with which outputs follow the source; and end early, where EOS has a longer row than other tokens.

    Sharper ones round worse, most of all in gated networks: at twice the weights one mix of parts in 195 had scores
    that float64 puts 1.0e-4 from ours and 0.6e-4 from the library's.
    """
    built = build_transformer(config)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in built.named_parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
            if name.startswith("decoder") and not name.endswith(("norm.weight", "norm.bias")):
                parameter.mul_(sharper)
        built.output.weight[3] *= ending
    return export_weights(built)


def export(folder, out, count=7):
    return export_model(folder, out, target_format="ctranslate2", sentences=words_of(count, 99))


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_model_of_any_parts_is_exported_and_verified(variant, tmp_path):
    exported = export(write_own(tmp_path / "own", **VARIANTS[variant]), tmp_path / "out")
    assert exported.verified.reading == "ctranslate2"
    assert exported.verified.sentences == 7
    assert exported.verified.compares_text
    assert exported.verified.ties == 0
    assert exported.verified.largest < 1e-4


def random_parts(seed):
    """One value of every part, and sizes that all differ."""
    chance = random.Random(seed)
    kv_heads, share = chance.choice([(1, 1), (1, 3), (2, 1), (2, 2), (3, 2)])
    placement = chance.choice(["post", "pre"])
    return {
        "d_model": chance.choice([13, 14]),
        "num_heads": kv_heads * share,
        "num_kv_heads": kv_heads,
        "d_k": chance.choice([2, 6, 10]),
        "d_v": chance.choice([3, 7]),
        "num_encoder_layers": chance.choice([1, 2]),
        "num_decoder_layers": chance.choice([1, 3]),
        "attention_bias": chance.random() < 0.5,
        "positions": chance.choice(["sinusoidal", "learned", "none", "rope", "alibi", "t5"]),
        "max_positions": 101,
        "embedding_sharing": chance.choice(["all", "target", "none"]),
        "norm_placement": placement,
        "norm": chance.choice(["layer", "rms"]),
        "activation": chance.choice(["relu", "gelu", "silu", "swiglu"]),
        "residual_scaling": chance.choice(["none", "deepnorm"]) if placement == "post" else "none",
        "embedding_scale": chance.random() < 0.5,
        "output_bias": chance.random() < 0.5,
    }


@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 200), marks=pytest.mark.slow)], ids=["5", "195"])
def test_parts_mix_in_any_way(seeds, tmp_path):
    tokenizer = LEARNERS["bpe"](sentences(300, 7), vocab_size=301)
    for seed in seeds:
        folder = write_own(tmp_path / f"own{seed}", tokenizer=tokenizer, sharper=1.0, **random_parts(seed))
        assert export(folder, tmp_path / f"out{seed}", count=3).verified.largest < 1e-4


def library(path):
    """The library's Translator, and both vocabularies as the folder has them."""
    shared = path / "shared_vocabulary.json"
    names = [shared, shared] if shared.exists() else [path / f"{side}_vocabulary.json" for side in ("source", "target")]
    source, target = (json.loads(name.read_text()) for name in names)
    return ctranslate2.Translator(str(path), device="cpu", compute_type="float32"), source, target


def test_200_sentences_have_our_tokens_by_greedy_search_asked_without_our_reading(tmp_path):
    folder = write_own(tmp_path / "own", shared=False)
    exported = export(folder, tmp_path / "out", count=200)
    assert exported.verified.sentences == 200
    translator, source, target = library(exported.path)
    ids = folder.source_tokenizer.encode_batch(words_of(200, 99))
    outputs = translator.translate_batch(
        [[source[token] for token in row] for row in ids],
        beam_size=1,
        max_input_length=0,
        min_decoding_length=0,
        max_decoding_length=37,
        suppress_sequences=[["⟨pad⟩"], ["⟨bos⟩"]],
        return_end_token=True,
    )
    ours = read_model(folder.config.model, folder.weights()).greedy([(*row, 3) for row in ids], 38)
    theirs = [[target.index(token) for token in output.hypotheses[0]] for output in outputs]
    assert [list(row[:37]) for row in ours] == theirs
    assert len({tuple(row) for row in ours}) > 20


def test_a_beam_without_length_penalty_gives_our_outputs(tmp_path):
    folder = write_own(tmp_path / "own", norm="rms", ending=3.0)
    translator, source, target = library(export(folder, tmp_path / "out", count=3).path)
    ids = folder.source_tokenizer.encode_batch(words_of(31, 5))
    outputs = translator.translate_batch(
        [[source[token] for token in row] for row in ids],
        beam_size=4,
        length_penalty=0,
        min_decoding_length=0,
        max_decoding_length=37,
        suppress_sequences=[["⟨pad⟩"], ["⟨bos⟩"]],
    )
    source_BS = pad([(*row, 3) for row in ids])
    found = search(
        read_model(folder.config.model, folder.weights()).predictor,
        source_BS,
        source_BS != 0,
        settings=SearchSettings(beam_size=4, length_penalty=0.0),
        max_output_length_B=[38] * len(ids),
    )
    ended = [place for place, hypotheses in enumerate(found) if not hypotheses[0].is_cut]
    assert len(ended) > 23
    assert [[target.index(token) for token in outputs[place].hypotheses[0]] for place in ended] == [
        list(found[place][0].token_ids[:-1]) for place in ended
    ]
    assert len({found[place][0].token_ids for place in ended}) > 7


def swap_matrices(spec):
    linear = spec.decoder.layer[0].attention.linear
    linear[0].weight, linear[2].weight = linear[2].weight, linear[0].weight


def alter_one_number(spec):
    spec.encoder.layer[1].ffn.linear_0.weight[31, 7] += 1.0


def alter_bias(spec):
    spec.decoder.projection.bias = np.zeros(301, np.float32)
    spec.decoder.projection.bias[57] = 9.0


def shift_positions(spec):
    encodings = spec.decoder.position_encodings.encodings
    spec.decoder.position_encodings.encodings = np.roll(encodings, 1, axis=0)


def forget_scale(spec):
    spec.decoder.scale_embeddings = 1.0


def forget_epsilon(spec):
    spec.config.layer_norm_epsilon = 1e-2


@pytest.mark.parametrize(
    "fault", [swap_matrices, alter_one_number, alter_bias, shift_positions, forget_scale, forget_epsilon]
)
def test_a_fault_in_the_weights_is_found_and_nothing_is_kept(fault, tmp_path, monkeypatch):
    folder = write_own(tmp_path / "own")
    build = ctranslate2_export.build_spec

    def faulty(*given, **named):
        spec = build(*given, **named)
        fault(spec)
        return spec

    monkeypatch.setattr(ctranslate2_export, "build_spec", faulty)
    with pytest.raises(
        InterchangeError,
        match=r"sentence \d+, position \d+.*Headway has .*written folder.*ctranslate2.*Nothing is kept",
    ) as told:
        export(folder, tmp_path / "out")
    found = re.findall(r"-?\d+\.\d{6}", str(told.value))
    assert abs(float(found[0]) - float(found[1])) > 1e-4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]


def edited(name, change):
    """A fault in a file of the written folder, put in before it is read back."""

    def put(path):
        values = json.loads((path / name).read_text())
        change(values)
        (path / name).write_text(json.dumps(values))

    return put


def swap_tokens(values):
    values[57], values[58] = values[58], values[57]


def forget_merges(values):
    values["model"]["merges"] = []


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (edited("config.json", lambda values: values.update(add_source_eos=False)), r"sentence 1, position 1"),
        (edited("config.json", lambda values: values.update(decoder_start_token="⟨unk⟩")), r"sentence 1, position 1"),
        (edited("tokenizer.json", forget_merges), r"token \d+ of the source"),
        (edited("shared_vocabulary.json", lambda values: values.pop()), "token 300 of the vocabulary"),
        (edited("shared_vocabulary.json", swap_tokens), "token 57 of the vocabulary: Headway has"),
        (lambda path: (path / "model.bin").write_bytes(b"\x06\0\0\0"), "cannot be read back"),
    ],
    ids=[
        "no end of the source",
        "another start",
        "another segmentation",
        "a token lost",
        "two tokens swapped",
        "weights cut off",
    ],
)
def test_a_fault_in_a_file_is_found_and_nothing_is_kept(fault, told, tmp_path, monkeypatch):
    folder = write_own(tmp_path / "own")

    class Faulty(ctranslate2_export.CTranslate2Reading):
        def __init__(self, path):
            fault(path)
            super().__init__(path)

    monkeypatch.setattr(ctranslate2_export, "CTranslate2Reading", Faulty)
    with pytest.raises(InterchangeError, match=told):
        export(folder, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]


def test_what_cannot_be_said_or_written_is_refused_before_anything_is_written(tmp_path):
    window = write_own(tmp_path / "window", attention_window=5)
    with pytest.raises(InterchangeError, match=r"model\.attention_window: found 5; the format has no place"):
        export(window, tmp_path / "out")
    additive = write_own(tmp_path / "additive", attention_score="additive")
    with pytest.raises(InterchangeError, match=r"model\.attention_score: found additive; the format has scaled alone"):
        export(additive, tmp_path / "out")
    folder = write_own(tmp_path / "own")
    with pytest.raises(InterchangeError, match="no sentence to compare by"):
        export_model(folder, tmp_path / "out", target_format="ctranslate2", sentences=[" "])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(InterchangeError, match="not an empty folder"):
        export(folder, tmp_path / "full")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["additive", "full", "own", "window"]


def test_a_tokenizer_of_another_toolkit_is_refused(tmp_path):
    folder = write_own(tmp_path / "own")
    folder.source_tokenizer.imported = True
    with pytest.raises(InterchangeError, match="imported from SentencePiece"):
        export(folder, tmp_path / "out")


def test_a_written_folder_is_no_model_that_headway_reads(tmp_path):
    path = export(write_own(tmp_path / "own"), tmp_path / "out", count=3).path
    with pytest.raises(InterchangeError, match="found the format ctranslate2; wanted one of huggingface"):
        import_model(path, tmp_path / "back")


@pytest.mark.parametrize("model", ["bpe", "wordpiece", "unigram"])
@pytest.mark.parametrize("byte_fallback", [True, False])
def test_any_text_has_our_ids_and_any_output_our_text_by_the_files_of_the_folder(model, byte_fallback, tmp_path):
    texts = [*sentences(200, 7), *strange_texts(100, 8), 'a"b\\c', "a\x00b\x01c", "\r\v\f\x1c\x85\u2028\u2029 a"]
    tokenizer = LEARNERS[model](texts, vocab_size=600, byte_fallback=byte_fallback)
    folder = write_own(tmp_path / "own", tokenizer=tokenizer)
    given = [text for text in [*strange_texts(200, 9), *texts, " a ", "漢字⟨eos⟩⟨unk⟩"] if text.strip()]
    path = export_model(
        folder, tmp_path / "out", target_format="ctranslate2", sentences=[text[:20] for text in given[:40]]
    ).path
    translator, source, target = library(path)
    assert source == target == list(tokenizer.names)
    read = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
    ours = tokenizer.encode_batch(given)
    theirs = [[read.id_to_token(token) for token in encoding.ids] for encoding in read.encode_batch(given)]
    assert [[source.index(token) for token in row] for row in theirs] == ours
    known = [row for row in ours if 1 not in row]
    assert [
        read.decode([target.index(token) for token in row]) for row in [[source[i] for i in row] for row in known]
    ] == [tokenizer.decode(row) for row in known]
    # every token of the vocabulary is one that the library finds again: a score of its own
    scores = translator.score_batch([["⟨unk⟩"]] * len(target), [[token] for token in target])
    mine = read_model(folder.config.model, folder.weights()).score(
        [(1, 3)] * len(target), [(token, 3) for token in range(len(target))]
    )
    assert np.allclose([score.log_probs for score in scores], mine, rtol=0, atol=1e-4)


@pytest.mark.parametrize("shared", [True, False])
def test_the_lines_of_the_card_translate_as_headway_does(shared, tmp_path):
    folder = write_own(tmp_path / "own", shared=shared, search=SearchConfig(beam_size=1))
    card = (export(folder, tmp_path / 'my "out"', count=3).path / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", card, flags=re.S)[1].replace(
        'compute_type="int8"', 'compute_type="float32"'
    )
    assert len(code.splitlines()) <= 12
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    source = torch.tensor([[*folder.source_tokenizer.encode("One sentence at a time."), 3]])
    found = search(
        read_model(folder.config.model, folder.weights()).predictor,
        source,
        source != 0,
        settings=SearchSettings(beam_size=1, reserved=tuple(folder.target_tokenizer.tags.values())),
        max_output_length_B=[source.shape[1] + 50],
    )
    assert done.stdout.removesuffix("\n") == folder.target_tokenizer.decode(found[0][0].token_ids)
    assert ("⟨tag:fr⟩" in card) is bool(folder.source_tokenizer.tags)


def test_sources_longer_than_a_learned_table_are_left_out_and_told(tmp_path):
    folder = write_own(tmp_path / "own", positions="learned", max_positions=13)
    exported = export(folder, tmp_path / "out", count=40)
    assert 0 < exported.verified.sentences < 40
    left = 40 - exported.verified.sentences
    assert any(notice.startswith(f"{left} sentences are blank or longer") for notice in exported.notices)
    assert any("at most 13 tokens there" in notice for notice in exported.notices)


def test_without_the_library_nothing_is_written_and_the_command_says_what_to_install(tmp_path, monkeypatch):
    write_own(tmp_path / "own")
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    command = ["export", "-m", str(tmp_path / "own"), "--to", "ctranslate2", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(group, command)
    assert isinstance(done.exception, MissingExtraError)
    assert "pip install 'headway[ctranslate2]'" in str(done.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from headway.cli.main import main
sys.argv = ["headway", *sys.argv[1:]]
main()
"""


@pytest.mark.skipif(not is_installed(), reason="headway-native is not built here")
def test_without_torch_the_folder_is_compared_with_the_engine(tmp_path):
    write_own(tmp_path / "own", positions="rope", d_k=12)
    command = ["export", "-m", str(tmp_path / "own"), "--to", "ctranslate2", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *command, "--verify", "31"],
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=120,
    )
    assert "greedy output and forced scores of 31 sentences (made of the vocabulary)" in done.stdout
    assert (tmp_path / "out" / "model.bin").exists()
    assert not list((tmp_path / "own").glob("packed*"))


@pytest.mark.skipif(not is_installed(), reason="headway-native is not built here")
def test_the_engine_and_torch_read_a_model_alike(tmp_path):
    folder = write_own(tmp_path / "own")
    ours = read_model(folder.config.model, folder.weights())
    texts = sentences(23, 5)
    sources = [(*ids, 3) for ids in folder.source_tokenizer.encode_batch(texts)]
    with engine_reading.read_by_engine(folder) as engine:
        verified = verify(ours, engine, sources=sources, texts=texts)
    assert verified.sentences == 23
    assert not verified.compares_text


def test_with_neither_torch_nor_the_engine_both_are_named(tmp_path, monkeypatch):
    folder = write_own(tmp_path / "own")
    monkeypatch.setattr(ctranslate2_export, "find_spec", lambda _: None)
    monkeypatch.setattr(ctranslate2_export, "is_installed", lambda: False)
    with pytest.raises(MissingExtraError, match=r"headway-native, or pip install 'headway\[train\]'"):
        export(folder, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]


def test_the_tokenizer_of_the_folder_is_ours_again(tmp_path):
    folder = write_own(tmp_path / "own")
    path = export(folder, tmp_path / "out", count=3).path
    assert Tokenizer.from_json((path / "tokenizer.json").read_text()).names == folder.source_tokenizer.names
