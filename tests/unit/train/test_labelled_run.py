"""Labelled texts: an encoder learns their labels, anew or from a pre-trained one, and tells them of new texts."""

import pytest
import torch
from train_letters import final_state, of_kind, run
from train_text import LABELLED_KEYS, LINES, PARTS, chain, text_config, write_labelled

from headway.config.model_config import ModelConfig
from headway.data.batch import Batch
from headway.data.prepared import read_prepared
from headway.errors import DataError, MetricError, TranslationError
from headway.folder.contents import ModelFolder
from headway.metrics.accuracy import Accuracy
from headway.model.build import build_text_encoder
from headway.train.events import Finished, Validated
from headway.train.labelled import LabelledTexts
from headway.translate.classifier import TextClassifier
from headway.translate.translator import Translator


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labelled")
    data = write_labelled(folder / "data")
    return folder / "m", data, run(text_config(*LABELLED_KEYS), data, folder / "m")


def test_labels_are_ids_behind_the_control_tokens(trained):
    out, data, _ = trained
    prepared = read_prepared(out / "training" / "data")
    assert prepared.report.labels == ("early", "late letter")
    store = prepared.store("train")
    rows = [line.split("\t") for line in (data / "train.tsv").read_text().split("\n")[:-1]]
    assert [store.target(place).tolist() for place in range(len(store))] == [
        [4 if label == "early" else 5] for label, _ in rows
    ]
    decoded = [prepared.source_tokenizer.decode(store.source(place).tolist()) for place in range(len(store))]
    assert decoded == [text for _, text in rows]
    assert "l" not in "".join(prepared.source_tokenizer.tokens(range(5, prepared.source_tokenizer.vocab_size)))


def test_the_accuracy_told_is_that_of_the_classifier(trained):
    out, data, events = trained
    rows = [line.split("\t") for line in (data / "validation.tsv").read_text().split("\n")[:-1]]
    classifier = TextClassifier.from_folder(out)
    found = [each.label for each in classifier.classify([text for _, text in rows])]
    right = sum(one == other for one, (other, _) in zip(found, rows, strict=True))
    (finished,) = of_kind(events, Finished)
    assert isinstance(finished.evaluation, Accuracy)
    assert (finished.evaluation.right, finished.evaluation.total) == (right, len(rows))
    best = max(event.accuracy for event in of_kind(events, Validated))
    assert finished.evaluation.share == pytest.approx(best)
    assert finished.evaluation.share > finished.evaluation.most_frequent / finished.evaluation.total
    card = (out / "README.md").read_text()
    assert "early, late letter" in card
    assert f"{finished.evaluation.share:.1%}" in card


def test_a_label_depends_on_its_text_alone(trained):
    out, _, _ = trained
    classifier = TextClassifier.from_folder(out)
    texts = ["a b c", "", "g a b e f g c", "d"]
    together = classifier.classify(texts)
    for text, found in zip(texts, together, strict=True):
        (alone,) = classifier.classify([text], batch_tokens=1)
        assert alone.label == found.label
        assert alone.probabilities == pytest.approx(found.probabilities, abs=1e-5)
        assert sum(found.probabilities.values()) == pytest.approx(1.0, abs=1e-5)


def test_a_text_longer_than_the_positions_is_cut_and_flagged(trained, tmp_path):
    _, data, _ = trained
    keys = ("model.positions=learned", "model.max_positions=19", "train.max_steps=1")
    run(text_config(*LABELLED_KEYS, *keys), data, tmp_path / "m")
    classifier = TextClassifier.from_folder(tmp_path / "m")
    text = "a b c d e f g " * 5
    long, short = classifier.classify([text, "a b c"])
    assert (long.is_cut, short.is_cut) == (True, False)
    beginning = classifier.tokenizer.decode(classifier.tokenizer.encode(text)[:17])  # BOS and EOS have positions too
    assert long.probabilities == pytest.approx(classifier.classify([beginning])[0].probabilities, abs=1e-5)


def test_stopped_and_resumed_is_never_stopped_bit_for_bit(trained, tmp_path):
    out, data, _ = trained
    run(text_config(*LABELLED_KEYS), data, tmp_path / "m", stop_at=31)
    run(text_config(*LABELLED_KEYS), data, tmp_path / "m")
    assert final_state(tmp_path / "m") == final_state(out)


@pytest.mark.parametrize("next_sentence", ["false", "true"])
def test_a_run_begins_with_a_pre_trained_encoder_and_its_own_classes(trained, tmp_path, next_sentence):
    _, data, _ = trained
    before = (
        *LABELLED_KEYS[:3],
        "train.objective=masked",
        f"train.next_sentence={next_sentence}",
        f"data.format={'consecutive' if next_sentence == 'true' else 'text'}",
        "train.max_steps=2",
    )
    run(text_config(*before), data, tmp_path / "pre")
    config = text_config(
        *LABELLED_KEYS, f"train.init={tmp_path / 'pre'}", "train.max_steps=1", "train.learning_rate=1e-9"
    )
    run(config, data, tmp_path / "fine")
    pre, fine = (ModelFolder.open(tmp_path / name) for name in ("pre", "fine"))
    assert fine.source_tokenizer.to_json() == pre.source_tokenizer.to_json()
    assert fine.config.model.num_classes == 2
    old, new = pre.weights(), fine.weights()
    for name, array in new.items():
        if name in old and not name.startswith("classifier."):
            torch.testing.assert_close(
                torch.from_numpy(array.copy()), torch.from_numpy(old[name].copy()), atol=1e-6, rtol=0
            )
    assert {name for name in new if name.startswith("classifier.")}


def test_the_loss_is_that_of_the_labels_and_equals_the_plain_formula():
    sizes = {"vocab_size": 29, "d_model": 14, "d_ff": 22, "num_heads": 2, "num_encoder_layers": 1, "dropout": 0.0}
    model = build_text_encoder(ModelConfig(architecture="encoder_only", num_classes=3, **sizes))
    source = torch.tensor([[7, 8, 3, 0], [9, 10, 11, 3], [3, 0, 0, 0]])
    target = torch.tensor([[6, 3], [4, 3], [0, 0]])  # the last only fills a gap
    batch = Batch(source, target.roll(1, dims=1), target)
    (loss, nll), correct = LabelledTexts(0.1).sums_and_correct(model, batch, precision="float32")
    log_probs = model.classes(model(torch.cat((torch.full((3, 1), 2), source), dim=1))).log_softmax(dim=-1)
    wanted = -(log_probs[0, 2] + log_probs[1, 0])
    assert nll.item() == pytest.approx(wanted.item(), rel=1e-5)
    assert loss.item() == pytest.approx((0.9 * wanted - 0.1 * log_probs[:2].mean(dim=-1).sum()).item(), rel=1e-5)
    assert correct.item() == (log_probs[:2].argmax(dim=-1) == torch.tensor([2, 0])).sum()
    assert LabelledTexts(0.1).num_predictions(batch) == 2


def test_labels_that_cannot_be_learnt_or_were_not_are_named(trained, tmp_path):
    out, data, _ = trained
    (data / "one.tsv").write_text("".join(f"early\ta b {'c' * place}\n" for place in range(1, 9)))
    with pytest.raises(DataError, match=r"the training text has 1 different label\(s\) \('early' \.\.\.\)"):
        run(text_config(*LABELLED_KEYS, "data.train_source=one.tsv"), data, tmp_path / "m")
    (data / "other.tsv").write_text("never\ta b c\n")
    with pytest.raises(DataError, match="found the label 'never', which the training text lacks; it has 'early'"):
        run(text_config(*LABELLED_KEYS, "data.validation_source=other.tsv"), data, tmp_path / "m")
    with pytest.raises(MetricError, match="found the label 'never', which the model does not know"):
        TextClassifier.from_folder(out).measure(["a b"], ["never"])
    with pytest.raises(TranslationError, match="Use it with `headway classify`"):
        Translator.from_folder(out)


def test_short_labels_of_long_texts_are_no_fault(tmp_path):
    """Pairs of translations so unlike in length would be dropped."""
    from random import Random

    data, random = tmp_path / "data", Random(7)
    data.mkdir()
    for part in PARTS:
        rows = [f"{place % 2}\t{chain(random, 60)}\n" for place in range(LINES)]
        (data / f"{part}.tsv").write_text("".join(rows))
    run(text_config(*LABELLED_KEYS, "train.max_steps=1"), data, tmp_path / "m")
    report = read_prepared(tmp_path / "m" / "training" / "data").report
    assert (report.pairs_clean, report.train.pairs) == (LINES, LINES)
