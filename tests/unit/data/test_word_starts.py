"""Which tokens begin words, by vocabularies of sources and of trees."""

from headway.config.schema import ParsingConfig
from headway.data.word_starts import source_word_starts, target_word_starts
from headway.text.bpe import learn_bpe
from headway.text.symbols import learn_symbols
from headway.text.tagged_words import TaggedCoder, token_name

WORDS = ["the", "dog's", "(", "unheard-of", "été", "dog's"]
TAGS = ["DT", "NN", "-LRB-", "JJ", "NN", "NN"]
TAGGED = " ".join(f"{word}_{tag}" for word, tag in zip(WORDS, TAGS, strict=True))


def source():
    tags = [*(token_name(tag) for tag in dict.fromkeys(TAGS)), "news"]
    return learn_bpe(["the dog's ( ."] * 3, vocab_size=290, tags=tags)


def counts(tokenizer, **parsing):
    """How many of a sentence's tokens begin words, and whether its first does."""
    starts = set(source_word_starts(tokenizer, ParsingConfig(**parsing)))
    coder = TaggedCoder(tokenizer, words=parsing.get("words", True), tags=parsing["tags"] == "given")
    (ids,) = coder.encode_batch([TAGGED])
    begun = [token_id in starts for token_id in ids]
    return sum(begun), begun[0]


def test_each_word_of_a_source_begins_once_however_many_pieces_it_has():
    tokenizer = source()
    assert counts(tokenizer, tags="predicted") == (6, True)
    assert counts(tokenizer, tags="given") == (6, True)
    assert counts(tokenizer, tags="given", words=False) == (6, True)


def test_the_end_of_a_source_is_one_word_more_and_a_corpus_tag_is_none():
    tokenizer = source()
    for words in (True, False):
        starts = source_word_starts(tokenizer, ParsingConfig(tags="given", words=words))
        assert 3 in starts
        assert not {0, 1, 2, tokenizer.tag_id("news")} & set(starts)


def test_the_next_word_of_a_tree_begins_after_each_leaf():
    tokenizer = learn_symbols(["S NP DT NN /NP VP VBZ /VP . / /S"], vocab_size=53)
    names = [tokenizer.names[token_id].removeprefix(" ") for token_id in target_word_starts(tokenizer)]
    assert sorted(names[1:]) == [".", "/", "DT", "NN", "VBZ"]
    assert target_word_starts(tokenizer)[0] == 2
