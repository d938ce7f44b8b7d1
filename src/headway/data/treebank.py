"""Trees as pairs: a sentence with its tags is the source, and its tree as a row of symbols is the target."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from headway.config.schema import ParsingConfig
from headway.corpus.lines import name_of
from headway.corpus.pair import SentencePair
from headway.errors import DataError, TextError
from headway.text.tagged_words import TaggedCoder, join_tagged, split_tagged, token_name
from headway.text.tokenizer import Tokenizer
from headway.trees.brackets import read_trees
from headway.trees.linear import HIDDEN, linearise
from headway.trees.strip import strip
from headway.trees.tree import Tree, with_tags


def read_treebank(path: Path | str, parsing: ParsingConfig) -> Iterator[SentencePair]:
    """Yield a pair a tree: ``the_DT dog_NN`` and the tree's symbols, whose words it has not. Lines count trees.

    The tags are in every source, whether the model reads them or not: scores of trees hang on them. Raises TreeError
    and CorpusError as ``read_trees`` does, DataError for a tag that cannot stand beside its word.
    """
    for number, tree in enumerate(read_trees(path), 1):
        yield pair_of(tree, parsing, number=number, name=name_of(path))


def pair_of(tree: Tree, parsing: ParsingConfig, *, number: int, name: str) -> SentencePair:
    """One tree as a pair; a word without a tag of its own gets XX. Without words both sides are empty.

    Raises DataError for a tag that cannot stand beside its word.
    """
    stripped = plain_tree(tree, parsing)
    if stripped is None:
        return SentencePair("", "", number)  # nothing but traces: cleaning counts it
    tags = [tag or HIDDEN for tag in stripped.tags()]
    try:
        source = join_tagged(stripped.words(), tags)
    except TextError as error:
        raise DataError(f"data/treebank: {name}, tree {number:,}: {error}") from error
    return SentencePair(source, " ".join(linearise(with_tags(stripped, tags), style=parsing.style)), number)


def plain_tree(tree: Tree, parsing: ParsingConfig) -> Tree | None:
    """A tree as such a model reads it, without what its recipe strips; None when no word is left."""
    return strip(tree, functions=parsing.functions == "strip", traces=parsing.traces == "strip")


def source_coder(tokenizer: Tokenizer, parsing: ParsingConfig) -> TaggedCoder:
    """What turns sentences with tags into ids, for the sources of such a model."""
    return TaggedCoder(tokenizer, words=parsing.words, tags=parsing.tags == "given")


def token_names(sources: Iterable[str], parsing: ParsingConfig) -> list[str]:
    """The tokens to reserve for the tags of these sources, in order of the alphabet; none where tags are not read."""
    if parsing.tags != "given":
        return []
    return sorted({token_name(tag) for source in sources for tag in split_tagged(source)[1]})


def plain_words(sources: Iterable[str]) -> Iterator[str]:
    """The sentences without their tags."""
    return (" ".join(split_tagged(source)[0]) for source in sources)
