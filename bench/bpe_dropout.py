"""How many words and tokens a second BPE-dropout takes apart on one core, and how much longer sentences get.

    python bench/bpe_dropout.py FILE [FILE ...] [--vocab-size 8000]

A line of a file is a sentence; the vocabulary is learnt from all, and the first 800 of each file are drawn anew.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from headway.corpus.lines import read_lines
from headway.text.bpe import learn_bpe
from headway.text.bpe_dropout import BpeDropout, Sentences, pair_keys

SENTENCES, ROUNDS = 800, 20


def main() -> None:
    """Print one line a file and probability."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--vocab-size", type=int, default=8000)
    arguments = parser.parse_args()
    texts = {path: list(read_lines(path)) for path in arguments.files}
    tokenizer = learn_bpe((text for lines in texts.values() for text in lines), vocab_size=arguments.vocab_size)
    for path, lines in texts.items():
        some = lines[:SENTENCES]
        words = sum(len(text.split()) for text in some)
        sentences = Sentences.of(tokenizer.encode_batch(some))
        for probability in (0.05, 0.1, 0.2, 0.5):
            dropout = BpeDropout.from_tokenizer(tokenizer, probability)
            begin, tokens = time.process_time(), 0
            for epoch in range(ROUNDS):
                keys = pair_keys(np.arange(len(some)), seed=1, epoch=epoch, side="source")
                tokens += len(dropout.redraw(sentences, keys).ids_N)
            seconds = (time.process_time() - begin) / ROUNDS
            longer = tokens / ROUNDS / len(sentences.ids_N)
            print(
                f"{path.name} p={probability}: {words / seconds:,.0f} words/s, {len(sentences.ids_N) / seconds:,.0f} "
                f"stored tokens/s, {seconds * 1000:.1f} ms for {words:,} words; {longer:.2f} times as many tokens"
            )


if __name__ == "__main__":
    main()
