"""What is wrong with outputs as a whole: empty, repeating, all the same, copied, too short, too long, cut.

Thresholds were set by runs that went well: Multi30k (docs/results.md), whose first validation has BLEU 23, and the
demo. The scale is the share of the outputs; of ``length`` the logarithm of the ratio.
"""

import math

from headway.corpus.finding import percent
from headway.metrics.outputs import Shown
from headway.train.look import Look
from headway.train.trouble import Trouble

LONG_PENALTY = 1.4  # the highest that is advised: Multi30k's outputs grow by 2 % up to 1.2, and begin to loop at 2
SHORT, LONG = 0.88, 1.12  # of the references' length: no healthy run stays beyond
SHOWN_CHARACTERS = 60


def empty(look: Look) -> Trouble | None:
    """No output of a run that goes well is empty."""
    if not look.share_holds(lambda signs: signs.empty, lasting=0.01, at_once=0.1):
        return None
    share = look.signs.empty / look.signs.outputs
    text = (
        f"{look.signs.empty:,} of {look.signs.outputs:,} outputs are empty ({percent(share)}): the model ends before "
        "it begins. Look for targets that are empty or cut in the training text (headway audit); "
        f"{_longer(look)}.{_usual(look)} {_example(look, 'empty')}"
    )
    return Trouble(share, text)


def repeats(look: Look) -> Trouble | None:
    """Multi30k's outputs never loop from its first validation on, the demo's in 1 of 200."""
    if not look.share_holds(lambda signs: signs.looping, lasting=0.05, at_once=0.2):
        return None
    share, search = look.signs.looping / look.signs.outputs, look.config.search
    ways = ["train longer"] if not look.learnt else []
    if search.length_penalty > LONG_PENALTY:
        ways.append(f"set search.length_penalty = 0.6 (it is {search.length_penalty:g})")
    ways.append("look for training targets that repeat themselves (headway audit)")
    if not search.no_repeat_ngram:
        ways.append("search.no_repeat_ngram = 4 hides it")
    text = (
        f"{look.signs.looping:,} of {look.signs.outputs:,} outputs repeat the same words over and over "
        f"({percent(share)}): {'; '.join(ways)}.{_usual(look)} {_example(look, 'looping')}"
    )
    return Trouble(share, text)


def same_output(look: Look) -> Trouble | None:
    """An output is the same for sources whose references differ."""
    if not look.share_holds(lambda signs: signs.same, lasting=0.05, at_once=0.2):
        return None
    share = look.signs.same / look.signs.outputs
    text = (
        f"one output answers {look.signs.same:,} of {look.signs.outputs:,} sources whose references differ "
        f"({percent(share)}): the model does not read the source. Look whether source and target lines belong "
        f"together, and for one target that stands for everything (headway audit).{_usual(look)} "
        f"{_example(look, 'same')}"
    )
    return Trouble(share, text)


def copies(look: Look) -> Trouble | None:
    """An output is a copy where its reference is none, so names and numbers do not count. Multi30k has none."""
    if not look.share_holds(lambda signs: signs.copied, lasting=0.05, at_once=0.2):
        return None
    share = look.signs.copied / look.signs.outputs
    text = (
        f"{look.signs.copied:,} of {look.signs.outputs:,} outputs copy the source ({percent(share)}) where the "
        "reference does not: the training text has untranslated targets. Let headway audit count them (copy, "
        f"near-copy, language) and remove them; clean.drop_identical = true drops exact ones.{_usual(look)} "
        f"{_example(look, 'copied')}"
    )
    return Trouble(share, text)


def length(look: Look) -> Trouble | None:
    """Multi30k's outputs have 0.94 to 0.96 of their references' tokens, the demo's 0.90 at first and 1.0 in the end."""
    ratio = look.signs.length_ratio
    short = look.holds(lambda signs: -signs.length_ratio, lasting=-SHORT, at_once=-0.6)
    long = look.holds(lambda signs: signs.length_ratio, lasting=LONG, at_once=1.6)
    if not short and not long:
        return None
    seen = f"outputs have {percent(ratio)} of the length of their references"
    if short:
        text = f"{seen}: {_longer(look)}; look for cut targets in the training text (headway audit).{_usual(look)}"
    else:
        text = (
            f"{seen}: {_shorter(look)}; look for loops and for targets that say more than their sources.{_usual(look)}"
        )
    return Trouble(abs(math.log(max(ratio, 1e-3))), text)


def cut(look: Look) -> Trouble | None:
    """No output of Multi30k or the demo reaches the limit of source + 50 tokens."""
    if not look.share_holds(lambda signs: signs.cut, lasting=0.02, at_once=0.2):
        return None
    share, extra = look.signs.cut / look.signs.outputs, look.config.search.max_extra_tokens
    text = (
        f"{look.signs.cut:,} of {look.signs.outputs:,} outputs were cut at the length limit ({percent(share)}), which "
        f"is the source's tokens and search.max_extra_tokens = {extra}: raise it to {2 * max(extra, 25)} if the target "
        f"language needs so many; else the outputs do not end, as looping ones do not.{_usual(look)}"
    )
    return Trouble(share, text)


def _longer(look: Look) -> str:
    search = look.config.search
    if search.beam_size == 1:
        return "search.beam_size is 1, so search.length_penalty does nothing: set it to 4"
    if search.length_penalty >= LONG_PENALTY:
        return f"search.length_penalty is {search.length_penalty:g} already, and more makes outputs loop"
    wanted = min(search.length_penalty + 0.6, LONG_PENALTY)
    return (
        f"set search.length_penalty = {wanted:g} (it is {search.length_penalty:g}; 0.6 more makes outputs some 2 % "
        f"longer, and above {LONG_PENALTY} they begin to loop)"
    )


def _shorter(look: Look) -> str:
    search = look.config.search
    if search.beam_size == 1 or search.length_penalty == 0:
        return "search.length_penalty does nothing here (a beam of 1, or a penalty of 0)"
    wanted = max(search.length_penalty - 0.6, 0.0)
    return f"set search.length_penalty = {wanted:g} (it is {search.length_penalty:g})"


def _usual(look: Look) -> str:
    """What to say of a model that has learnt little."""
    if look.learnt:
        return ""
    return f" The model has learnt little yet (perplexity {math.exp(min(look.signs.nll, 700)):,.0f}): that first."


def _example(look: Look, name: str) -> str:
    return quoted(look.counts.shown[name])


def quoted(shown: Shown) -> str:
    """An output with its reference and source, each in quotes and not too long."""
    return f"Output {_clipped(shown.output)}, reference {_clipped(shown.reference)}, source {_clipped(shown.source)}"


def _clipped(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…")
