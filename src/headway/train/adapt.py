"""A run that begins with the weights and the vocabulary of an earlier model (``train.init``)."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from headway.checkpoint.state import state_files
from headway.config.architecture import ONE_SIDED
from headway.config.data_config import TextConfig
from headway.config.load import build
from headway.config.model_config import ModelConfig
from headway.config.schema import ParsingConfig, RunConfig
from headway.data.given import GivenVocabulary
from headway.errors import ConfigError, FolderError
from headway.folder.contents import TRAINING_FOLDER, ModelFolder
from headway.text.reserved import tag_name
from headway.text.tokenizer import UNK_ID, Tokenizer
from headway.translate.kind import KINDS, command_of, kind_of

OWN_MODEL_KEYS = ("dropout", "attention_dropout", "activation_dropout")  # they shape no weight: a recipe may say them
VOCABULARY_SIZES = ("vocab_size", "source_vocab_size")
OWN_TEXT_KEYS = ("sample_pairs", "bpe_dropout", "word_dropout")
OWN_PARSING_KEYS = ("functions", "traces", "constrained", "max_openings", "word_reward")
NEEDING = ("freeze", "extend_vocabulary", "lora_rank")  # keys of [train] without a meaning for a new model
SOURCE_ROWS = ("source_stem.embedding.weight",)
CLASSES = "classifier."  # of names of weights
TARGET_ROWS = ("target_stem.embedding.weight", "output.weight", "output.bias")

Weights = Mapping[str, np.ndarray]
Shared = ModelConfig | TextConfig | ParsingConfig  # sections that a model and a run must agree on


def open_parent(config: RunConfig, out_dir: Path) -> ModelFolder | None:
    """The model folder that the run begins with; None where it draws its own weights.

    Raises FolderError for a damaged folder and one that is gone since the run began, ConfigError when it is the folder
    of the run itself, and for settings that need one where none is named.
    """
    if not config.train.init:
        needing = [f"train.{key}" for key in NEEDING if getattr(config.train, key)]
        if needing:
            raise ConfigError(
                f"train/adapt: {', '.join(needing)} needs a model to begin with, and train.init is empty. "
                "Remedy: name a model folder (--init), or take it out"
            )
        return None
    path = Path(config.train.init)
    if path.resolve() == out_dir.resolve():
        raise ConfigError(
            f"train/adapt: train.init and the run's own folder are both {out_dir}; the adapted model would replace the "
            "one it begins with. Remedy: take another --out"
        )
    if not path.exists() and state_files(out_dir / TRAINING_FOLDER / "states"):
        raise FolderError(
            f"train/adapt: {path}, the model that the run in {out_dir} began with, does not exist any more; its "
            "configuration and tokenizers are wanted, though the run goes on with its own weights. "
            "Remedy: restore it, or name where it lies now with --init"
        )
    return ModelFolder.open(path)


def adapted(config: RunConfig, parent: ModelFolder) -> RunConfig:
    """The recipe with the parent's model, text and, where it names none, languages.

    Raises ConfigError for keys that the recipe states and that the parent has otherwise, and where the two together are
    no run: a parent without dropout, and a recipe that needs some.
    """
    clashes = [
        *_clashes("model", config.model, parent.config.model, own=(*OWN_MODEL_KEYS, *VOCABULARY_SIZES)),
        *_clashes("text", config.text, parent.config.text, own=OWN_TEXT_KEYS),
    ]
    _check_kind(config, parent)
    if parent.config.parsing is not None:
        clashes += _clashes("parsing", config.parsing, parent.config.parsing, own=OWN_PARSING_KEYS)
    if clashes:
        raise ConfigError(
            f"train/adapt: the recipe differs from the model in {parent.path}, whose weights it begins with: "
            f"{'; '.join(clashes)}. Remedy: take these keys out of the recipe"
        )
    model = parent.config.model.model_copy(update=_stated(config.model, OWN_MODEL_KEYS))
    text = parent.config.text.model_copy(update=_stated(config.text, OWN_TEXT_KEYS))
    languages = {
        side: getattr(config.data, side) or getattr(parent.config, side)
        for side in ("source_language", "target_language")
    }
    data = config.data.model_copy(update=languages)
    parsing = config.parsing
    if parent.config.parsing is not None:
        parsing = parent.config.parsing.model_copy(update=_stated(config.parsing, OWN_PARSING_KEYS))
    together = config.model_copy(update={"model": model, "text": text, "data": data, "parsing": parsing})
    build(together.model_dump(), name=f"the recipe with the model in {parent.path}, which it begins with")
    return together


def _check_kind(config: RunConfig, parent: ModelFolder) -> None:
    """Refuse a parser for text and any other model for trees, and for pairs a model that reads one text."""
    wanted = KINDS[command_of(config.model, config.parsing if config.is_parser else None)]
    if config.is_parser != (parent.config.parsing is not None):
        raise ConfigError(
            f"train/adapt: the model in {parent.path} is {kind_of(parent)}, and the recipe makes {wanted} "
            f"(data.format {config.data.format}). Remedy: begin with {wanted}, or change data.format"
        )
    has_targets = any(corpus.target for corpus in config.data.training_corpora)
    if parent.config.model.architecture in ONE_SIDED and has_targets:
        raise ConfigError(
            f"train/adapt: the model in {parent.path} is {kind_of(parent)}, which reads one text, and the recipe names "
            "a target side. Remedy: begin with a translator, or take the target side out"
        )


def overruled_sizes(config: RunConfig, parent: ModelFolder) -> str:
    """What to tell of vocabulary sizes that the recipe states and the parent has otherwise; empty where none does.

    They are sizes to learn, and a run that begins with a model learns no vocabulary.
    """
    told = [
        f"model.{name} is {getattr(config.model, name)} in the recipe, {getattr(parent.config.model, name)} there"
        for name in _differing(config.model, parent.config.model)
        if name in VOCABULARY_SIZES
    ]
    if not told:
        return ""
    return (
        f"the vocabulary is that of the model in {parent.path}, whatever size the recipe asks for: {'; '.join(told)}; "
        "train.extend_vocabulary adds tokens to it"
    )


def _stated(section: Shared, keys: tuple[str, ...]) -> dict[str, object]:
    """Those of the keys that the recipe names."""
    return {key: getattr(section, key) for key in keys if key in section.model_fields_set}


def _clashes(section: str, stated: Shared, parent: Shared, *, own: tuple[str, ...]) -> list[str]:
    """Those of the keys that differ and are not the recipe's own, with both values."""
    return [
        f"{section}.{name} is {getattr(stated, name)!r}, there {getattr(parent, name)!r}"
        for name in _differing(stated, parent)
        if name not in own
    ]


def _differing(stated: Shared, parent: Shared) -> list[str]:
    """The keys that the recipe names and the parent has otherwise, by the alphabet."""
    return [name for name in sorted(stated.model_fields_set) if getattr(stated, name) != getattr(parent, name)]


def vocabulary_of(parent: ModelFolder, new_tokens: int) -> GivenVocabulary:
    """The parent's tokenizers, to which ``new_tokens`` may be added."""
    return GivenVocabulary(parent.source_tokenizer, parent.target_tokenizer, new_tokens)


def initial_weights(parent: ModelFolder, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> Weights:
    """The parent's weights, with a row for each token that these tokenizers have at their ends.

    A new row is the mean of the rows of the tokens that wrote its token until now (of all rows for a tag, and for a
    character that could not be written); the same for a bias on the logits.
    """
    weights = dict(parent.weights())
    sides = (
        (SOURCE_ROWS, parent.source_tokenizer, source_tokenizer),
        (TARGET_ROWS, parent.target_tokenizer, target_tokenizer),
    )
    for names, old, new in sides:
        parts = new_token_parts(old, new)
        for name in names:
            if name in weights and parts and len(weights[name]) == old.vocab_size:
                weights[name] = _grown(weights[name], parts)
    return weights


def with_own_classes(weights: Weights, own: Weights) -> Weights:
    """The weights, with a model's own where they have no classifier or one of other classes."""
    fresh = {
        name: array
        for name, array in own.items()
        if name.startswith(CLASSES) and (name not in weights or weights[name].shape != array.shape)
    }
    kept = {name: array for name, array in weights.items() if name in own or not name.startswith(CLASSES)}
    return {**kept, **fresh}


def new_token_parts(old: Tokenizer, new: Tokenizer) -> list[list[int]]:
    """For each token that ``new`` has more, the old tokens that wrote it; empty where none did."""
    return [
        [] if tag_name(name) else [token for token in old.encode_run(name) if token != UNK_ID]
        for name in new.names[old.vocab_size :]
    ]


def _grown(rows: np.ndarray, parts: list[list[int]]) -> np.ndarray:
    """The rows and one more for each new token."""
    mean = rows.mean(axis=0)
    return np.concatenate([rows, np.stack([rows[part].mean(axis=0) if part else mean for part in parts])])
