"""A Hugging Face MarianMT folder becomes a Headway model folder. Its own code is not needed and never run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headway.config.data_config import TextConfig
from headway.config.departure import departures
from headway.corpus.language import is_code, normalise
from headway.errors import InterchangeError
from headway.folder.contents import FolderConfig, ModelFolder, check_place, write_folder
from headway.folder.weights import Array, read_weights
from headway.interchange import generation, marian_vocabulary
from headway.interchange.exported import is_exported, read_exported
from headway.interchange.generation import read_generation
from headway.interchange.marian import OUTPUT, SHARED, SOURCE, TARGET, from_marian
from headway.interchange.marian_config import MarianModel, read_marian_config
from headway.interchange.marian_vocabulary import read_vocabulary
from headway.interchange.pickled import read_pickle
from headway.interchange.source_folder import SourceFolder
from headway.model.size import count_parameters
from headway.text.tokenizer import Tokenizer

CONFIG_FILE = "config.json"
WEIGHTS_FILE, PARTS_FILE, PICKLE_FILE = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"

FROM_ELSEWHERE = (
    "A MarianMT model of Hugging Face's format, imported by Headway {}. Whoever made it says what it was trained on "
    "and under which licence it may be used."
)
FROM_HEADWAY = "A model that was trained with Headway, exported as a MarianMTModel and imported again."
NORMALISED = (
    "SentencePiece normalises text before it takes it apart (spaces, widths, ligatures), so the tokens of a text "
    "do not give it back exactly. Characters that the vocabulary lacks are translated as unknown."
)


@dataclass(frozen=True, slots=True)
class Imported:
    """The new folder, and what a user must hear: where it will not do as the original does."""

    folder: ModelFolder
    notices: tuple[str, ...]


def is_huggingface(path: Path) -> bool:
    """Whether a folder looks like one of Hugging Face's; whether its model will do is seen when it is read."""
    return SourceFolder.open(path).has(CONFIG_FILE)


def import_huggingface(path: Path, out: Path, unsafe: bool) -> Imported:
    """Read a MarianMT folder and write a model folder that translates as it does.

    ``unsafe`` allows weights in a pickle. Raises InterchangeError for what is missing, damaged or cannot be done,
    FolderError for damaged weights and for a place that holds something else.
    """
    check_place(out)
    source = SourceFolder.open(path)
    values = source.read_json(CONFIG_FILE)
    marian = read_marian_config(values)
    is_own = is_exported(source, values)  # before the weights, which may be large
    arrays = _read_arrays(source, unsafe=unsafe)
    if is_own:
        return _write_own(out, *read_exported(source, values, marian, arrays))
    vocabulary = read_vocabulary(source, marian, _rows(arrays, marian))
    search, notices = read_generation(values, source.read_json_if_there(generation.FILE), marian)
    weights, model = from_marian(
        arrays, marian.model, source_rows=vocabulary.source_rows, target_rows=vocabulary.target_rows
    )
    tokenizer_config = source.read_json_if_there(marian_vocabulary.CONFIG_FILE)
    config = FolderConfig(
        source_language=_language(tokenizer_config, "source_lang"),
        target_language=_language(tokenizer_config, "target_lang"),
        model=model,
        search=search,
        text=TextConfig(
            model="unigram",
            shared_vocabulary=vocabulary.source_tokenizer is vocabulary.target_tokenizer,
            byte_fallback=False,
        ),
        max_source_tokens=_longest_source(tokenizer_config, marian),
        tags=("", *vocabulary.tags) if vocabulary.tags else (),
    )
    notices = (*vocabulary.notices, *notices)
    folder = write_folder(
        out,
        config=config,
        weights=weights,
        source_tokenizer=vocabulary.source_tokenizer,
        target_tokenizer=vocabulary.target_tokenizer,
        card=_card(config, notices, out.name),
    )
    return Imported(folder, notices)


def _write_own(
    out: Path,
    config: FolderConfig,
    weights: Mapping[str, Array],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
) -> Imported:
    """The folder of a model that Headway had exported."""
    folder = write_folder(
        out,
        config=config,
        weights=weights,
        source_tokenizer=source_tokenizer,
        target_tokenizer=target_tokenizer,
        card=_card(config, (), out.name, is_own=True),
    )
    return Imported(folder, ())


def _read_arrays(source: SourceFolder, *, unsafe: bool) -> Mapping[str, Array]:
    if source.has(WEIGHTS_FILE):
        return read_weights(source.path / WEIGHTS_FILE)
    if source.has(PARTS_FILE):
        raise InterchangeError(
            f"interchange/huggingface_import: {source.path} has its weights in several files ({PARTS_FILE}); wanted "
            f"one, {WEIGHTS_FILE}. Remedy: save the model again with a larger max_shard_size."
        )
    if source.has(PICKLE_FILE):
        return read_pickle(source.path / PICKLE_FILE, unsafe=unsafe)
    source.read_bytes(WEIGHTS_FILE)  # says what is there
    raise AssertionError("a file that is there was found missing")


def _rows(arrays: Mapping[str, Array], marian: MarianModel) -> tuple[int, int]:
    """How many rows the source and target tables have; what config.json says where there are none, to fail later."""
    sources = (SHARED, SOURCE, TARGET, OUTPUT) if marian.shares and marian.ties else (SOURCE,)
    targets = sources if marian.shares and marian.ties else (TARGET, OUTPUT)
    found = [
        next((arrays[name].shape[0] for name in names if name in arrays and arrays[name].ndim == 2), size)
        for names, size in ((sources, marian.source_vocab_size), (targets, marian.target_vocab_size))
    ]
    return found[0], found[1]


def _language(config: Mapping[str, object], key: str) -> str:
    code = config.get(key)
    return normalise(code) if isinstance(code, str) and is_code(code) else ""


def _longest_source(config: Mapping[str, object], marian: MarianModel) -> int:
    """Longer sources fail there; here they are split."""
    longest = config.get("model_max_length", marian.max_positions)
    return min(longest, marian.max_positions) if type(longest) is int and longest > 0 else marian.max_positions


def _card(config: FolderConfig, notices: tuple[str, ...], name: str, *, is_own: bool = False) -> str:
    """The card of a model that was trained elsewhere, or here and then exported."""
    source, target = config.source_language or "source", config.target_language or "target"
    model = config.model
    lines = [
        f"# Translation from {source} to {target}",
        "",
        FROM_HEADWAY if is_own else FROM_ELSEWHERE.format(config.headway_version),
        "",
        f"- parameters: {count_parameters(model).total:,}",
        f"- departures from the paper: {'; '.join(departures(model).values())}",
        f"- longest source: {config.max_source_tokens:,} tokens; longer input is split into sentences",
    ]
    if not is_own:
        lines += ["", NORMALISED]
    if notices:
        lines += ["", "Where it may differ from the original:", "", *(f"- {notice}" for notice in notices)]
    return "\n".join([*lines, "", "```sh", f"echo 'One sentence a line.' | headway translate -m {name}", "```", ""])
