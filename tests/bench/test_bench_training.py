"""bench/train.py and bench/cost.py at the smallest sizes: they compare like with like. No time is asserted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from headway.model.build import build_transformer, export_weights
from headway.model.size import count_multiply_adds

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"
MODULES = ("trainers", "workload", "cost", "plot")


@pytest.fixture(scope="module")
def scripts():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        yield {name: pytest.importorskip(name) for name in MODULES}
    for name in MODULES:
        sys.modules.pop(name, None)


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


def test_a_race_tells_all_cases_with_ratios_and_the_limit(tmp_path):
    pytest.importorskip("transformers")
    path = tmp_path / "found.json"
    told = run(
        "train.py",
        *("--model", "smallest", "--rounds", 1, "--steps", 1, "--sentences", 3, "--length", 5, "--json", path),
        *("--matrix-seconds", 0.001, "--hf-attention", "sdpa", "--cases", "headway-bf16,hf-float32"),
    )
    found = json.loads(path.read_text(encoding="utf-8"))
    case = found["cases"]["headway-bf16"]
    ratio = case["tokens_per_second"] / found["cases"]["hf-float32"]["tokens_per_second"]
    assert case["ratio_to_hf_float32"] == pytest.approx(ratio)
    assert case["ratio_to_hf_bf16"] is None
    assert case["share_of_limit"] == pytest.approx(case["tokens_per_second"] / found["limit_tokens_per_second"])
    assert "| HF MarianMT, float32 |" in told


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


def test_cost_is_measured_and_drawn(tmp_path):
    sizes = ("--lengths", 16, 32, 64, "--widths", 64, 128, "--depths", 1, 2, "--tokens", 64, "--rounds", 1)
    told = run("cost.py", *sizes, "--plots", tmp_path, "--json", tmp_path / "found.json")
    rows = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert {row["what"] for row in rows} >= {"training", "encoding", "recurrent layer"}
    assert all(seconds > 0 for row in rows for seconds in row["seconds"].values())
    assert "| length n | training | encoding |" in told
    assert (tmp_path / "cost-length.svg").read_text(encoding="utf-8").startswith("<svg")
