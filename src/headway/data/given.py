"""A vocabulary that a run takes over from an earlier model, as it is or with new tokens at its end."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from headway.errors import DataError
from headway.text.extend import extend_tokenizer
from headway.text.tokenizer import Tokenizer

Texts = Callable[[Sequence[str]], Iterable[str]]  # the sampled texts of some sides ("sources", "targets")


@dataclass(frozen=True, slots=True)
class GivenVocabulary:
    """Tokenizers of source and target, the same object where they are shared; up to ``new_tokens`` are added to each.

    Old ids stay. Tags that the vocabulary lacks are among the new tokens.
    """

    source: Tokenizer
    target: Tokenizer
    new_tokens: int = 0

    def digest(self) -> str:
        """One number for all that it makes of a text."""
        digest = sha256(str(self.new_tokens).encode())
        for tokenizer in (self.source, self.target):
            digest.update(tokenizer.to_json().encode())
        return digest.hexdigest()

    def settle(self, texts: Texts, *, tags: Sequence[str]) -> tuple[Tokenizer, Tokenizer]:
        """The tokenizers to encode with.

        Raises DataError for a tag that there is no room for, TextError for a vocabulary that cannot be extended.
        """
        unknown = [tag for tag in tags if tag not in self.source.tags]
        if len(unknown) > self.new_tokens:
            raise DataError(
                f"data/given: the model's vocabulary lacks the tags {', '.join(unknown)}; it has "
                f"{', '.join(self.source.tags) or 'none'}, and train.extend_vocabulary is {self.new_tokens}. "
                f"Set train.extend_vocabulary to {len(unknown)} or more, or use tags that it has."
            )
        if not self.new_tokens:
            return self.source, self.target
        if self.source is self.target:
            both = extend_tokenizer(
                self.source, texts(("sources", "targets")), new_tokens=self.new_tokens, tags=unknown
            )
            return both, both
        return (
            extend_tokenizer(self.source, texts(("sources",)), new_tokens=self.new_tokens, tags=unknown),
            extend_tokenizer(self.target, texts(("targets",)), new_tokens=self.new_tokens),
        )
