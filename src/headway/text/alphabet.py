"""What a vocabulary is learnt over: runs of text that no token crosses, bytes or characters, and reserved names."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from headway.errors import TextError
from headway.text.reserved import CONTROL_TOKENS, tag_tokens
from headway.text.runs import RUNS, outside
from headway.text.tokenizer import Tokenizer, byte_characters, check_encodable

if TYPE_CHECKING:
    from tokenizers.models import Model
    from tokenizers.pre_tokenizers import PreTokenizer


def run_splitter() -> "PreTokenizer":
    """Return the library's step from text to runs of characters."""
    from tokenizers import Regex, pre_tokenizers  # noqa: PLC0415 - importing this room must be instant

    return pre_tokenizers.Split(Regex(RUNS), "isolated")


class Alphabet:
    """The symbols that a learner starts from, and the reserved tokens that come before what it learns.

    With ``byte_fallback`` the symbols are the 256 bytes; without it, the characters of the texts, which are gathered
    while ``spaced`` hands the texts on.
    """

    def __init__(self, *, byte_fallback: bool, tags: Sequence[str] = ()) -> None:
        self.byte_fallback = byte_fallback
        self.reserved = (*CONTROL_TOKENS, *tag_tokens(tags))
        self._characters = {" "} if byte_fallback else set[str]()

    @property
    def symbols(self) -> list[str]:
        """The symbols as a vocabulary writes them, in order."""
        return list(byte_characters()) if self.byte_fallback else sorted(self._characters)

    def check_size(self, vocab_size: int, *, finished: bool) -> None:
        """Raise TextError, with the minimum, if the symbols do not fit; characters are known when ``finished``."""
        if not self.byte_fallback and not finished:
            return
        count = len(self.symbols)
        minimum = len(self.reserved) + count
        if vocab_size < minimum:
            num_tags = len(self.reserved) - len(CONTROL_TOKENS)
            tags = f", {num_tags} tags" if num_tags else ""
            symbols = f"{count} bytes" if self.byte_fallback else f"{count} different characters"
            raise TextError(
                f"text/alphabet: vocabulary of {vocab_size} tokens is too small; the minimum is {minimum}: "
                f"{len(CONTROL_TOKENS)} control tokens{tags} and {symbols}. Remedy: set model.vocab_size to {minimum} "
                "or more."
            )

    def spaced(self, texts: Iterable[str]) -> Iterator[str]:
        """Each text that is not empty, after one space if the alphabet has a space; the alphabet grows on the way.

        Texts are held back until the first space is seen, so texts without any space get none.
        """
        characters, held = self._characters, list[str]()
        for text in texts:
            check_encodable(text)
            if " " not in characters:
                characters.update(text)
                held.append(text)
                continue
            yield from (f" {earlier}" for earlier in held if earlier)
            held.clear()
            if not self.byte_fallback:
                characters.update(text)
            if text:
                yield f" {text}"
        prefix = " " if " " in characters else ""
        yield from (f"{prefix}{earlier}" for earlier in held if earlier)

    def runs(self, *, isolate_unknown: bool = False) -> "PreTokenizer":
        """The library's step from text to runs; then to bytes, if symbols are bytes.

        ``isolate_unknown`` makes each character outside the alphabet a run of its own, for models that would lose the
        whole run with it.
        """
        from tokenizers import Regex, pre_tokenizers  # noqa: PLC0415 - importing this room must be instant

        steps = [run_splitter()]
        if self.byte_fallback:
            steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
        elif isolate_unknown:
            steps.append(pre_tokenizers.Split(Regex(outside(self._characters)), "isolated"))
        return steps[0] if len(steps) == 1 else pre_tokenizers.Sequence(steps)

    def assemble(self, model: "Model", *, isolate_unknown: bool = False) -> Tokenizer:
        """Put a model of the library between what prepares text and what undoes it."""
        import tokenizers  # noqa: PLC0415 - importing this room must be instant
        from tokenizers import decoders  # noqa: PLC0415 - the same

        inner = tokenizers.Tokenizer(model)
        inner.pre_tokenizer = self.runs(isolate_unknown=isolate_unknown)
        join = decoders.ByteLevel() if self.byte_fallback else decoders.Fuse()
        if " " in self._characters:
            inner.normalizer = tokenizers.normalizers.Prepend(" ")
            inner.decoder = decoders.Sequence([join, decoders.Strip(" ", 1, 0)])
        else:
            inner.decoder = join
        return Tokenizer(inner)
