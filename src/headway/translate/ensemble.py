"""Whether model folders can translate together: one vocabulary on each side, one pair of languages."""

from collections.abc import Sequence

from headway.errors import TranslationError
from headway.folder.contents import ModelFolder
from headway.text.tokenizer import Tokenizer


def check_alike(folders: Sequence[ModelFolder]) -> None:
    """Raise TranslationError for the first folder that does not fit the first of all, naming what differs.

    Sizes, parts and training may differ. Source tokenizers must be equal too: every model reads the same token ids.
    """
    first = folders[0]
    for folder in folders[1:]:
        sides = {
            "source tokenizer": (first.source_tokenizer, folder.source_tokenizer),
            "target tokenizer": (first.target_tokenizer, folder.target_tokenizer),
        }
        for name, (one, other) in sides.items():
            if one is not other and one.to_json() != other.to_json():
                raise _unlike(folder, first, f"another {name}", _difference(one, other))
        for name in ("source_language", "target_language"):
            one, other = getattr(first.config, name), getattr(folder.config, name)
            if one != other:
                raise _unlike(folder, first, f"another {name.replace('_', ' ')}", f"{other!r} against {one!r}")


def _difference(one: Tokenizer, other: Tokenizer) -> str:
    """Where two tokenizers part."""
    if one.vocab_size != other.vocab_size:
        return f"{other.vocab_size:,} tokens against {one.vocab_size:,}"
    for token_id, (name, other_name) in enumerate(zip(*_names(one, other), strict=True)):
        if name != other_name:
            return f"token {token_id} is {other_name!r} against {name!r}"
    return "the same tokens, joined by other rules"


def _names(*tokenizers: Tokenizer) -> list[list[str]]:
    """The tokens of each, as they are shown."""
    return [tokenizer.tokens(range(tokenizer.vocab_size)) for tokenizer in tokenizers]


def _unlike(folder: ModelFolder, first: ModelFolder, what: str, how: str) -> TranslationError:
    return TranslationError(
        f"translate/ensemble: {folder.path} has {what} than {first.path}: {how}. Models translate together when their "
        "vocabularies and languages are the same: train them on the same prepared data, or leave this one out."
    )
