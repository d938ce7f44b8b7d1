"""Words with tags, as text and as token ids."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import TextError
from headway.text.bpe import learn_bpe
from headway.text.bpe_dropout import BpeDropout, Sentences, pair_keys
from headway.text.reserved import tag_tokens
from headway.text.tagged_words import TaggedCoder, join_tagged, split_tagged, token_name
from headway.text.tokenizer import UNK_ID

TAGS = ["NN", "PRP$", "``", "-LRB-", ","]
CHARACTERS = st.characters(exclude_characters=" ", exclude_categories=["Cs"])
WORDS = st.lists(st.text(CHARACTERS, min_size=1, max_size=7), max_size=7)


@pytest.fixture(scope="module")
def tokenizer():
    return learn_bpe(["the house is blue"] * 3, vocab_size=307, tags=[token_name(tag) for tag in TAGS])


@given(WORDS, st.data())
def test_words_and_tags_are_joined_and_parted_without_loss(words, data):
    tags = [
        data.draw(st.text(CHARACTERS, min_size=1, max_size=3).map(lambda tag: tag.replace("_", "-"))) for _ in words
    ]
    assert split_tagged(join_tagged(words, tags)) == (words, tags)


@given(st.text(CHARACTERS, min_size=1, max_size=5), st.text(CHARACTERS, min_size=1, max_size=5))
def test_every_tag_has_a_name_of_its_own_that_a_vocabulary_can_reserve(one, other):
    assert len(tag_tokens(list({token_name(one), token_name(other)}))) == len({one, other})


@given(WORDS, st.data())
def test_a_word_has_the_tokens_that_it_has_in_a_text_and_then_its_tag(tokenizer, words, data):
    tags = [data.draw(st.sampled_from(TAGS)) for _ in words]
    text = join_tagged(words, tags)
    both, plain, alone = (
        TaggedCoder(tokenizer, words=own, tags=other).encode_batch([text])[0]
        for own, other in ((True, True), (True, False), (False, True))
    )
    ids_of_tags = [tokenizer.tag_id(token_name(tag)) for tag in tags]
    assert plain == tokenizer.encode(" ".join(words))
    assert alone == ids_of_tags
    assert [token_id for token_id in both if token_id in tokenizer.tags.values()] == ids_of_tags
    assert both == [
        token_id
        for word, tag_id in zip(words, ids_of_tags, strict=True)
        for token_id in (*tokenizer.encode(word), tag_id)
    ]
    assert tokenizer.decode(both) == " ".join(words)


def test_a_tag_that_the_vocabulary_lacks_is_unknown(tokenizer):
    coder = TaggedCoder(tokenizer, words=False, tags=True)
    assert coder.encode_batch(["a_NN b_XYZ"]) == [[tokenizer.tag_id("pos.NN"), UNK_ID]]


@pytest.mark.parametrize("text", ["the_DT dog", "_DT", "dog_", "a_b_"])
def test_a_word_without_a_tag_is_refused_with_its_place(text):
    with pytest.raises(TextError, match=r"word \d of a sentence is .*has no tag.*Remedy"):
        split_tagged(text)


@pytest.mark.parametrize(("word", "tag"), [("", "NN"), ("a b", "NN"), ("a", ""), ("a", "N_N"), ("a", "N N")])
def test_what_could_not_be_parted_again_is_refused(word, tag):
    with pytest.raises(TextError, match="tagged_words: found the word"):
        join_tagged([word], [tag])


def test_bpe_dropout_takes_words_apart_and_leaves_their_tags_in_their_places(tokenizer):
    ids = TaggedCoder(tokenizer, words=True, tags=True).encode_batch(["the_NN house_PRP$ the_NN blue_,"])[0]
    drawn = [
        BpeDropout(tokenizer, 0.5)
        .redraw(Sentences.of([ids]), pair_keys(np.array([place]), seed=1, epoch=0, side="source"))
        .lists()[0]
        for place in range(7)
    ]
    assert len({tuple(row) for row in drawn}) > 1
    for row in drawn:
        words = " ".join(map(str, row))
        for tag in tokenizer.tags.values():
            words = words.replace(f" {tag} ", f" {tag} | ")
        parts = [[int(token) for token in part.split()] for part in words.split("|")]
        assert [tokenizer.decode(part) for part in parts] == ["the", "house", "the", "blue"]
        assert [part[-1] for part in parts] == [ids[place] for place in range(len(ids)) if ids[place] < 9]
