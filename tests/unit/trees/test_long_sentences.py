"""A sentence of 307 words goes all the way: file, symbols, tree, score and drawing."""

from headway.metrics.evalb_parameters import Parameters
from headway.metrics.parseval import score_trees
from headway.trees.brackets import read_trees, write_trees
from headway.trees.draw import draw_svg, draw_text
from headway.trees.linear import STYLES, delinearise, linearise
from headway.trees.tree import Tree

NUM_WORDS = 307


def sentence():
    """Nouns with articles, joined by verbs, each clause within the one before."""
    rest = Tree("NP", (Tree("NN", ("end",)),))
    for number in range((NUM_WORDS - 1) // 3):
        noun = Tree("NP", (Tree("DT", ("the",)), Tree("NN", (f"noun{number}",))))
        rest = Tree("S", (noun, Tree("VP", (Tree("VBZ", ("is",)), rest))))
    return Tree("TOP", (rest,))


def test_a_sentence_of_307_words_goes_all_the_way(tmp_path):
    tree = sentence()
    assert len(tree.words()) == NUM_WORDS
    write_trees(tmp_path / "one.trees", [tree], pretty=True)
    (read,) = read_trees(tmp_path / "one.trees")
    for style in STYLES:
        symbols = linearise(read, style=style)
        result = delinearise(symbols, read.words(), read.tags(), style=style)
        assert (result.tree, result.repairs.total) == (tree, 0)
        cut = delinearise(symbols[: len(symbols) // 2], read.words(), read.tags(), style=style)
        assert (cut.tree.words(), cut.tree.tags()) == (tree.words(), tree.tags())
    scores = score_trees([read], [tree], parameters=Parameters(delete_labels=("TOP",)))
    # Each clause has three phrases, the last noun one more; one sentence leaves nothing to resample.
    assert (scores.all.every_length.matched_brackets, scores.all.every_length.f1) == (NUM_WORDS, 100.0)
    assert scores.all.up_to_cutoff.num_sentences == 0
    assert scores.all.up_to_cutoff.f1_interval is None
    assert draw_text(read).count("noun") == (NUM_WORDS - 1) // 3
    assert draw_svg(read).count('class="word"') == NUM_WORDS
