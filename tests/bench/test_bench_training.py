"""bench/train.py and bench/cost.py at the smallest sizes: they compare like with like. No time is asserted."""

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from headway.config.presets import PRESETS
from headway.model.build import build_transformer, export_weights
from headway.model.size import count_multiply_adds

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"
MODULES = ("train", "trainers", "workload", "cost")


def run(script, *arguments):
    finished = subprocess.run(
        [sys.executable, str(BENCH / script), "--threads", "1", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def first_loss(scripts, trainer, folder, precision="float32"):
    """Of one case without dropout."""
    workload, trainers = scripts["workload"], scripts["trainers"]
    config = workload.MODELS["smallest"].model_copy(update={"dropout": 0.0})
    weights = export_weights(build_transformer(config, seed=3))
    spec = {"sizes": config.model_dump(), "device": "cpu", "precision": precision, "attention": "sdpa"}
    model, step = trainers.TRAINERS[trainer](spec, weights)
    workload.write_batches(folder / "batches.npz", uneven(workload, config))
    (ids,) = trainers.read_batches(folder / "batches.npz")
    parameters = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return step(ids, 1), step(ids, 2), parameters


def uneven(workload, config):
    """One batch with padding on both sides."""
    (batch,) = workload.equal_batches(config, count=1, sentences=5, length=7)
    for row, (source, target) in enumerate([(7, 4), (3, 7), (5, 5)]):
        batch.source_BS[row, source:] = 0
        batch.target_in_BT[row, target:] = 0
        batch.target_out_BT[row, target:] = 0
    return [batch]


@pytest.mark.parametrize("trainer", ["hf", "torch", "joeynmt"])
def test_without_dropout_a_peer_has_headways_losses_before_and_after_a_step(scripts, trainer, tmp_path):
    pytest.importorskip({"hf": "transformers", "torch": "torch", "joeynmt": "joeynmt"}[trainer])
    ours, theirs = (first_loss(scripts, name, tmp_path) for name in ("headway", trainer))
    tolerance = 2e-2 if trainer == "joeynmt" else 1e-4  # its smoothing spreads over V - 2 tokens, not V
    assert theirs[:2] == pytest.approx(ours[:2], abs=tolerance)
    assert ours[1] < ours[0]
    assert theirs[2] == ours[2]


WHERE_THE_PAPER_HAS_DROPOUT = {  # modules of one encoder and one decoder layer, and the stem
    "torch": {"dropout", "body.encoder.layers.0.dropout1", "body.encoder.layers.0.dropout2"}
    | {f"body.decoder.layers.0.dropout{number}" for number in (1, 2, 3)},
    "joeynmt": {"encoder.emb_dropout", "encoder.layers.0.dropout", "encoder.layers.0.feed_forward.pwff_layer.4"}
    | {"decoder.emb_dropout", "decoder.layers.0.dropout", "decoder.layers.0.feed_forward.pwff_layer.4"},
}


@pytest.mark.parametrize("trainer", WHERE_THE_PAPER_HAS_DROPOUT)
def test_a_peer_drops_out_where_the_paper_does_and_nowhere_else(scripts, trainer):
    pytest.importorskip(trainer)
    config = scripts["workload"].MODELS["smallest"]
    spec = {"sizes": config.model_dump(), "device": "cpu", "precision": "float32", "attention": "sdpa"}
    model, _ = scripts["trainers"].TRAINERS[trainer](spec, export_weights(build_transformer(config)))
    found = {name for name, part in model.named_modules() if isinstance(part, torch.nn.Dropout) and part.p > 0}
    assert found == WHERE_THE_PAPER_HAS_DROPOUT[trainer]
    attentions = [part for part in model.modules() if isinstance(part, torch.nn.MultiheadAttention)]
    assert all(part.dropout == 0 for part in attentions)


def test_the_products_of_a_step_are_the_multiply_adds_of_the_model(scripts):
    workload = scripts["workload"]
    config = workload.MODELS["base"]
    (batch,) = workload.equal_batches(config, count=1, sentences=3, length=29)
    batch = type(batch)(batch.source_BS[:, :23], batch.target_in_BT, batch.target_out_BT)
    counts = count_multiply_adds(config, source_length=23, target_length=29)
    wanted = 6 * 3 * (23 * counts.source_token + 29 * counts.target_token)
    assert sum(product.flops for product in workload.products(config, batch)) == wanted


def test_drawn_captions_are_as_long_as_multi30ks(scripts):
    source, target = scripts["workload"].caption_lengths(29_000)
    assert source.mean() == pytest.approx(13.02, abs=0.2)  # words of train.lc.norm.tok.en and .de
    assert target.mean() == pytest.approx(12.44, abs=0.2)


def test_the_models_are_the_presets_with_biases_in_attention(scripts):
    for name in ("base", "big", "tiny"):
        differing = PRESETS[name].model_dump().items() ^ scripts["workload"].MODELS[name].model_dump().items()
        assert differing == {("attention_bias", False), ("attention_bias", True)}


KEEPS_MEMORY = """
from pathlib import Path
def resident():
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) / 1024
blocks = [bytearray(b"x") * 4_000_000 for _ in range(25)]
full = resident()
del blocks
print(full - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc reads these settings")
def test_a_kept_row_keeps_freed_memory_and_a_plain_one_gives_it_back_whatever_the_shell_says(scripts):
    train = scripts["train"]
    given_back = {}
    for kept in (False, True):
        environment = train.Case("hf", "bf16", kept).environment({**os.environ, **train.KEPT_MEMORY}, threads=3)
        assert environment["OMP_NUM_THREADS"] == "3"
        assert ("ONEDNN_PRIMITIVE_CACHE_CAPACITY" in environment) is kept
        finished = subprocess.run(
            [sys.executable, "-c", KEEPS_MEMORY], env=environment, capture_output=True, check=True
        )
        given_back[kept] = float(finished.stdout)
    assert given_back[False] > 80  # MB of 100
    assert given_back[True] < 20


@pytest.mark.parametrize("text", ["headway-bf16-kept", "hf", "hf-bf16-cold", "nobody-bf16", "hf-int8"])
def test_a_case_that_is_none_is_refused(scripts, text):
    with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' is no case"):
        scripts["train"].parse_case(text)


@pytest.mark.parametrize("text", ["headway-bf16", "hf-float32", "joeynmt-bf16-kept"])
def test_a_case_is_written_as_it_is_read(scripts, text):
    assert str(scripts["train"].parse_case(text)) == text


def test_headways_case_keeps_memory_before_anything_else(scripts, monkeypatch):
    def settled():
        raise InterruptedError

    monkeypatch.setattr("headway.train.memory.settle_memory", settled)
    monkeypatch.setattr(scripts["train"], "settle_memory", settled)
    train = scripts["train"]
    for call in (
        lambda: scripts["trainers"].run({"trainer": "headway"}),
        lambda: train.measure_memory("smallest", 56, 28, "float32", 1),
        lambda: train.measure_waiting(train.MODELS["smallest"], argparse.Namespace()),
    ):
        with pytest.raises(InterruptedError):
            call()


@pytest.mark.parametrize(("faster", "slower"), [("eager", "sdpa"), ("sdpa", "eager")])
def test_the_faster_attention_over_all_rounds_is_hfs_and_ratios_pair_rounds(scripts, faster, slower):
    train = scripts["train"]
    contest = object.__new__(train.Race)
    rates = {
        "headway-bf16": {"own": [6.0, 20.0, 10.0]},
        "hf-bf16": {"eager": [], "sdpa": [], slower: [90.0, 2.0, 2.0], faster: [3.0, 4.0, 5.0]},  # by the median
    }
    contest.results = {
        case: {name: [{"tokens_per_second": rate} for rate in rounds] for name, rounds in found.items()}
        for case, found in rates.items()
    }
    assert train.rates_of(contest.fastest("hf-bf16")) == [3.0, 4.0, 5.0]
    assert contest.ratio("headway-bf16", "hf-bf16") == 2.0  # of 2, 5 and 2
    assert contest.ratio("headway-bf16", "hf-bf16-kept") is None


def test_a_limit_is_the_matrix_speed_over_the_flops_of_a_token(scripts, monkeypatch):
    train = scripts["train"]
    contest = object.__new__(train.Race)
    monkeypatch.setattr(train.Race, "flops_per_token", 10.0)
    contest.speeds = {"bf16": [train.MatrixSpeed(own, 2 * own) for own in (300.0, 100.0, 200.0)]}
    assert contest.limits("bf16") == {"own_shapes": 20.0, "fastest_shape": 40.0}


@pytest.mark.slow
def test_a_race_tells_all_cases_with_ratios_and_the_limits(tmp_path):
    pytest.importorskip("transformers")
    path = tmp_path / "found.json"
    told = run(
        "train.py",
        *("--model", "smallest", "--rounds", 1, "--steps", 1, "--sentences", 3, "--length", 5, "--json", path),
        *("--matrix-seconds", 0.001, "--hf-attention", "sdpa", "--cases", "headway-bf16,hf-float32-kept"),
    )
    found = json.loads(path.read_text(encoding="utf-8"))
    case = found["cases"]["headway-bf16"]
    other = found["cases"]["hf-float32-kept"]
    assert case["ratios"]["hf-float32-kept"] == pytest.approx(case["tokens_per_second"] / other["tokens_per_second"])
    assert case["ratios"]["hf-float32"] is None
    assert list(case["shares"]) == ["bf16"]
    assert list(other["shares"]) == ["bf16", "float32"]
    for kind, shares in other["shares"].items():
        for name, share in shares.items():
            assert share == pytest.approx(other["tokens_per_second"] / found["limits"][kind][name])
    assert all(0 < row["before_bytes"] <= row["peak_bytes"] for row in (case, other))
    assert "| HF MarianMT, float32, kept memory |" in told
    assert "50% of the bf16 limit at the model's own shapes:" in told
    assert "50% of the bf16 limit at the best shape:" in told


@pytest.mark.slow
def test_memory_and_waiting_are_told(tmp_path):
    path = tmp_path / "found.json"
    sizes = ("--memory-steps", 112, "--memory-microbatches", 56, "--precision", "float32")
    run("train.py", "--model", "smallest", "--memory", "--json", path, *sizes)
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert [(row["step_tokens"], row["microbatch_tokens"]) for row in rows] == [(112, 56)]
    run("train.py", "--model", "smallest", "--waiting", "--steps", 2, "--batch-tokens", 500, "--json", path)
    found = json.loads(path.read_text(encoding="utf-8"))
    assert 0 < found["share"] < 1
    assert found["share"] == found["waited"] / found["seconds"]


def test_a_slope_is_the_exponent_of_a_power_law(scripts):
    assert scripts["cost"].slope({2: 12.0, 4: 48.0, 16: 768.0}) == pytest.approx(2.0)


@pytest.mark.parametrize("kind", ["self-attention alone", "in blocks of 16", "recurrent layer", "convolution, k = 3"])
def test_multiply_adds_of_a_layer_grow_as_table_1_says(scripts, kind):
    cost = scripts["cost"]
    of_length = {n: cost.layer(kind, 64, tokens=64, length=n).multiply_adds for n in (16, 32, 64)}
    of_width = {d: cost.layer(kind, d, tokens=32, length=32).multiply_adds for d in (64, 128, 256)}
    slopes = [cost.slope(of_length), cost.slope(of_width)]
    assert slopes == pytest.approx([float(order.split("^")[1]) for order in cost.ORDERS[kind]])


@pytest.mark.slow
def test_cost_is_measured_and_drawn(tmp_path):
    sizes = ("--lengths", 16, 32, 64, "--widths", 64, 128, "--depths", 1, 2, "--tokens", 64, "--rounds", 1)
    told = run("cost.py", *sizes, "--plots", tmp_path, "--json", tmp_path / "found.json")
    rows = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert {row["what"] for row in rows} >= {"training", "encoding", "recurrent layer"}
    assert all(seconds > 0 for row in rows for seconds in row["seconds"].values())
    assert "| length n | training | encoding |" in told
    assert (tmp_path / "cost-length.svg").read_text(encoding="utf-8").startswith("<svg")
