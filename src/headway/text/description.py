"""What the JSON of a tokenizer says, checked before the `tokenizers` library sees it.

The file may come from anywhere, and the library trusts it: some values make it panic, others make it drop text, find
control tokens in text or search for ever. So only what Headway writes passes, and what stands for a SentencePiece
model.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from headway.errors import TextError
from headway.text.reserved import CONTROL_TOKENS, IMPORTED_CONTROL_TOKENS, UNK_ID, tag_name
from headway.text.runs import BYTES_OF_TEXT, finds_runs, finds_symbols

LONGEST_WORD = 1 << 20  # symbols; WordPiece makes a longer word one UNK, and no run of text comes near it
LARGEST_SCORE = 1e6
WORD_MARK = "\N{LOWER ONE EIGHTH BLOCK}"  # SentencePiece's sign for a space

Values = Mapping[str, object]

# What must stand there for text to survive: nothing looked for in text, cut, padded or changed.
LAYOUT: dict[str, tuple[object, ...]] = {
    "added_tokens": ([],),
    "truncation": (None,),
    "padding": (None,),
    "post_processor": (None,),
}
NORMALIZERS: tuple[object, ...] = (None, {"type": "Prepend", "prepend": " "})
MODELS: dict[str, dict[str, object]] = {
    "BPE": {
        "dropout": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
    },
    "WordPiece": {"continuing_subword_prefix": "", "max_input_chars_per_word": LONGEST_WORD},
    "Unigram": {"byte_fallback": False},
    "WordLevel": {},
}
IMPORTED_MODELS: dict[str, dict[str, object]] = {
    "BPE": {key: MODELS["BPE"][key] for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix")},
    "Unigram": {},
}
IMPORTED_NORMALIZERS = ("Precompiled", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Lowercase", "Strip", "Prepend", "Replace")
IMPORTED_PATTERNS = (" {2,}", " +", r"\s+", r"[\n\r\t]")  # quick on any text


@dataclass(frozen=True, slots=True)
class Description:
    """What Headway needs to know of a tokenizer; ``model`` is bpe, wordpiece, unigram or wordlevel."""

    model: str
    names: list[str]
    byte_level: bool
    leading_space: bool
    imported: bool
    values: Values
    charsmap: str = ""  # in base64, of an imported model


def describe(text: str) -> Description:
    """Check the JSON of a tokenizer; raises TextError, saying what was found and wanted, when it will not do."""
    try:
        values: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TextError(
            f"text/description: tokenizer JSON cannot be read: {error}. Remedy: copy the model folder again."
        ) from error
    if not isinstance(values, dict):
        raise foreign("no tokenizer", "an object")
    for part, wanted in LAYOUT.items():
        _check(part, values.get(part), wanted)
    steps = _steps(values.get("pre_tokenizer"), "pretokenizers")
    metaspace = next((step for step in steps if step.get("type") == "Metaspace"), None)
    byte_level = BYTES_OF_TEXT in steps
    model = values.get("model")
    kind = model.get("type") if isinstance(model, dict) else None
    if not isinstance(model, dict) or not isinstance(kind, str) or kind not in MODELS:
        raise foreign(f"a {kind} model", " or ".join(MODELS))
    names = _names(model)
    _check_model(model, kind, names, byte_level=byte_level, imported=metaspace is not None)
    if metaspace is None:
        is_closed = kind == "WordLevel"
        _check("normalizer", values.get("normalizer"), NORMALIZERS[is_closed:])
        if not (finds_symbols(steps) if is_closed else finds_runs(steps, byte_level=byte_level)):
            raise foreign("other steps from text to runs", "Headway's")
        return Description(kind.lower(), names, byte_level, values.get("normalizer") is not None, False, values)
    normalizers = _steps(values.get("normalizer"), "normalizers")
    _check_imported(steps, normalizers)
    leading_space = metaspace.get("prepend_scheme", "always") != "never"
    return Description(kind.lower(), names, False, leading_space, True, values, _charsmap(normalizers))


def without_charsmap(values: Values) -> Values:
    """The same tokenizer, but its table of characters is left to ``headway.text.charsmap``."""
    kept = [step for step in _steps(values.get("normalizer"), "normalizers") if step.get("type") != "Precompiled"]
    return {**values, "normalizer": {"type": "Sequence", "normalizers": kept} if kept else None}


def foreign(found: str, wanted: str) -> TextError:
    """Make the error of a tokenizer that is not Headway's."""
    return TextError(
        f"text/description: tokenizer JSON was not written by Headway: found {found}, wanted {wanted}. "
        "Remedy: use the tokenizer of a Headway model folder."
    )


def _check(name: str, found: object, wanted: tuple[object, ...]) -> None:
    if not any(found == value and type(found) is type(value) for value in wanted):  # 0 is not False
        raise foreign(f"{name} {str(found)[:100]}", " or ".join(map(str, wanted)))


def _steps(values: object, inner: str) -> list[dict[str, object]]:
    """Return the steps of a pre-tokenizer or normalizer, of which a sequence has several."""
    if not isinstance(values, dict):
        return []
    if values.get("type") != "Sequence":
        return [values]
    steps = values.get(inner)
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise foreign("a sequence without steps", f"{inner}")
    return [step for step in steps if isinstance(step, dict)]


def _names(model: dict[str, object]) -> list[str]:
    """Return the tokens of a model by id."""
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, list):  # Unigram: pairs of token and score
        names = [_scored(entry) for entry in vocabulary]
    elif isinstance(vocabulary, dict):
        if not set(map(type, vocabulary.values())) <= {int} or set(vocabulary.values()) != set(range(len(vocabulary))):
            raise foreign("ids with gaps or repeats", f"0 to {len(vocabulary) - 1}")
        names = sorted(vocabulary, key=vocabulary.__getitem__)
    else:
        raise foreign("no vocabulary", "tokens with their ids or scores")
    if "" in names:
        raise foreign("an empty token", "none")
    if len(set(names)) != len(names):
        raise foreign(f"{len(names) - len(set(names))} tokens twice", "each once")
    return names


def _scored(entry: object) -> str:
    if isinstance(entry, list) and len(entry) == 2:
        name, score = entry
        is_number = type(score) in (int, float)
        if isinstance(name, str) and is_number and math.isfinite(score) and abs(score) <= LARGEST_SCORE:
            return name
    raise foreign(f"{str(entry)[:100]} in a vocabulary", "a token and its score")


def _check_model(model: Values, kind: str, names: list[str], *, byte_level: bool, imported: bool) -> None:
    rules = (IMPORTED_MODELS if imported else MODELS).get(kind)
    if rules is None or isinstance(model["vocab"], list) != (kind == "Unigram"):
        raise foreign(f"a {kind} model with word marks or another kind's vocabulary", "one of SentencePiece or Headway")
    for key, value in rules.items():
        _check(f"{kind} with {key}", model.get(key), (value,))
    wanted = IMPORTED_CONTROL_TOKENS if imported else CONTROL_TOKENS
    if tuple(names[: len(wanted)]) != wanted:
        raise foreign(f"ids 0 to 3 as {tuple(name[:20] for name in names[: len(wanted)])}", f"{wanted}")
    if imported and any(tag_name(name) for name in names):
        raise foreign("a tag that text can name", "⟨ tag:NAME ⟩ with spaces")
    unknown = model.get("unk_id" if kind == "Unigram" else "unk_token")
    if unknown is None and not byte_level:
        raise foreign("no unknown token and no step from text to bytes", f"{BYTES_OF_TEXT}")
    if unknown is not None:
        _check("unknown token", unknown, (UNK_ID if kind == "Unigram" else wanted[UNK_ID],))
    if kind == "BPE":
        _check_merges(model.get("merges"), frozenset(names))


def _check_merges(merges: object, names: frozenset[str]) -> None:
    """Each merge is of two tokens and makes a third."""
    for merge in merges if isinstance(merges, list) else [merges]:
        left, right = merge if isinstance(merge, list) and len(merge) == 2 else (None, None)
        is_whole = isinstance(left, str) and isinstance(right, str)
        if not (is_whole and left in names and right in names and left + right in names):
            raise foreign(f"merge {str(merge)[:100]}", "two tokens that make a third")


def _charsmap(normalizers: list[dict[str, object]]) -> str:
    """The table of characters, which comes first."""
    tables = [place for place, step in enumerate(normalizers) if step.get("type") == "Precompiled"]
    if not tables:
        return ""
    table = normalizers[0].get("precompiled_charsmap")
    if tables != [0] or not isinstance(table, str):
        raise foreign("a Precompiled normalizer that is not the first, or has no table", "one at most, first")
    return table


def _check_imported(steps: list[dict[str, object]], normalizers: list[dict[str, object]]) -> None:
    """Refuse what is no SentencePiece model: other steps than word marks, or patterns that could take for ever."""
    for step in steps:
        if step.get("type") not in ("Metaspace", "WhitespaceSplit") or step.get("replacement", WORD_MARK) != WORD_MARK:
            raise foreign(f"step {str(step)[:100]}", f"Metaspace with {WORD_MARK}")
    for step in normalizers:
        kind, pattern = step.get("type"), step.get("pattern")
        is_known = not isinstance(pattern, dict) or pattern.get("String") or pattern.get("Regex") in IMPORTED_PATTERNS
        if kind not in IMPORTED_NORMALIZERS or not is_known:
            raise foreign(f"normalizer {str(step)[:100]}", "one of SentencePiece")
