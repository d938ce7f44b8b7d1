"""bench/translate.py at the smallest sizes: what it counts, and that every engine is given the same to do."""

import json
import mmap
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from headway.config.model_config import ModelConfig
from headway.config.presets import BASE
from headway.engine.engine import is_installed
from headway.engine.pack import packed_arrays
from headway.model.build import build_transformer, export_weights

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"
MODULES = ("translate", "translators", "translate_limit", "translate_table", "translate_work")


UNEVEN = ModelConfig(  # d 6; queries 2 x 5, keys 1 x 5, values 1 x 7, mixed 2 x 7; ff 11
    vocab_size=13,
    d_model=6,
    d_ff=11,
    num_heads=2,
    num_kv_heads=1,
    d_k=5,
    d_v=7,
    num_encoder_layers=2,
    num_decoder_layers=3,
)


def test_multiply_adds_of_a_sentence_are_those_computed_by_hand(scripts):
    found = scripts["translate_limit"].multiply_adds(UNEVEN, source=17, steps=3, beam=4)
    self_attention = 6 * 10 + 6 * 5 + 6 * 7 + 14 * 6
    cross = 6 * 10 + 14 * 6
    feed_forward = 6 * 11 + 11 * 6
    encoder = 2 * (self_attention + feed_forward)
    memory = 3 * (6 * 5 + 6 * 7)
    step = 3 * (self_attention + cross + feed_forward) + 6 * 13
    assert found.products == 17 * (encoder + memory) + (1 + 4 + 4) * step
    # A query of 10 numbers with each key, and 14 mixed numbers from each value.
    encoding = 2 * 17 * 17 * (10 + 14)
    decoding = 3 * (10 + 14) * (1 * (1 + 17) + 4 * (2 + 17) + 4 * (3 + 17))
    assert found.attention == encoding + decoding
    assert found.operations == 2 * found.products


def test_one_step_of_base_is_41_million_multiply_adds_and_bytes(scripts):
    limit = scripts["translate_limit"]
    wanted = 6 * (6 * 512 * 512 + 2 * 512 * 2048) + 512 * 37_000
    assert wanted == 40_964_096
    one, two = (limit.multiply_adds(BASE, source=1, steps=steps, beam=1).products for steps in (1, 2))
    assert two - one == wanted
    padded = 37_008 - 37_000  # rows of the vocabulary, to whole blocks of 16
    scales = 4 * (6 * (3 * 512 + 3 * 512 + 2048 + 512) + 37_008)
    biases = 4 * 6 * (2048 + 512)
    norms = 4 * 6 * 3 * 2 * 512
    assert limit.weight_bytes(BASE, precision="int8").step == wanted + padded * 512 + scales + biases + norms


@pytest.mark.parametrize("precision", ["int8", "float32"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm_placement": "pre", "norm": "rms", "output_bias": True},
        {"activation": "swiglu", "attention_bias": True, "embedding_sharing": "none", "source_vocab_size": 19},
        {"activation": "gelu", "num_kv_heads": 2, "positions": "learned", "max_positions": 23},
    ],
)
def test_the_bytes_counted_are_those_of_the_packed_arrays(scripts, changes, precision):
    config = UNEVEN.model_copy(update=changes)
    arrays = dict(packed_arrays(config, export_weights(build_transformer(config, seed=3)), precision=precision))
    step = sum(
        array.nbytes
        for name, array in arrays.items()
        if name.startswith(("decoder.", "output.")) and "cross_attention.memory" not in name
    )
    once = sum(array.nbytes for name, array in arrays.items() if name.startswith("encoder.") or ".memory." in name)
    found = scripts["translate_limit"].weight_bytes(config, precision=precision)
    assert (found.once, found.step) == (once, step)
    assert found.sentence(7) == once + 7 * step


def test_the_shapes_that_are_timed_are_all_products_of_a_step(scripts):
    shapes = scripts["translate_limit"].shapes(BASE)
    assert shapes == {
        (1536, 512): 6,  # queries, keys and values
        (512, 512): 6 * 3 + 73,  # outputs of both attentions, cross queries; 37,000 tokens in chunks of 512
        (2048, 512): 6,
        (512, 2048): 6,
    }


def test_a_held_group_has_the_mean_length_of_its_references(scripts):
    sources = [[9] * 5, [9] * 2, [9] * 7, [9] * 3, [9] * 4]
    groups = scripts["translate_work"].held_groups(sources, [11, 3, 29, 6, 13], size=2)
    assert [[len(ids) for ids in group.sources] for group in groups] == [[2, 3], [4, 5], [7]]
    assert [group.limit for group in groups] == [4, 12, 29]  # of 3 and 6, 13 and 11, 29
    assert all(group.held for group in groups)


def test_free_groups_say_where_each_sentence_stood(scripts):
    sources = [[9] * 5, [9] * 2, [9] * 7]
    groups, order = scripts["translate_work"].free_groups(sources, size=2, extra=13)
    assert [ids for group in groups for ids in group.sources] == [sources[place] for place in order]
    assert [group.limit for group in groups] == [5 + 13, 7 + 13]
    assert not any(group.held for group in groups)


def test_what_is_taken_of_a_corpus_lies_evenly_over_it(scripts):
    work = scripts["translate_work"]
    groups = work.held_groups([[9] * length for length in range(1, 102)], range(1, 102), size=1)
    assert [group.limit for group in work.spread(groups, 5)] == [11, 31, 51, 71, 91]
    assert work.spread(groups, 1_000) == groups
    pairs = work.held_groups([[9] * length for length in range(1, 11)], range(1, 11), size=2)
    assert [len(group.sources[0]) for group in work.singles(pairs, 5)] == [1, 3, 5, 7, 9]


def test_drawn_sentences_are_as_long_as_newstest2014s(scripts):
    sources, references = scripts["translate_work"].drawn_ids(307, count=20_000)
    for lengths in ([len(ids) for ids in sources], references):
        assert np.mean(lengths) == pytest.approx(29.5, abs=0.7)  # 29.06 and 29.96 with a vocabulary of 37,000
        assert np.percentile(lengths, 95) == pytest.approx(58.5, abs=4)  # 57 and 60
    assert all(ids[-1] == 3 and min(ids[:-1], default=4) >= 4 for ids in sources)


MAPS = """\
00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/model file
Rss:                 100 kB
7f0000000000-7f0000100000 r--s 00000000 08:02 173522 /tmp/a model/weights.safetensors
Size:               1024 kB
Rss:                 512 kB
7f0000200000-7f0000300000 rw-p 00000000 00:00 0
Rss:                 900 kB
7f0000400000-7f0000500000 r--s 00000000 08:02 173523 /tmp/a model/other.safetensors
Rss:                   4 kB
7f0000600000-7f0000700000 r--s 00000000 08:02 173524 /tmp/a model2/weights.safetensors
Rss:                  64 kB
"""


def test_only_the_pages_of_the_models_own_file_are_mapped_bytes(scripts):
    mapped = scripts["translators"].mapped_bytes
    assert mapped(MAPS, "/tmp/a model/weights.safetensors") == 512 * 1024
    assert mapped(MAPS, "/tmp/a model") == 516 * 1024
    assert mapped(MAPS, "/tmp/none") == 0


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="this system does not say what is mapped")
def test_a_file_that_was_read_through_a_mapping_is_counted_once(scripts, tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(os.urandom(1_048_576))
    memory = scripts["translators"].memory
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(mapped[:: mmap.PAGESIZE]) > 0
        found = memory(str(path))
    assert found["mapped_bytes"] == 1_048_576
    assert found["peak_bytes"] > found["mapped_bytes"]
    assert memory(str(path))["mapped_bytes"] == 0


class Fixed:
    """Gives what it was told to."""

    def __init__(self, *lengths):
        self.lengths = lengths

    def prepare(self, groups, ask):
        return None

    def run(self, prepared, ask):
        return None

    def outputs(self, raw):
        return [[7] * length for length in self.lengths]


@pytest.mark.parametrize("length", [4, 5])  # of 5 steps: 4 tokens and EOS, or 5 tokens
def test_held_outputs_count_as_many_steps_as_they_were_held_to(scripts, length):
    groups = [{"sources": [[9, 3], [8, 3]], "limit": 5, "held": True}]
    assert scripts["translators"].answer(Fixed(length, length), groups, {})["steps"] == [5, 5]


@pytest.mark.parametrize("length", [3, 6])
def test_an_output_that_is_not_held_is_refused(scripts, length):
    groups = [{"sources": [[9, 3], [8, 3]], "limit": 5, "held": True}]
    with pytest.raises(SystemExit, match="held to one length"):
        scripts["translators"].answer(Fixed(4, length), groups, {})


def test_outputs_with_real_ends_count_their_tokens_and_eos(scripts):
    groups = [{"sources": [[9, 3], [8, 3]], "limit": 50, "held": False}]
    result = scripts["translators"].answer(Fixed(2, 6), groups, {"outputs": True})
    assert result["steps"] == [3, 7]
    assert result["outputs"] == [[7] * 2, [7] * 6]


def test_what_stands_behind_eos_is_no_output(scripts):
    until_eos = scripts["translators"].until_eos
    assert until_eos([5, 6, 3, 0, 0]) == [5, 6]
    assert until_eos([5, 6]) == [5, 6]


@pytest.fixture(scope="module")
def contest(scripts, tmp_path_factory):
    """The smallest model in all formats that there are here."""
    if not is_installed():
        pytest.skip("headway-native, the compiled engine, is not installed")
    return scripts["translate_work"].random_contest(
        "smallest", folder=tmp_path_factory.mktemp("contest"), data=None, size=3, groups=2, sentences=2
    )


ENGINES = {"headway": "int8", "ctranslate2": "int8", "huggingface": "float32"}


def translator_of(scripts, contest, engine):
    pytest.importorskip(
        {"headway": "headway_native", "ctranslate2": "ctranslate2", "huggingface": "transformers"}[engine]
    )
    precision = ENGINES[engine]
    assert engine not in contest.missing
    path = contest.paths[f"{engine}-{precision}"]
    spec = {"precision": precision, "model": str(path), "threads": 1, "replicas": 1}
    return scripts["translators"].TRANSLATORS[engine](spec)


@pytest.mark.filterwarnings("ignore")  # what third parties say
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("beam", [1, 3])
def test_every_engine_takes_as_many_steps_as_a_group_is_held_to(scripts, contest, engine, beam):
    translator = translator_of(scripts, contest, engine)
    groups = [
        {"sources": [[5, 7, 3], [11, 3]], "limit": 4, "held": True},
        {"sources": [[5, 17, 23, 29, 3]], "limit": 7, "held": True},
    ]
    for one_by_one in (False, True):
        ask = {"beam": beam, "length_penalty": 0.6, "batch": 2, "one_by_one": one_by_one}
        assert scripts["translators"].answer(translator, groups, ask)["steps"] == [4, 4, 7]


@pytest.mark.filterwarnings("ignore")  # what third parties say
def test_the_engines_are_given_the_same_weights(scripts, contest):
    pytest.importorskip("transformers")
    groups = [{"sources": [[5, 7, 101, 3], [11, 3], [5, 17, 23, 29, 3]], "limit": 6, "held": False}]
    ask = {"beam": 1, "length_penalty": 0.6, "batch": 2, "one_by_one": False, "outputs": True}
    spec = {"precision": "float32", "threads": 1, "replicas": 1}
    found = {}
    for engine, key in (("headway", "headway-float32"), ("torch", "torch"), ("huggingface", "huggingface-float32")):
        translator = scripts["translators"].TRANSLATORS[engine]({**spec, "model": str(contest.paths[key])})
        found[engine] = scripts["translators"].answer(translator, groups, ask)["outputs"]
    assert found["headway"] == found["torch"] == found["huggingface"]


def entry_of(scripts, engine, precision="int8", batch=1):
    translate = scripts["translate"]
    return translate.Entry(translate.Case(engine, precision, 2), batch, 3)


def answers(*rates):
    return [{"steps": [1, 1, 1, 1, 1], "seconds": 5 / rate} for rate in rates]


def test_ratios_pair_rounds_and_the_rival_has_its_best_setting(scripts):
    small, large = (entry_of(scripts, "ctranslate2", batch=batch) for batch in (16, 32))
    found = scripts["translate"].Found(
        {
            entry_of(scripts, "headway"): answers(6.0, 20.0, 10.0),
            small: answers(90.0, 2.0, 2.0),  # by the median
            large: answers(3.0, 4.0, 5.0),
        }
    )
    assert found.best("ctranslate2-int8") == large
    assert found.ratios("headway-int8", "ctranslate2-int8") == pytest.approx([2.0, 5.0, 2.0])
    assert found.best("huggingface-float32") is None
    assert found.ratios("headway-int8", "huggingface-float32") == []


def race_of(scripts, contest, work, answer):
    translate = scripts["translate"]
    race = object.__new__(translate.Race)
    race.contest, race.speeds = contest, {"best_shape": [8e6, 6e6, 7e6], "reading": [2e6, 3e6, 1e6]}
    row = translate.Row("smallest", work, 4, 1.0, 1.0)
    race.found = {row: translate.Found({entry_of(scripts, "headway"): [answer]})}
    return race.limit(row)


def test_a_limit_is_the_speed_over_what_the_sentences_need(scripts, contest):
    limit = scripts["translate_limit"]
    sources = [len(ids) for group in contest.work["corpus"] for ids in group.sources]
    steps = [5 + place for place in range(len(sources))]
    need = sum(
        limit.multiply_adds(contest.config, source=source, steps=own, beam=4).operations
        for source, own in zip(sources, steps, strict=True)
    )
    found = race_of(scripts, contest, "corpus", {"steps": steps, "seconds": 1.0})
    assert found == pytest.approx(len(steps) * 7e6 / need)
    weights = limit.weight_bytes(contest.config, precision="int8")
    found = race_of(scripts, contest, "single", {"steps": [3, 5], "seconds": 1.0})
    assert found == pytest.approx(2 * 2e6 / (2 * weights.once + 8 * weights.step))


def test_a_process_that_ends_says_why(scripts, tmp_path):
    worker, log = scripts["translate"].Worker, tmp_path / "log"
    with pytest.raises(SystemExit, match="No module named 'nobody'"):
        worker([sys.executable, "-c", "import nobody"], os.environ, log)


ROW = {
    "required": 1.5,
    "aim": 2.2,
    "rates": {"Headway int8, batch 32": [120.0, 130.0], "CTranslate2 int8, 2 x 1, batch 16": [60.0, 70.0]},
    "best": {"headway-int8": "Headway int8, batch 32", "ctranslate2-int8": "CTranslate2 int8, 2 x 1, batch 16"},
    "ratios": {"ctranslate2-int8": [2.0, 1.86]},
    "limit": 250.0,
    "sentences": 7,
}


def test_a_row_tells_the_ratio_its_range_what_was_wanted_and_who_is_missing(scripts):
    (_, _, _, _, row) = scripts["translate_table"].speed_table({"base": {"rows": {"base, corpus": ROW}}})
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == [
        *(
            "base, corpus",
            "125",
            "65.0",
            "2 x 1, batch 16",
            "**1.93 x**",
            "1.86 to 2.00",
            "1.5 x reached",
            "2.2 x missed",
        ),
        *("50%", "26%", "missing", "missing", "missing", ""),
    ]


def test_without_a_peer_nothing_is_reached_or_missed(scripts):
    row = {**ROW, "best": {"headway-int8": "Headway int8, batch 32"}, "ratios": {}}
    cells = [*scripts["translate_table"].cells_of(row)]
    assert cells[:7] == ["125", "missing", "missing", "", "", "1.5 x", "2.2 x"]


@pytest.mark.slow
def test_a_race_tells_every_row_and_the_limits(tmp_path):
    for package in ("headway_native", "ctranslate2", "transformers"):
        pytest.importorskip(package)
    path = tmp_path / "found.json"
    sizes = ("--sentences", 6, "--batch", 3, "--singles", 2, "--rounds", 2, "--limit-seconds", 0.001, "--threads", 2)
    finished = subprocess.run(
        [
            *(sys.executable, str(BENCH / "translate.py"), "--contests", "smallest", "--no-start", "--json", str(path)),
            *map(str, sizes),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert finished.returncode == 0, finished.stderr
    found = json.loads(path.read_text(encoding="utf-8"))["contests"]["smallest"]
    assert found["missing"] == {}
    corpus = found["rows"]["smallest, corpus, beam 4"]
    assert len(corpus["ratios"]["ctranslate2-int8"]) == 2
    assert len(corpus["ratios"]["huggingface-float32"]) == 1
    assert {len(rates) for rates in corpus["rates"].values()} == {1, 2}
    assert found["rows"]["smallest, one sentence at a time, greedy"]["limit"] > 0
    assert found["memory"]["headway-int8"]["peak_bytes"] > found["memory"]["headway-int8"]["mapped_bytes"]
    assert "| smallest, corpus, beam 4 |" in finished.stdout
