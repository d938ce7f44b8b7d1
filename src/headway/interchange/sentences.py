"""Sentences to compare two models by, where nobody gives any: of the run, or made of the vocabulary."""

import random
from pathlib import Path

from headway.corpus.lines import read_lines
from headway.data.prepared import read_prepared
from headway.folder.contents import TRAINING_FOLDER, ModelFolder
from headway.text.reserved import CONTROL_TOKENS

_LONGEST = 23  # tokens of a made sentence


def find_sentences(folder: ModelFolder, count: int) -> tuple[list[str], str]:
    """At most ``count`` source sentences, and where they are from: the run's validation text, else the vocabulary.

    What is made is nonsense that a model was never trained on, the same every time.
    """
    prepared = read_prepared(folder.path / TRAINING_FOLDER / "data")
    if prepared is not None:
        sentences = [text for text in prepared.texts("validation")[0] if text.strip()]
        if sentences:
            return sentences[:count], "the run's validation text"
    return make_sentences(folder, count), "made of the vocabulary"


def make_sentences(folder: ModelFolder, count: int) -> list[str]:
    """Sentences of random tokens, by a fixed seed."""
    tokenizer = folder.source_tokenizer
    reserved = {*range(len(CONTROL_TOKENS)), *tokenizer.tags.values()}
    words = [token_id for token_id in range(tokenizer.vocab_size) if token_id not in reserved]
    longest = max(min(_LONGEST, folder.config.max_source_tokens - 1), 1)
    generator = random.Random(1)
    made: list[str] = []
    for _ in range(count):
        ids = [generator.choice(words) for _ in range(generator.randint(1, longest))]
        text = " ".join(tokenizer.decode(ids).replace("\N{REPLACEMENT CHARACTER}", "").split())
        made.append(text or "a")
    return made


def read_sentences(path: Path, count: int) -> list[str]:
    """The first ``count`` lines of a file that are not blank."""
    found: list[str] = []
    for line in read_lines(path):
        if line.strip():
            found.append(line)
        if len(found) == count:
            break
    return found
