"""A language model beside Kneser-Ney 5-grams of the same training text: perplexity per word of the same test text.

    python bench/language_model.py TRAIN TEST --model FOLDER [--order 5] [--json]

Words are what white space parts; the end of a line is one more. Nothing of the test text is left out and no word is
unknown to any of the three, so that their figures may be compared:

- the model writes words with its sub-words and the end of a line with EOS;
- the n-gram model of sub-words predicts the same tokens, their cost summed over each word;
- the n-gram model of words spells words that training text does not have twice (metrics/open_vocabulary.py).

Discounts come from training text; no model is tuned on anything here. Differences are of nats a word, the model less an
n-gram model, on the same lines, with the 95 % interval of a bootstrap over them: below 0 the model is better.
"""

import argparse
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from headway.corpus.lines import read_lines
from headway.folder.contents import ModelFolder
from headway.metrics.bootstrap import Estimate, ratio_intervals
from headway.metrics.kneser_ney import KneserNey
from headway.metrics.open_vocabulary import OpenVocabulary
from headway.metrics.perplexity import WordPerplexity, count_words
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer
from headway.translate.generator import Generator

MODEL = "language model"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row a model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--model", type=Path, required=True, help="the folder of a language model of the same text")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    train, test = ([line for line in read_lines(path) if line.strip()] for path in (given.train, given.test))
    tokenizer = ModelFolder.open(given.model).target_tokenizer
    generator = Generator.from_folder(given.model, "cpu")
    costs = {
        f"{given.order}-gram of words": line_costs(words_model(train, given.order), map(str.split, test)),
        f"{given.order}-gram of sub-words": subword_costs(train, test, tokenizer=tokenizer, order=given.order),
        MODEL: generator.costs(test),
    }
    ids = tokenizer.encode_batch(test)
    num_words, num_tokens = count_words(test), sum(len(line) + 1 for line in ids)
    tokens = {f"{given.order}-gram of words": num_words}  # of the others those of the model
    unknown = {MODEL: sum(line.count(UNK_ID) for line in ids)}
    rows = {
        name: WordPerplexity(
            math.fsum(nats), num_words, tokens.get(name, num_tokens), len(test), num_unknown=unknown.get(name, 0)
        )
        for name, nats in costs.items()
    }
    differences = {name: difference(costs[MODEL], nats, test) for name, nats in costs.items() if name != MODEL}
    if given.json:
        told = {
            name: {"nats_a_word": each.value, "low": each.low, "high": each.high} for name, each in differences.items()
        }
        print(json.dumps({**{name: row.to_dict() for name, row in rows.items()}, "differences": told}, indent=2))
        return
    for name, row in rows.items():
        print(f"{name:22} {row.per_word:8.2f} a word of {row.num_words:,}   {row.per_token:8.2f} a token")
    for name, each in differences.items():
        ends = "" if each.low is None or each.high is None else f" [{each.low:+.3f}, {each.high:+.3f}]"
        print(f"{MODEL} less {name:20} {each.value:+.3f}{ends} nats a word")


def difference(these: Sequence[float], those: Sequence[float], lines: Sequence[str]) -> Estimate:
    """Nats a word of these less those, with its interval; costs are of the same lines."""
    words = [count_words([line]) for line in lines]
    (found,) = ratio_intervals(np.subtract([these], [those]), words)
    return found


def words_model(train: Iterable[str], order: int) -> OpenVocabulary:
    """The n-gram model of words, those of an open vocabulary."""
    return OpenVocabulary.fit(map(str.split, train), order=order)


def subword_costs(train: Sequence[str], test: Sequence[str], *, tokenizer: Tokenizer, order: int) -> list[float]:
    """Those of the n-gram model of a model's own tokens; every one of them may come next, control tokens apart."""
    reserved = {PAD_ID, BOS_ID, EOS_ID, *tokenizer.tags.values()}
    vocabulary = [str(token) for token in range(tokenizer.vocab_size) if token not in reserved]

    def tokens(line: str) -> list[str]:
        return [str(token) for token in tokenizer.encode(line)]

    model = KneserNey.fit(map(tokens, train), order=order, vocabulary=vocabulary)
    return line_costs(model, map(tokens, test))


def line_costs(model: KneserNey | OpenVocabulary, lines: Iterable[list[str]]) -> list[float]:
    """-log p (nats) of each line with its end, by an n-gram model."""
    return [-model.log_prob(line) for line in lines]


if __name__ == "__main__":
    main()
