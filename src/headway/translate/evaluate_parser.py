"""A parser measured on sentences of a treebank: its trees against theirs."""

from collections.abc import Sequence
from dataclasses import dataclass

from headway.config.schema import ParsingConfig
from headway.folder.parser_card import TagSource
from headway.metrics.parseval import ParsevalScores, score_trees
from headway.text.tagged_words import split_tagged
from headway.translate.parser import Parse, Parser
from headway.trees.linear import delinearise, style_of
from headway.trees.tree import Tree


def tag_source(parsing: ParsingConfig) -> TagSource:
    """Whence the tags of a parser's trees are: it reads them, writes them, or its symbols hide them."""
    if parsing.tags == "given":
        return "given"
    return "hidden" if style_of(parsing.style).hides_tags else "predicted"


@dataclass(frozen=True, slots=True)
class ParserEvaluation:
    """Trees with their scores, which are those with the tags of the references: punctuation is left out by its tag.

    The tagging accuracy is that of the parser's own tags, which are those of the references where ``tags`` are given:
    it read them. ``num_repaired``: outputs that were no tree over their words.
    ``num_empty``: sentences of nothing but traces, which are not scored.
    """

    trees: tuple[Tree | None, ...]
    scores: ParsevalScores
    tags: TagSource
    num_repaired: int = 0
    num_empty: int = 0
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON; the trees and the scores of single sentences are left out."""
        table = self.scores.to_dict()
        del table["sentences"]
        return table | {
            "tags": self.tags,
            "num_repaired": self.num_repaired,
            "num_empty": self.num_empty,
            "warnings": list(self.warnings),
        }


def parse_sources(parser: Parser, sources: Sequence[str], *, corpus_tags: Sequence[str] | str = "") -> list[Parse]:
    """Parse sources as prepared data have them, ``the_DT dog_NN``; their tags are given to models that read tags."""
    sentences = [split_tagged(source) for source in sources]
    return parser.parse(
        [words for words, _ in sentences],
        tags=[tags for _, tags in sentences] if parser.needs_tags else None,
        corpus_tags=corpus_tags,
    )


def evaluate_parser(
    parser: Parser, sources: Sequence[str], references: Sequence[str], *, corpus_tags: Sequence[str] | str = ""
) -> ParserEvaluation:
    """Parse the sources by the path that users take, and score the trees against those of the references' symbols.

    Raises MetricError where no sentence has words.
    """
    parses = parse_sources(parser, sources, corpus_tags=corpus_tags)
    return score_parses(parses, sources, references, parser=parser)


def score_parses(
    parses: Sequence[Parse], sources: Sequence[str], references: Sequence[str], *, parser: Parser
) -> ParserEvaluation:
    """Score what a parser made of the sources against the trees of the references' symbols.

    Raises MetricError where no sentence has words.
    """
    trees = [parse.tree for parse in parses]
    right = [_gold(reference, source, parser.parsing) for reference, source in zip(references, sources, strict=True)]
    scores = _score(trees, right, num_bootstrap=1000)
    num_repaired = sum(parse.repairs.total > 0 for parse in parses)
    warnings: list[str] = []
    if num_repaired:
        warnings.append(f"{num_repaired:,} of {len(parses):,} outputs were no trees over their words, and were mended.")
    num_unknown = sum(parse.num_unknown for parse in parses)
    if num_unknown:
        warnings.append(f"{num_unknown:,} source tokens are not in the vocabulary; the model saw UNK in their place.")
    return ParserEvaluation(
        tuple(trees),
        scores,
        tags=tag_source(parser.parsing),
        num_repaired=num_repaired,
        num_empty=len(trees) - scores.all.every_length.num_sentences,
        warnings=tuple(warnings),
    )


def f1_of_symbols(
    outputs: Sequence[str],
    references: Sequence[str],
    *,
    sources: Sequence[str],
    parsing: ParsingConfig,
    phrases: frozenset[str],
) -> float:
    """F1 of outputs as text against references as text, of all sentences with words.

    Outputs that are no trees are mended as a parser mends them whose vocabulary has these ``phrases``.
    """
    right = [_gold(reference, source, parsing) for reference, source in zip(references, sources, strict=True)]
    trees: list[Tree | None] = []
    for output, source in zip(outputs, sources, strict=True):
        words, tags = split_tagged(source)
        given = tags if parsing.tags == "given" else None
        mended = delinearise(output.split(" "), words, given, style=parsing.style, phrases=phrases) if words else None
        trees.append(None if mended is None else mended.tree)
    return _score(trees, right, num_bootstrap=0).all.every_length.f1


def _score(trees: Sequence[Tree | None], right: Sequence[Tree | None], *, num_bootstrap: int) -> ParsevalScores:
    """Score trees with the tags of the references; sentences without words, where ``right`` is None, are no part."""
    pairs = [(tree, gold) for tree, gold in zip(trees, right, strict=True) if gold is not None]
    found, wanted = [tree for tree, _ in pairs], [gold for _, gold in pairs]
    return score_trees(found, wanted, num_bootstrap=num_bootstrap, reference_tags=True)


def _gold(symbols: str, source: str, parsing: ParsingConfig) -> Tree | None:
    """The treebank's tree of a sentence, from its symbols and its words with tags; None without words."""
    words, tags = split_tagged(source)
    return delinearise(symbols.split(" "), words, tags, style=parsing.style).tree if words else None
