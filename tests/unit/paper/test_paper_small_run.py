"""A small run learns, stops when asked, ends where a loss is not finite, and is measured as by hand."""

import math

import pytest
import torch

from headway.config.model_config import ModelConfig
from headway.config.train_config import TrainConfig
from headway.model.build import build_transformer
from headway.paper.events import RowStopped
from headway.paper.small_run import SmallRun, first_model, measure, plan_run, train_small
from headway.paper.symbols import SymbolTask


def small_run(*, steps=3, seed=1, rate=5e-3, **parts):
    task = SymbolTask("copy", num_symbols=5, shortest=1, longest=3)
    sizes = {"d_model": 16, "d_ff": 23, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    model = ModelConfig(vocab_size=task.vocab_size, dropout=0.0, **sizes | parts)
    train = TrainConfig(max_steps=steps, warmup_steps=5, learning_rate=rate, label_smoothing=0.0)
    return SmallRun(task, model, train, sentences=17, seed=seed)


def test_training_lowers_the_loss_of_sentences_held_out():
    run = small_run(steps=60)
    model = build_transformer(run.model)
    before = measure(model, run.held_out(31))
    assert train_small(model, run, lambda: False) == 60
    after = measure(model, run.held_out(31))
    assert after.nll < before.nll - 0.3
    assert after.accuracy > before.accuracy


def test_a_request_to_stop_is_heard_before_the_next_step():
    run, asked = small_run(steps=10), iter([False, False, True])
    model = build_transformer(run.model)
    assert train_small(model, run, lambda: next(asked)) is None
    short = small_run(steps=2)
    other = build_transformer(short.model)
    train_small(other, short, lambda: False)
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_run_whose_loss_is_not_finite_ends_with_the_steps_before():
    run = small_run(steps=9, rate=1e30)
    steps = train_small(build_transformer(run.model), run, lambda: False)
    assert 0 < steps < 9


def test_a_planned_run_is_trained_and_then_measured_on_as_many_sentences_as_its_settings_tell():
    run = small_run(steps=7)
    planned = plan_run("copy", run, lambda: False, num_tested=13)
    assert planned.settings == {**run.settings, "tested": 13, "threads": torch.get_num_threads()}
    with pytest.raises(StopIteration) as ended:
        next(planned.make())
    values = ended.value.value
    model = first_model(run)
    train_small(model, run, lambda: False)
    measured = measure(model, run.held_out(13))
    assert (values["loss"], values["accuracy"], values["steps"]) == (measured.nll, measured.accuracy, 7)


def test_a_planned_run_that_is_stopped_tells_so_and_has_no_values():
    making = plan_run("copy", small_run(), lambda: True, num_tested=13).make()
    assert next(making) == RowStopped("copy")
    with pytest.raises(StopIteration) as ended:
        next(making)
    assert ended.value.value is None


def test_equal_seeds_draw_equal_sentences_for_every_model_and_none_that_is_held_out():
    mine, other = small_run(seed=7), small_run(seed=7, d_model=32)
    assert mine.settings != other.settings
    for step in (1, 2):
        drawn = [run.task.draw(17, run.generator(step)).source_BS for run in (mine, other)]
        assert torch.equal(*drawn)
        assert not torch.equal(drawn[0], mine.held_out(17).source_BS)
    assert not torch.equal(small_run(seed=8).held_out(17).source_BS, mine.held_out(17).source_BS)


def test_what_is_measured_is_what_a_loop_over_tokens_counts():
    run = small_run()
    model, batch = build_transformer(run.model), run.held_out(13)
    losses, right, exact = [], [], []
    for row in range(13):
        logits = model(
            batch.source_BS[row : row + 1], batch.source_mask_BS[row : row + 1], batch.target_in_BT[row : row + 1]
        )[0]
        found = []
        for place, wanted in enumerate(batch.target_out_BT[row].tolist()):
            if wanted:
                powers = [math.exp(value) for value in logits[place].tolist()]
                losses.append(-math.log(powers[wanted] / sum(powers)))
                found.append(powers.index(max(powers)) == wanted)
        right += found
        exact.append(all(found))
    measured = measure(model, batch)
    assert measured.nll == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    assert measured.accuracy == pytest.approx(sum(right) / len(right))
    assert measured.exact == pytest.approx(sum(exact) / len(exact))
