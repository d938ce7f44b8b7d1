"""Scores that do not say how good the outputs are: texts written in two ways, or a BLEU that cannot be right."""

from headway.corpus.finding import percent
from headway.metrics.outputs import Shown
from headway.metrics.writing import Mismatch
from headway.train.look import Look
from headway.train.output_faults import LONG, SHORT, cut, empty, length, quoted, repeats
from headway.train.trouble import Trouble
from headway.train.validate import Seen

LEAST_EXPECTED = 10.0  # BLEU under which accuracy lets expect too little to tell
SHORTFALL, GRAVE_SHORTFALL = 4.0, 10.0  # times BLEU: the rest of its faults never bring it down to a quarter


def scores(look: Look) -> Trouble | None:
    """Outputs are written otherwise than references, or BLEU is under a quarter of what the accuracy lets expect."""
    if look.mismatch is not None and look.holds(lambda signs: signs.mismatch, lasting=0.01, at_once=0.01):
        text = (
            f"{_described(look.mismatch)}: BLEU ({look.bleu:.1f}) counts this as errors, or cannot be compared "
            "with other scores. Give training and validation text in the same form, the plain one. "
            f"{quoted(_most_alike(look.seen))}"
        )
        return Trouble(1.0, text)
    if not look.holds(lambda signs: signs.bleu_shortfall, lasting=SHORTFALL, at_once=GRAVE_SHORTFALL):
        return None
    if _is_explained(look):
        return None
    text = (
        f"BLEU is {look.bleu:.1f}, but {percent(look.signs.token_accuracy)} of the validation tokens are "
        f"predicted right, which lets expect {look.expected_bleu:.0f} or more: {_cause(look)}. "
        f"{quoted(_most_alike(look.seen))}"
    )
    return Trouble(1.0, text)


def shortfall(bleu: float, expected: float) -> float:
    """How many times BLEU is expected; 0 where too little is expected to tell."""
    return 0.0 if expected < LEAST_EXPECTED else expected / max(bleu, 0.1)


def _is_explained(look: Look) -> bool:
    """Whether another kind tells the cause; a length that characters do not confirm is one of dividing into words."""
    if any(find(look) is not None for find in (empty, repeats, cut)):
        return True
    ratio = look.counts.num_characters / max(look.counts.num_reference_characters, 1)
    return length(look) is not None and not SHORT < ratio < LONG


def _cause(look: Look) -> str:
    """Why BLEU is lower than the accuracy of tokens, and what to do."""
    if look.words < 4:
        return (
            f"a reference has {look.words:.1f} words on average as BLEU counts them, and BLEU needs runs of 4: set "
            'train.best_by = "chrf", or evaluate.tokenize where words have no spaces between them (zh, char)'
        )
    if look.chrf >= 40:
        return (
            f"chrF, which counts characters without spaces, is {look.chrf:.1f}: outputs and references are "
            "divided into words otherwise. Set evaluate.tokenize, or give validation references as plain text"
        )
    return (
        "the search loses what the model knows: try search.beam_size = 1, no search.no_repeat_ngram and "
        "search.length_penalty = 0.6"
    )


def _described(found: Mismatch) -> str:
    return (
        f"{found.name}: in {found.references:,} of {found.num_references:,} references and in {found.outputs:,} of "
        f"{found.num_outputs:,} outputs"
    )


def _most_alike(seen: Seen) -> Shown:
    """The pair that shows best how an output and its reference differ: equal letters, or the first one."""

    def letters(text: str) -> str:
        return "".join(filter(str.isalnum, text.casefold()))

    triples = list(zip(seen.sources, seen.references, seen.translations, strict=True))
    alike = [triple for triple in triples if triple[1] != triple[2] and letters(triple[1]) == letters(triple[2])]
    return Shown(*(alike or triples)[0])
