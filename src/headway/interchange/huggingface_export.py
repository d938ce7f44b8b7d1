"""A Headway model folder becomes a Hugging Face MarianMT folder, kept only if it does as the model does."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from headway.errors import InterchangeError
from headway.folder.contents import ModelFolder
from headway.folder.weights import Array, read_weights, write_weights
from headway.interchange import generation
from headway.interchange.generation import write_generation
from headway.interchange.huggingface_tokenizer import tokenizer_files
from headway.interchange.marian import Rows, from_marian, to_marian
from headway.interchange.marian_config import NORM_EPSILON, read_marian_config, write_marian_config
from headway.interchange.new_folder import check_place, new_folder
from headway.interchange.norm_scale import norm_scale, scale_norms
from headway.interchange.sentences import Comparable, comparable
from headway.interchange.source_folder import SourceFolder
from headway.interchange.verification import Exported, Verified
from headway.text.tokenizer import Tokenizer

CONFIG_FILE, WEIGHTS_FILE, CARD_FILE = "config.json", "model.safetensors", "README.md"
SOURCE_FOLDER, TARGET_FOLDER = "source_tokenizer", "target_tokenizer"
OWN_KEY = "headway"  # of config.json: what ours says; transformers carries it along
SCALE_KEY = "headway_norm_scale"  # of config.json: see norm_scale.py; absent it is 1
LONGEST_OUTPUT = 512


def export_huggingface(folder: ModelFolder, out: Path, sentences: Sequence[str]) -> Exported:
    """Write a MarianMT folder at ``out``, compare it with the model on ``sentences``, and keep it if all is equal.

    It is compared as the transformers library reads it, or, where that is not installed, as Headway does. Raises
    InterchangeError for a model that MarianMT cannot be, for a place that is taken and for the first difference.
    """
    check_place(out)
    longest = max(LONGEST_OUTPUT, folder.config.max_source_tokens + folder.config.search.max_extra_tokens)
    config = write_marian_config(folder.config.model, max_positions=longest + 1)
    config[OWN_KEY] = folder.config.model_dump(mode="json", exclude={"training": {"parent"}})
    for tokenizer in (folder.source_tokenizer, folder.target_tokenizer):
        _check_tokenizer(tokenizer)
    config[SCALE_KEY] = norm_scale(folder.config.model.norm_epsilon, there=NORM_EPSILON)
    values, notices = write_generation(folder.config.search, longest=longest)
    if folder.config.model.norm_epsilon != NORM_EPSILON:
        scale = norm_scale(folder.config.model.norm_epsilon, there=NORM_EPSILON)
        notices += (
            f"norms add {NORM_EPSILON:g} to the variance there, {folder.config.model.norm_epsilon:g} here: what they "
            f"read is kept {scale:g} times as large, where it counts as {NORM_EPSILON / scale**2:.3g} (all but the "
            "first norm of each stack)",
        )
    if folder.source_tokenizer is not folder.target_tokenizer:
        notices += (
            f"two vocabularies: load {SOURCE_FOLDER} and {TARGET_FOLDER} with AutoTokenizer, one for each side",
        )
    weights = folder.weights()
    compared = comparable(folder, sentences)
    with new_folder(out) as beside:
        _write(beside, folder, config=config, generation_values=values, weights=weights, notices=notices)
        verified = _verify(folder, beside, weights, compared)
    return Exported(out, verified, notices + compared.notices)


def _check_tokenizer(tokenizer: Tokenizer) -> None:
    if tokenizer.imported:
        raise InterchangeError(
            "interchange/huggingface_export: the tokenizer was imported from SentencePiece; wanted one that was learnt "
            "here. Remedy: use the folder that the model was imported from."
        )


def _write(
    path: Path,
    folder: ModelFolder,
    *,
    config: Mapping[str, object],
    generation_values: Mapping[str, object],
    weights: Mapping[str, Array],
    notices: Sequence[str],
) -> None:
    longest = folder.config.max_source_tokens
    texts = {
        CONFIG_FILE: json.dumps(config, indent=2) + "\n",
        generation.FILE: json.dumps(generation_values, indent=2) + "\n",
        CARD_FILE: _card(folder, notices),
    }
    if folder.source_tokenizer is folder.target_tokenizer:
        texts |= tokenizer_files(folder.source_tokenizer, longest=longest)
    else:
        for place, tokenizer in ((SOURCE_FOLDER, folder.source_tokenizer), (TARGET_FOLDER, folder.target_tokenizer)):
            texts |= {f"{place}/{name}": text for name, text in tokenizer_files(tokenizer, longest=longest).items()}
    for name, text in texts.items():
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(text, encoding="utf-8", newline="\n")
    model = folder.config.model
    scaled = scale_norms(weights, model, norm_scale(model.norm_epsilon, there=NORM_EPSILON))
    write_weights(path / WEIGHTS_FILE, to_marian(scaled, model), metadata={"format": "pt"})


def _verify(folder: ModelFolder, path: Path, weights: Mapping[str, Array], compared: Comparable) -> Verified:
    """Compare what was written, read back from the disk, with the model, both in float64."""
    import torch  # noqa: PLC0415 - takes seconds to load, after all else was checked

    from headway.interchange.reading import read_model  # noqa: PLC0415 - loads torch, after all else was checked
    from headway.interchange.transformers_reading import TransformersReading, is_installed  # noqa: PLC0415 - as above
    from headway.interchange.verification import verify  # noqa: PLC0415 - as above

    ours = read_model(folder.config.model, weights, dtype=torch.float64)
    if is_installed():
        shared = folder.source_tokenizer is folder.target_tokenizer
        theirs = TransformersReading(path, tokenizer=path if shared else path / SOURCE_FOLDER)
    else:
        values = SourceFolder.open(path).read_json(CONFIG_FILE)
        marian = read_marian_config(values)
        rows = [Rows(np.arange(size)) for size in (marian.source_vocab_size, marian.target_vocab_size)]
        arrays, model = from_marian(
            read_weights(path / WEIGHTS_FILE), marian.model, source_rows=rows[0], target_rows=rows[1]
        )
        theirs = read_model(
            model, arrays, name="Headway's own reading, as transformers is not installed", dtype=torch.float64
        )
    return verify(ours, theirs, sources=compared.sources, texts=compared.texts)


def _card(folder: ModelFolder, notices: Sequence[str]) -> str:
    config = folder.config
    source, target = config.source_language or "source", config.target_language or "target"
    lines = [
        f"# Translation from {source} to {target}",
        "",
        f"A model trained with Headway {config.headway_version}, as a MarianMTModel. Token ids are those of Headway: "
        "padding 0, unknown 1, start 2, end 3.",
    ]
    if notices:
        lines += ["", "Where it may differ from the original:", "", *(f"- {notice}" for notice in notices)]
    return "\n".join([*lines, ""])
