"""Sentences to compare two models by, where nobody gives any: of the run, or made of the vocabulary."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.corpus.lines import read_lines
from headway.data.prepared import read_prepared
from headway.folder.contents import TRAINING_FOLDER, ModelFolder
from headway.interchange.verification import Ids
from headway.text.reserved import CONTROL_TOKENS, EOS_ID

_LONGEST = 23  # tokens of a made sentence


@dataclass(frozen=True, slots=True)
class Comparable:
    """Sentences that a model can read: their texts, and their ids with EOS. Others are counted, and said."""

    texts: list[str]
    sources: list[Ids]
    left_out: int

    @property
    def notices(self) -> tuple[str, ...]:
        """What a user must hear."""
        if not self.left_out:
            return ()
        return (f"{self.left_out:,} sentences are blank or longer than the model takes, and were not compared",)


def comparable(folder: ModelFolder, sentences: Sequence[str]) -> Comparable:
    """The sentences that are not blank and not too long for the model."""
    texts = [text for sentence in sentences if (text := sentence.strip())]
    encoded = folder.source_tokenizer.encode_batch(texts)
    model, longest = folder.config.model, folder.config.max_source_tokens
    if model.positions == "learned":
        longest = min(longest, model.max_positions)
    kept = [place for place, ids in enumerate(encoded) if len(ids) < longest]
    sources = [(*encoded[place], EOS_ID) for place in kept]
    return Comparable([texts[place] for place in kept], sources, len(sentences) - len(kept))


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
