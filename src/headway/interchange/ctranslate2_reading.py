"""A CTranslate2 folder as that library reads it, in float32."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from headway.errors import InterchangeError
from headway.interchange.verification import Ids
from headway.text.reserved import BOS_ID, EOS_ID, PAD_ID

SHARED_VOCABULARY, SOURCE_VOCABULARY, TARGET_VOCABULARY = (
    "shared_vocabulary.json",
    "source_vocabulary.json",
    "target_vocabulary.json",
)
SHARED_TOKENIZER, SOURCE_TOKENIZER = "tokenizer.json", "source_tokenizer.json"

_Result = TypeVar("_Result")


class CTranslate2Reading:
    """The library's Translator, the vocabularies and the tokenizer of the source, all read from a folder.

    Raises InterchangeError where the library fails.
    """

    name = "ctranslate2"

    def __init__(self, path: Path) -> None:
        import ctranslate2  # noqa: PLC0415 - an optional library
        import tokenizers  # noqa: PLC0415 - importing this room must be instant

        self._path = path
        is_shared = (path / SHARED_VOCABULARY).is_file()
        source, target = (SHARED_VOCABULARY,) * 2 if is_shared else (SOURCE_VOCABULARY, TARGET_VOCABULARY)
        self._source_names: list[str] = json.loads((path / source).read_text(encoding="utf-8"))
        self._target_names: list[str] = json.loads((path / target).read_text(encoding="utf-8"))
        self._target_ids = {name: token_id for token_id, name in enumerate(self._target_names)}
        tokenizer = SHARED_TOKENIZER if (path / SHARED_TOKENIZER).is_file() else SOURCE_TOKENIZER
        self._tokenizer = self._asked(lambda: tokenizers.Tokenizer.from_file(str(path / tokenizer)))
        self._translator: Any = self._asked(
            lambda: ctranslate2.Translator(str(path), device="cpu", compute_type="float32")
        )

    @property
    def vocabularies(self) -> tuple[list[str], list[str]]:
        """The tokens of source and target by id."""
        return self._source_names, self._target_names

    def encode(self, texts: Sequence[str]) -> list[Ids] | None:
        """Ids of each source text, EOS last."""
        encodings = self._asked(lambda: self._tokenizer.encode_batch(list(texts)))
        return [(*encoding.ids, EOS_ID) for encoding in encodings]

    def greedy(self, sources: Sequence[Ids], longest: int) -> list[Ids]:
        """The output of ``translate_batch`` with one beam; one that does not end within ``longest`` is ended there."""
        results = self._asked(
            lambda: self._translator.translate_batch(
                self._source_tokens(sources),
                beam_size=1,
                max_input_length=0,
                max_decoding_length=max(longest - 1, 1),
                min_decoding_length=0,
                suppress_sequences=[[self._target_names[PAD_ID]], [self._target_names[BOS_ID]]],
            )
        )
        return [(*(self._target_ids[token] for token in result.hypotheses[0]), EOS_ID) for result in results]

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Log-probabilities by ``score_batch``, which ends each target itself."""
        given = [[self._target_names[token_id] for token_id in target[:-1]] for target in targets]
        results = self._asked(
            lambda: self._translator.score_batch(self._source_tokens(sources), given, max_input_length=0)
        )
        return [list(result.log_probs) for result in results]

    def _source_tokens(self, sources: Sequence[Ids]) -> list[list[str]]:
        """Tokens by name, without EOS, which the library adds."""
        return [[self._source_names[token_id] for token_id in source[:-1]] for source in sources]

    def _asked(self, ask: Callable[[], _Result]) -> _Result:
        """What the library answers."""
        try:
            return ask()
        except Exception as error:  # libraries of compiled code, which name no narrower class
            raise InterchangeError(
                "interchange/ctranslate2_reading: what was written cannot be read back: "
                f"{' '.join(str(error).split())}. Nothing is kept. Remedy: report this, with the model's config.json."
            ) from error
