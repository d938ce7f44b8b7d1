"""BERT's objective: which tokens are hidden and how, that these alone count, and that lines are exchanged fairly.

Shapes: B texts, T positions.
"""

import math
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from train_letters import final_state, of_kind, run
from train_text import text_config, write_text

from headway.config.model_config import ModelConfig
from headway.data.batch import Batch
from headway.data.prepared import read_prepared
from headway.errors import ConfigError, DataError, TranslationError
from headway.folder.contents import ModelFolder
from headway.metrics.perplexity import HiddenTokens
from headway.model.build import build_text_encoder
from headway.train.events import Finished, Validated
from headway.train.masked import MaskedTokens, Masking, exchanged
from headway.train.objectives import training_objective
from headway.translate.classifier import TextClassifier

MASK, TEXT_IDS = 4, tuple(range(5, 29))
MASKING = Masking(0.15, MASK, TEXT_IDS)
KEYS = (
    "model.architecture=encoder_only",
    "model.num_encoder_layers=1",
    "model.vocab_size=17",
    "train.objective=masked",
)


def lines(lengths, *, seed=3):
    """Token ids and EOS, padded."""
    generator = torch.Generator().manual_seed(seed)
    token = torch.randint(5, 29, (len(lengths), max(lengths) + 1), generator=generator)
    for row, length in enumerate(lengths):
        token[row, length] = 3
        token[row, length + 1 :] = 0
    return token


def batch_of(firsts, seconds, *, seed=3):
    target = lines(seconds, seed=seed)
    return Batch(lines(firsts, seed=seed + 1), target.roll(1, dims=1), target)


def encoder(**given):
    sizes = {"vocab_size": 29, "d_model": 14, "d_ff": 22, "num_heads": 2, "num_encoder_layers": 1, "dropout": 0.0}
    return build_text_encoder(ModelConfig(architecture="encoder_only", **(sizes | given)))


@given(st.lists(st.integers(0, 40), min_size=1, max_size=7), st.integers(0, 999))
def test_of_each_line_fifteen_in_a_hundred_are_hidden_and_one_at_least(lengths, seed):
    text = lines(lengths)
    torch.manual_seed(seed)
    read, answer = MASKING.hide(text)
    chosen = answer != 0
    wanted = [max(1, round(0.15 * length)) if length else 0 for length in lengths]
    assert chosen.sum(dim=1).tolist() == wanted == MASKING.num_hidden(text).tolist()
    assert torch.equal(answer[chosen], text[chosen])
    assert torch.equal(read[~chosen], text[~chosen])  # PAD and EOS among them
    assert not (chosen & ((text == 0) | (text == 3))).any()


def test_eight_of_ten_are_the_mask_one_is_another_token_and_one_stays():
    text = lines([500] * 61)
    torch.manual_seed(5)
    read, answer = MASKING.hide(text)
    chosen = answer != 0
    total = int(chosen.sum())
    masked, same = int((read[chosen] == MASK).sum()), int((read[chosen] == answer[chosen]).sum())
    by_chance = 0.1 / len(TEXT_IDS)  # a replacement is the token itself
    for count, share in ((masked, 0.8), (same, 0.1 + by_chance)):
        assert abs(count - share * total) < 5 * math.sqrt(share * (1 - share) * total)
    replaced = read[chosen & (read != MASK) & (read != text)]
    assert set(replaced.tolist()) <= set(TEXT_IDS)
    assert len(set(replaced.tolist())) == len(TEXT_IDS)


def test_every_place_is_hidden_as_often_as_every_other():
    text, counts = lines([20]), torch.zeros(21)
    for seed in range(2000):
        torch.manual_seed(seed)
        counts += (MASKING.hide(text)[1] != 0)[0]
    assert (counts[:20] - 300).abs().max() < 5 * math.sqrt(2000 * 0.15 * 0.85)


def test_masks_follow_from_the_seed_of_the_microbatch_alone():
    def drawn(seed):
        torch.manual_seed(seed)
        return MASKING.hide(lines([30, 20]))[0]

    assert torch.equal(drawn(5), drawn(5))
    assert not torch.equal(drawn(5), drawn(6))


def test_the_loss_is_of_the_hidden_tokens_alone_and_equals_the_plain_formula():
    model, batch = encoder(), batch_of([0, 0], [13, 7])
    objective = MaskedTokens(MASKING, 0.1)
    torch.manual_seed(5)
    read, answer, follows = objective.draw(batch)
    assert follows is None
    torch.manual_seed(5)
    loss, nll = objective.sums(model, batch, precision="float32").tolist()
    with torch.no_grad():
        log_probs = model.output(model(read)).log_softmax(dim=-1)
    chosen = answer != 0
    wanted = -log_probs[chosen].gather(-1, answer[chosen][:, None]).sum().item()
    uniform = -log_probs[chosen].mean(dim=-1).sum().item()
    assert nll == pytest.approx(wanted, rel=1e-5)
    assert loss == pytest.approx(0.9 * wanted + 0.1 * uniform, rel=1e-5)
    assert objective.num_predictions(batch) == int(chosen.sum()) == 2 + 1
    other = batch.target_out_BT.clone()
    places = (~chosen[:, 1:] & (other > 3)).nonzero()[0]
    other[tuple(places)] = 5 + (other[tuple(places)] - 4) % 24  # what is only read changes what is predicted, not what
    torch.manual_seed(5)
    changed = objective.draw(Batch(batch.source_BS, batch.target_in_BT, other))
    assert torch.equal(changed[1], answer)


def test_two_lines_are_read_as_one_text_without_a_gap():
    batch = batch_of([2, 6], [5, 3])
    torch.manual_seed(1)
    read, answer, follows = MaskedTokens(MASKING, 0.0, next_sentence=True).draw(batch)
    whole = torch.where(answer != 0, answer, read)
    second = batch.target_out_BT if follows[0] else batch.target_out_BT.flip(0)
    for row, first in enumerate(batch.source_BS):
        text = [2, *first[first != 0].tolist(), *second[row][second[row] != 0].tolist()]
        found = whole[row].tolist()
        assert found[: len(text)] == text
        assert set(found[len(text) :]) <= {0}
    assert read.shape[1] == max(len(row[row != 0]) for row in read)


@given(st.integers(1, 13), st.integers(0, 999))
def test_lines_are_exchanged_among_themselves_and_none_stays_that_is_said_to_leave(count, seed):
    torch.manual_seed(seed)
    order = exchanged(torch.arange(count))
    assert sorted(order.tolist()) == list(range(count))
    assert (order != torch.arange(count)).sum() != 1


def test_about_half_of_the_lines_leave():
    torch.manual_seed(5)
    left = sum(int((exchanged(torch.arange(50)) != torch.arange(50)).sum()) for _ in range(200))
    assert abs(left - 5000) < 5 * math.sqrt(10_000 * 0.25)


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=6), st.integers(0, 99))
def test_how_many_are_predicted_is_known_before_anything_is_drawn(lengths, seed):
    batch = batch_of([first for first, _ in lengths], [second for _, second in lengths])
    for next_sentence in (False, True):
        objective = MaskedTokens(MASKING, 0.0, next_sentence)
        torch.manual_seed(seed)
        assert int((objective.draw(batch)[1] != 0).sum()) == objective.num_predictions(batch)


def test_a_decision_weighs_as_much_as_the_tokens_hidden_beside_it():
    model, batch = encoder(num_classes=2), batch_of([9, 20, 6], [9, 3, 14])
    torch.manual_seed(3)
    read, answer, follows = MaskedTokens(MASKING, 0.0, next_sentence=True).draw(batch)
    torch.manual_seed(3)
    loss, nll = MaskedTokens(MASKING, 0.0, next_sentence=True).sums(model, batch, precision="float32").tolist()
    with torch.no_grad():
        log_probs = model.classes(model(read)).log_softmax(dim=-1)
    weights = (answer != 0).sum(dim=1)
    wanted = sum(-log_probs[row, 0 if follows[row] else 1].item() * weights[row].item() for row in range(3))
    assert loss - nll == pytest.approx(wanted, rel=1e-5)


def test_a_microbatch_that_fills_a_gap_adds_nothing():
    gap = Batch(torch.tensor([[3]]), torch.tensor([[2]]), torch.tensor([[0]]))
    for next_sentence, classes in ((False, None), (True, 2)):
        model = encoder(num_classes=classes)
        objective = MaskedTokens(MASKING, 0.1, next_sentence)
        sums = objective.sums(model, gap, precision="float32")
        sums[0].backward()
        assert sums.tolist() == [0.0, 0.0]
        assert objective.num_predictions(gap) == 0
        assert not any(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


# Runs


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("masked")
    data = write_text(folder / "data")
    return folder / "m", data, run(text_config(*KEYS), data, folder / "m")


def test_a_run_learns_and_its_folder_holds_the_mask(trained):
    out, _, events = trained
    validations = of_kind(events, Validated)
    assert validations[-1].loss < validations[0].loss
    assert all(0 <= event.accuracy <= 1 and event.bleu is None for event in validations)
    (finished,) = of_kind(events, Finished)
    assert isinstance(finished.evaluation, HiddenTokens)
    assert finished.evaluated_on == "validation"
    folder = ModelFolder.open(out)
    assert folder.config.model.num_classes is None
    assert "mask" in folder.source_tokenizer.tags
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "trained to fill in hidden tokens" in card
    assert f"| perplexity of hidden tokens | {finished.evaluation.perplexity:.2f} |" in card


def test_the_objective_hides_by_the_vocabulary_s_own_mask(trained):
    out, _, _ = trained
    prepared = read_prepared(out / "training" / "data")
    tokenizer = prepared.source_tokenizer
    objective = training_objective(text_config(*KEYS).train, tokenizer)
    assert objective.masking.mask_id == tokenizer.tag_id("mask")
    assert objective.masking.mask_id not in objective.masking.text_ids
    assert min(objective.masking.text_ids) > 3
    assert len(objective.masking.text_ids) == tokenizer.vocab_size - 5


def test_stopped_and_resumed_is_never_stopped_bit_for_bit(trained, tmp_path):
    out, data, _ = trained
    run(text_config(*KEYS), data, tmp_path / "m", stop_at=6)
    run(text_config(*KEYS), data, tmp_path / "m")
    assert final_state(tmp_path / "m") == final_state(out)


def test_next_sentences_are_learnt_from_consecutive_lines(trained, tmp_path):
    _, data, _ = trained
    keys = (*KEYS, "train.next_sentence=true", "data.format=consecutive", "train.max_steps=3")
    run(text_config(*keys), data, tmp_path / "m")
    folder = ModelFolder.open(tmp_path / "m")
    assert folder.config.model.num_classes == 2
    store = read_prepared(tmp_path / "m" / "training" / "data").store("train")
    tokenizer = folder.source_tokenizer
    for place in (0, 5):
        second = tokenizer.decode(store.target(place).tolist())
        assert second == tokenizer.decode(store.source(place + 1).tolist())
    with pytest.raises(TranslationError, match="wanted a model that was trained on labelled texts"):
        TextClassifier.from_folder(tmp_path / "m")


def test_what_does_not_go_together_is_named(trained, tmp_path):
    _, data, _ = trained
    for keys, message in (
        (("train.objective=target",), "set train.objective to masked or labels"),
        (("train.consistency=rdrop",), "train.consistency is not for model.architecture encoder_only"),
        (("train.objective=labels", "train.next_sentence=true"), "set train.next_sentence to false"),
        (("model.architecture=decoder_only",), "set train.objective to target"),
    ):
        with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
            text_config(*KEYS, *keys)
    with pytest.raises(DataError, match=r"train\.next_sentence true wants format consecutive and no tag"):
        run(text_config(*KEYS, "train.next_sentence=true"), data, tmp_path / "m")


@pytest.mark.slow
def test_hidden_tokens_and_the_order_of_lines_are_learnt_where_the_text_tells_them(tmp_path):
    """A document is two lines of one letter, again and again: what is hidden stands beside it, and lines match."""
    random, data = Random(5), tmp_path / "data"
    data.mkdir()
    for part, documents in (("train", 300), ("validation", 60)):
        letters = random.choices("abcdefg", k=documents)
        lines = [" ".join([letter] * random.randint(4, 8)) for letter in letters for _ in range(2)]
        documents_of_two = zip(lines[::2], lines[1::2], strict=True)
        (data / f"{part}.txt").write_text("".join(f"{first}\n{second}\n\n" for first, second in documents_of_two))
    keys = ("train.next_sentence=true", "data.format=consecutive", "clean.drop_duplicates=false", "model.vocab_size=25")
    sizes = ("model.num_encoder_layers=2", "model.d_model=32", "model.norm_placement=pre", "model.dropout=0.0")
    more = ("train.max_steps=400", "train.batch_tokens=400", "train.warmup_steps=50", "train.learning_rate=0.005")
    events = run(text_config(*KEYS, *keys, *sizes, *more, "train.validate_every=200"), data, tmp_path / "m")
    last = of_kind(events, Validated)[-1]
    assert last.accuracy > 0.93
    # An exchanged line has the same letter in 1 of 7 cases. Of all pairs that match 7 of 8 are then true: 0.21 nats a
    # pair is the least; ln 2 is a guess.
    assert 0.15 < last.loss - math.log(last.perplexity) < 0.35
