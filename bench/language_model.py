"""A language model beside Kneser-Ney 5-grams of the same training text: perplexity per word of the same test text.

    python bench/language_model.py TRAIN TEST --model FOLDER [--order 5] [--json]

Words are what white space parts; the end of a line is one more. Nothing of the test text is left out and no word is
unknown to any of the three, so that their figures may be compared:

- the model writes words with its sub-words and the end of a line with EOS;
- the n-gram model of sub-words predicts the same tokens, their cost summed over each word;
- the n-gram model of words spells words that training text does not have twice (metrics/open_vocabulary.py).

Discounts come from training text; no model is tuned on anything here.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from headway.corpus.lines import read_lines
from headway.folder.contents import ModelFolder
from headway.metrics.kneser_ney import KneserNey
from headway.metrics.open_vocabulary import OpenVocabulary
from headway.metrics.perplexity import WordPerplexity, count_words
from headway.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer
from headway.translate.generator import Generator


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
    rows = {
        f"{given.order}-gram of words": word_perplexity(words_model(train, given.order), test, str.split),
        f"{given.order}-gram of sub-words": subword_perplexity(train, test, tokenizer=tokenizer, order=given.order),
        "language model": Generator.from_folder(given.model, "cpu").measure(test),
    }
    if given.json:
        print(json.dumps({name: row.to_dict() for name, row in rows.items()}, indent=2))
        return
    for name, row in rows.items():
        print(f"{name:22} {row.per_word:8.2f} a word of {row.num_words:,}   {row.per_token:8.2f} a token")


def words_model(train: Iterable[str], order: int) -> OpenVocabulary:
    """The n-gram model of words, those of an open vocabulary."""
    return OpenVocabulary.fit(map(str.split, train), order=order)


def subword_perplexity(
    train: Sequence[str], test: Sequence[str], *, tokenizer: Tokenizer, order: int
) -> WordPerplexity:
    """That of the n-gram model of a model's own tokens; every one of them may come next, control tokens apart."""
    reserved = {PAD_ID, BOS_ID, EOS_ID, *tokenizer.tags.values()}
    vocabulary = [str(token) for token in range(tokenizer.vocab_size) if token not in reserved]

    def tokens(line: str) -> list[str]:
        return [str(token) for token in tokenizer.encode(line)]

    model = KneserNey.fit(map(tokens, train), order=order, vocabulary=vocabulary)
    return word_perplexity(model, test, tokens)


def word_perplexity(
    model: KneserNey | OpenVocabulary, test: Sequence[str], tokens: Callable[[str], list[str]]
) -> WordPerplexity:
    """How well an n-gram model predicts lines."""
    lines = list(map(tokens, test))
    return WordPerplexity(
        -sum(map(model.log_prob, lines)),
        num_words=count_words(test),
        num_tokens=sum(len(line) + 1 for line in lines),
        num_lines=len(test),
    )


if __name__ == "__main__":
    main()
