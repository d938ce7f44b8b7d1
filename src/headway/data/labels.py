"""The labels of texts as target ids: a label is one token of its own vocabulary, behind the control tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headway.data.corpora import TrainingText
from headway.data.encoder import Ragged
from headway.errors import DataError
from headway.text.tokenizer import CONTROL_TOKENS, UNK_ID

FIRST_LABEL = len(CONTROL_TOKENS)
MOST_LABELS = 1000


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels that training text has, in the order of their ids, from FIRST_LABEL."""

    names: tuple[str, ...]

    @property
    def size(self) -> int:
        """Ids there are, control tokens counted."""
        return FIRST_LABEL + len(self.names)

    def encode(self, texts: Sequence[str]) -> Ragged:
        """One id a label; white space around one does not count. Raises DataError for a label that was not trained."""
        known = {name: FIRST_LABEL + place for place, name in enumerate(self.names)}
        ids = [known.get(text.strip(), UNK_ID if not text.strip() else -1) for text in texts]
        if -1 in ids:
            named = ", ".join(map(repr, self.names[:10]))
            raise DataError(
                f"data/labels: found the label {texts[ids.index(-1)].strip()!r}, which the training text lacks; it has "
                f"{named}. Mend that label, or train on texts that have it."
            )
        return Ragged(np.asarray(ids, np.uint32), np.ones(len(ids), np.int64))


def find_labels(text: TrainingText) -> Labels:
    """Those of the training text, by the alphabet. Raises DataError where there is one only, or more than allowed."""
    found = {target.strip() for _, block in text.blocks(text.training) for target in block.targets}
    if not 1 < len(found) <= MOST_LABELS:
        some = ", ".join(repr(name[:40]) for name in sorted(found)[:3])
        raise DataError(
            f"data/labels: the training text has {len(found):,} different label(s) ({some} ...); wanted 2 to "
            f"{MOST_LABELS:,}. Set data.target_field to the column of labels and data.source_field to that of texts."
        )
    return Labels(tuple(sorted(found)))
