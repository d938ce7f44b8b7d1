"""A Headway model folder becomes a CTranslate2 folder, kept only if it does as the model does."""

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path

from headway.engine.engine import is_installed
from headway.errors import InterchangeError, MissingExtraError
from headway.folder.contents import ModelFolder
from headway.folder.weights import Array
from headway.interchange.ctranslate2_reading import SHARED_TOKENIZER, SOURCE_TOKENIZER, CTranslate2Reading
from headway.interchange.ctranslate2_spec import build_spec, check_expressible, load_specs
from headway.interchange.new_folder import check_place, new_folder
from headway.interchange.sentences import Comparable, comparable
from headway.interchange.verification import EXTRA_TOKENS, Exported, Reading, Verified, verify
from headway.text.reserved import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from headway.text.tokenizer import Tokenizer

WEIGHTS_FILE, CARD_FILE = "model.bin", "README.md"
TARGET_TOKENIZER = "target_tokenizer.json"
LONGEST_SOURCE = 1024  # tokens: longer ones CTranslate2 cuts, if it is not told otherwise


def is_ctranslate2(path: Path) -> bool:
    """Whether a folder looks like one of CTranslate2's."""
    return (path / WEIGHTS_FILE).is_file() and any(path.glob("*vocabulary.*"))


def export_ctranslate2(folder: ModelFolder, out: Path, sentences: Sequence[str]) -> Exported:
    """Write a CTranslate2 folder in float32 at ``out``, compare it with the model, and keep it if all is equal.

    Raises InterchangeError for a model that CTranslate2 cannot run, for a place that is taken and for the first
    difference; MissingExtraError without CTranslate2, or with neither torch nor the engine to compare by.
    """
    check_place(out)
    check_expressible(folder.config.model)
    for tokenizer in (folder.source_tokenizer, folder.target_tokenizer):
        _check_tokenizer(tokenizer)
    load_specs()
    num_positions = count_positions(folder)
    weights = folder.weights()
    compared = comparable(folder, sentences)
    notices = _notices(folder, num_positions)
    with new_folder(out) as beside:
        _write(beside, folder, weights, num_positions=num_positions)
        (beside / CARD_FILE).write_text(_card(folder, out.name, notices), encoding="utf-8", newline="\n")
        verified = _verify(folder, beside, weights, compared)
    return Exported(out, verified, notices + compared.notices)


def count_positions(folder: ModelFolder) -> int:
    """How many positions a table of them has in the written folder."""
    config = folder.config
    if config.model.positions == "learned":
        return config.model.max_positions
    return max(LONGEST_SOURCE, config.max_source_tokens) + max(EXTRA_TOKENS, config.search.max_extra_tokens)


def _check_tokenizer(tokenizer: Tokenizer) -> None:
    if tokenizer.imported:
        raise InterchangeError(
            "interchange/ctranslate2_export: the tokenizer was imported from SentencePiece; wanted one that was learnt "
            "here. Remedy: convert the folder that the model was imported from with CTranslate2's own converter."
        )


def _write(path: Path, folder: ModelFolder, weights: Mapping[str, Array], *, num_positions: int) -> None:
    spec = build_spec(folder.config.model, weights, num_positions=num_positions)
    source, target = list(folder.source_tokenizer.names), list(folder.target_tokenizer.names)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.add_source_eos = True
    spec.config.add_source_bos = False
    spec.config.unk_token, spec.config.eos_token = target[UNK_ID], target[EOS_ID]
    spec.config.bos_token = spec.config.decoder_start_token = target[BOS_ID]
    spec.validate()
    spec.optimize()
    spec.save(str(path))
    for name, tokenizer in _tokenizers(folder).items():
        (path / name).write_text(tokenizer.to_json(), encoding="utf-8", newline="\n")


def _tokenizers(folder: ModelFolder) -> dict[str, Tokenizer]:
    if folder.source_tokenizer is folder.target_tokenizer:
        return {SHARED_TOKENIZER: folder.source_tokenizer}
    return {SOURCE_TOKENIZER: folder.source_tokenizer, TARGET_TOKENIZER: folder.target_tokenizer}


def _verify(folder: ModelFolder, path: Path, weights: Mapping[str, Array], compared: Comparable) -> Verified:
    """Compare what was written, read back from the disk, with the model, by torch or else by the engine."""
    model, tokenizers = folder.config.model, (folder.source_tokenizer, folder.target_tokenizer)
    longest = model.max_positions if model.positions == "learned" else None

    def against(ours: Reading) -> Verified:
        theirs = CTranslate2Reading(path)
        for tokenizer, names in zip(tokenizers, theirs.vocabularies, strict=True):
            _compare_vocabulary(tokenizer.names, names)
        return verify(ours, theirs, sources=compared.sources, texts=compared.texts, longest=longest)

    if find_spec("torch") is not None:
        from headway.interchange.reading import read_model  # noqa: PLC0415 - loads torch, after all else was checked

        return against(read_model(model, weights))
    if not is_installed():
        raise MissingExtraError(
            "interchange/ctranslate2_export: an exported folder is compared with the model, which needs torch or the "
            "engine; neither is installed. Run: pip install headway-native, or pip install 'headway[train]'"
        )
    from headway.interchange.engine_reading import read_by_engine  # noqa: PLC0415 - only where torch is not

    with read_by_engine(folder) as ours:
        return against(ours)


def _compare_vocabulary(ours: Sequence[str], theirs: Sequence[str]) -> None:
    """Raise InterchangeError that names the first token that differs: sentences need not have every token."""
    pairs = zip_longest(ours, theirs)
    differs = next(((token_id, *pair) for token_id, pair in enumerate(pairs) if pair[0] != pair[1]), None)
    if differs is not None:
        token_id, one, other = differs
        raise InterchangeError(
            f"interchange/ctranslate2_export: token {token_id} of the vocabulary: Headway has {one!r}, the written "
            f"folder {other!r}; wanted the same. Nothing is kept. Remedy: report this, with the model's config.json."
        )


def _notices(folder: ModelFolder, num_positions: int) -> tuple[str, ...]:
    """Where a user of the folder may get other translations than ours, or none."""
    config = folder.config
    notices: list[str] = []
    if config.search.beam_size > 1 and config.search.length_penalty:
        ours = config.search.length_penalty
        notices.append(
            "a beam divides by length^a there, without EOS, and by ((5 + length) / 6)^a here, and may prefer another "
            f"output: nearest to our length penalty {ours:g} is {near_penalty(ours):g}, for some 20 tokens"
        )
    if config.model.positions == "alibi":
        notices.append(f"linear biases of the encoder are a table, exact for sources of up to {num_positions:,} tokens")
    elif config.model.positions in ("sinusoidal", "learned", "none"):
        notices.append(f"sources and outputs have at most {num_positions:,} tokens there; more are an error")
    return tuple(notices)


def _card(folder: ModelFolder, name: str, notices: Sequence[str]) -> str:
    config = folder.config
    source, target = config.source_language or "source", config.target_language or "target"
    lines = [
        f"# Translation from {source} to {target}",
        "",
        f"A model trained with Headway {config.headway_version}, for CTranslate2. Its weights are float32; "
        "`compute_type` makes them smaller when they are loaded. Token ids are those of Headway: padding 0, unknown 1, "
        "start 2, end 3.",
        "",
        "```python",
        *_usage(folder, name),
        "```",
        "",
        f"The model was trained on sources of up to {config.max_source_tokens - 1:,} tokens: split longer ones.",
    ]
    tags = folder.source_tokenizer.tags
    if tags:
        named = ", ".join(folder.source_tokenizer.names[token_id] for token_id in tags.values())
        lines += ["", f"A tag is a token before those of the source: {named}."]
    if notices:
        lines += ["", "Where it may differ from the original:", "", *(f"- {notice}" for notice in notices)]
    return "\n".join([*lines, ""])


def _usage(folder: ModelFolder, name: str) -> list[str]:
    """A few lines of Python that translate with the folder."""
    search, files = folder.config.search, list(_tokenizers(folder))
    never = [[folder.target_tokenizer.names[token_id]] for token_id in never_put_out(folder.target_tokenizer)]
    options = f"beam_size={search.beam_size}, length_penalty={near_penalty(search.length_penalty):g}"
    options += ", max_input_length=0, min_decoding_length=0"
    if search.no_repeat_ngram:
        options += f", no_repeat_ngram_size={search.no_repeat_ngram}"
    return [
        "import ctranslate2, tokenizers",
        "",
        f"folder, never = {json.dumps(name, ensure_ascii=False)}, {json.dumps(never, ensure_ascii=False)}",
        'translator = ctranslate2.Translator(folder, compute_type="int8")',
        f'source = tokenizers.Tokenizer.from_file(f"{{folder}}/{files[0]}")',
        f'target = tokenizers.Tokenizer.from_file(f"{{folder}}/{files[-1]}")',
        'tokens = [source.id_to_token(token_id) for token_id in source.encode("One sentence at a time.").ids]',
        f"options = dict({options}, suppress_sequences=never)",
        f"longest = len(tokens) + {search.max_extra_tokens}",
        "[found] = translator.translate_batch([tokens], max_decoding_length=longest, **options)",
        "print(target.decode([target.token_to_id(token) for token in found.hypotheses[0]]))",
    ]


def near_penalty(alpha: float, length: int = 20) -> float:
    """The power of a length that, near this one, favours longer outputs as much as Headway's ((5 + length) / 6)^alpha.

    Both logarithms then rise alike with the length: a / n = alpha / (5 + n + 1), of n tokens and EOS.
    """
    return round(alpha * length / (length + 6), 2)


def never_put_out(tokenizer: Tokenizer) -> list[int]:
    """Ids that Headway's search never puts out: padding, the start and the tags."""
    return [PAD_ID, BOS_ID, *tokenizer.tags.values()]
