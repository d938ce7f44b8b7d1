"""With BPE-dropout a batch holds other ids of the same texts: by seed, epoch, side and pair, and by nothing else."""

from itertools import islice
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from headway.config.load import load_text
from headway.data.batching import plan_epoch
from headway.data.loader import batches, collate
from headway.data.segmentation import Segmentation
from headway.data.store import Store, StoreWriter
from headway.errors import ConfigError
from headway.text.bpe import learn_bpe
from headway.text.reserved import EOS_ID, UNK_ID

PAIRS = 101
WORDS = ["lower", "lowest", "newer", "newest", "wider", "höchste", "東京都"]


def config_of(*overrides):
    return load_text("[text]\nbpe_dropout = 0.3\n[train]\nseed = 7\n", overrides=overrides)


@pytest.fixture(scope="module")
def texts():
    return [" ".join(Random(number).choices(WORDS, k=3 + number % 5)) for number in range(PAIRS)]


@pytest.fixture(scope="module")
def tokenizers(texts):
    return learn_bpe(texts, vocab_size=307), learn_bpe(texts, vocab_size=293)


@pytest.fixture(scope="module")
def store(texts, tokenizers, tmp_path_factory):
    """Each pair has the same text on both sides."""
    folder = tmp_path_factory.mktemp("data") / "train"
    sizes = {f"{side}_vocab_size": one.vocab_size for side, one in zip(("source", "target"), tokenizers, strict=True)}
    with StoreWriter(folder, **sizes) as writer:
        for text in texts:
            writer.append(*(one.encode(text) for one in tokenizers))
    return Store.open(folder)


def segmentation_of(tokenizers, *overrides):
    prepared = SimpleNamespace(source_tokenizer=tokenizers[0], target_tokenizer=tokenizers[1])
    return Segmentation.of(config_of(*overrides), prepared)


def sentences(side_BX):
    return [[token for token in row if token > 3] for row in side_BX.tolist()]


def test_without_dropout_there_is_no_segmentation(tokenizers):
    assert segmentation_of(tokenizers, "text.bpe_dropout=0") is None


def test_a_batch_holds_the_same_texts_in_other_ids(texts, tokenizers, store):
    rows = np.arange(3, 43)
    plain = collate(store, rows)
    drawn = collate(store, rows, segmentation=segmentation_of(tokenizers), epoch=2)
    for one, side, stored in (
        (tokenizers[0], drawn.source_BS, plain.source_BS),
        (tokenizers[1], drawn.target_out_BT, plain.target_out_BT),
    ):
        assert [one.decode(ids) for ids in sentences(side)] == texts[3:43]
        changed = sum(a != b for a, b in zip(sentences(side), sentences(stored), strict=True))
        assert changed > 30
    assert sentences(drawn.target_in_BT) == sentences(drawn.target_out_BT)
    assert ((drawn.source_BS == 3).sum(dim=1) == 1).all()


def test_what_a_pair_becomes_hangs_on_its_epoch_and_number_alone(tokenizers, store):
    segmentation = segmentation_of(tokenizers)
    whole = sentences(collate(store, np.arange(PAIRS), segmentation=segmentation, epoch=2).source_BS)
    rows = np.asarray([97, 5, 61])
    assert sentences(collate(store, rows, segmentation=segmentation, epoch=2).source_BS) == [whole[row] for row in rows]
    assert sentences(collate(store, rows, segmentation=segmentation, epoch=3).source_BS) != [whole[row] for row in rows]
    other = segmentation_of(tokenizers, "train.seed=8")
    assert sentences(collate(store, rows, segmentation=other, epoch=2).source_BS) != [whole[row] for row in rows]


def test_the_two_sides_are_drawn_apart(tokenizers, store):
    twice = SimpleNamespace(
        source_ids=store.source_ids,
        source_offsets=store.source_offsets,
        target_ids=store.source_ids,
        target_offsets=store.source_offsets,
    )
    source, target = segmentation_of((tokenizers[0], tokenizers[0])).draw(twice, np.arange(PAIRS), epoch=0)
    assert sum(one != other for one, other in zip(source.lists(), target.lists(), strict=True)) > 60


BUDGETS = {"batch_tokens": 401, "microbatch_tokens": 101, "seed": 7}


def test_epochs_differ_and_a_resumed_run_sees_what_a_run_never_stopped_sees(tokenizers, store):
    segmentation = segmentation_of(tokenizers)
    steps = list(islice(batches(store, segmentation=segmentation, **BUDGETS), 13))
    epochs = {position.epoch for position, _ in steps}
    assert len(epochs) > 1
    position = steps[7][0]
    later = batches(store, segmentation=segmentation, start_epoch=position.epoch, start_step=position.step, **BUDGETS)
    for (_, wanted), (_, found) in zip(steps[8:], later, strict=False):
        assert [batch.source_BS.tolist() for batch in found] == [batch.source_BS.tolist() for batch in wanted]
        assert [batch.target_out_BT.tolist() for batch in found] == [batch.target_out_BT.tolist() for batch in wanted]


def test_a_step_holds_what_is_drawn_for_its_pairs_in_its_epoch(tokenizers, store):
    segmentation = segmentation_of(tokenizers)
    found = batches(store, segmentation=segmentation, **BUDGETS)
    for epoch in range(3):
        for rows in plan_epoch(store, epoch=epoch, **BUDGETS):
            wanted = [collate(store, few, segmentation=segmentation, epoch=epoch).source_BS.tolist() for few in rows]
            assert [batch.source_BS.tolist() for batch in next(found)[1]] == wanted


def test_several_processes_together_see_what_one_sees(tokenizers, store):
    segmentation = segmentation_of(tokenizers)
    (_, wanted), *_ = islice(batches(store, segmentation=segmentation, **BUDGETS), 1)
    shares = [
        next(batches(store, segmentation=segmentation, rank=rank, world_size=3, **BUDGETS))[1] for rank in range(3)
    ]
    together = [shares[number % 3][number // 3] for number in range(len(wanted))]
    assert [batch.source_BS.tolist() for batch in together] == [batch.source_BS.tolist() for batch in wanted]


@pytest.mark.parametrize(
    "limits", [("data.max_tokens=19",), ("model.positions=learned", "model.max_positions=19"), ("data.max_tokens=18",)]
)
def test_no_sentence_gets_longer_than_the_model_may_take(texts, tokenizers, store, limits):
    longest = int(limits[-1].split("=")[1])
    drawn = segmentation_of(tokenizers, *limits).draw(store, np.arange(PAIRS), epoch=0)
    free = segmentation_of(tokenizers).draw(store, np.arange(PAIRS), epoch=0)
    for side, unlimited, lengths in zip(drawn, free, (store.source_lengths, store.target_lengths), strict=True):
        assert lengths.max() + 1 <= longest < np.diff(unlimited.offsets).max() + 1
        assert np.diff(side.offsets).max() + 1 <= longest


@pytest.mark.parametrize("model", ["wordpiece", "unigram"])
def test_dropout_with_a_vocabulary_without_merges_is_an_error_before_anything_is_read(model):
    with pytest.raises(ConfigError, match=rf"bpe_dropout is 0\.3 and model is {model}.*set text\.model to bpe"):
        config_of(f"text.model={model}")


def test_word_dropout_makes_source_tokens_unknown_anew_in_every_epoch_and_leaves_targets(tokenizers, store):
    segmentation = segmentation_of(tokenizers, "text.bpe_dropout=0", "text.word_dropout=0.2")
    rows = np.arange(PAIRS)
    plain = collate(store, rows)
    drawn, again, later = (collate(store, rows, segmentation=segmentation, epoch=epoch) for epoch in (2, 2, 3))
    assert (drawn.source_BS == again.source_BS).all()
    assert (drawn.source_BS != later.source_BS).any()
    assert (drawn.target_out_BT == plain.target_out_BT).all()
    changed = drawn.source_BS != plain.source_BS
    assert (drawn.source_BS[changed] == UNK_ID).all()
    real = plain.source_BS > EOS_ID
    assert not (changed & ~real).any()
    share = changed.sum().item() / real.sum().item()
    assert abs(share - 0.2) < 4 * (0.2 * 0.8 / real.sum().item()) ** 0.5


def test_word_dropout_never_touches_tags():
    tagged = learn_bpe(WORDS, vocab_size=293, tags=["en"])
    segmentation = segmentation_of((tagged, tagged), "text.bpe_dropout=0", "text.word_dropout=0.9")
    ids = np.asarray([tagged.tag_id("en"), 7, 8, 9, 10, 11], np.uint32)
    alone = SimpleNamespace(
        source_ids=ids, source_offsets=np.asarray([0, 6]), target_ids=ids, target_offsets=np.asarray([0, 6])
    )
    for epoch in range(5):
        source, _ = segmentation.draw(alone, np.asarray([0]), epoch=epoch)
        assert source.lists()[0][0] == tagged.tag_id("en")
