"""From files of parallel text to what training reads: cleaned, divided, encoded by a vocabulary learnt from it."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from itertools import chain, islice
from pathlib import Path

from headway.config.schema import DataConfig, RunConfig
from headway.corpus.clean import CleanReport, clean
from headway.corpus.language import check_language
from headway.corpus.lines import PARTS, STANDARD_STREAM, open_writer, read_lines
from headway.corpus.overlap import OverlapCounter
from headway.corpus.pair import SentencePair
from headway.corpus.read import read
from headway.corpus.split import hold_out_sources
from headway.data.prepared import (
    Dropped,
    Encoded,
    Prepared,
    Report,
    clear,
    read_prepared,
    text_paths,
    write_report,
    write_tokenizers,
)
from headway.data.store import Store, StoreWriter
from headway.errors import DataError
from headway.text.bpe import learn_bpe
from headway.text.tokenizer import Tokenizer

VERSION = 1  # of what preparing does: another one means that everything is prepared again
CLEANED = "cleaned.jsonl"
CHUNK = 10_000  # pairs encoded at once, and between two calls of on_progress
NUM_LINES = 3

Progress = Callable[[str, int], None]


def prepare(config: RunConfig, data_dir: Path, out_dir: Path, *, on_progress: Progress | None = None) -> Prepared:
    """Prepare the data that a run names, or take it from ``out_dir`` where equal input and settings prepared it.

    Training text is cleaned. Without validation files, ``data.held_out_pairs`` of it, chosen by ``train.seed``, are
    held out, pairs with the same source together; this alone needs the source side in memory. Validation and test
    text are taken as they are. ``on_progress`` hears a stage (clean, learn, encode) and how many pairs it has seen.

    Raises DataError when too few pairs are left or the disk is full, CorpusError and TextError as their rooms do.
    """
    _check_settings(config)
    digest = _digest(config, data_dir)
    earlier = read_prepared(out_dir) if digest else None
    if earlier is not None and earlier.report.digest == digest:
        return earlier
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        for left in out_dir.glob(PARTS):  # by a kill
            left.unlink()
        return _build(config, data_dir, out_dir, digest=digest, on_progress=on_progress or _ignore)
    except OSError as error:
        raise DataError(
            f"data/prepare: cannot write to {out_dir}: {error.strerror or error}. Make room on that disk, or write to "
            "another folder (--out)."
        ) from error
    finally:
        with suppress(OSError):
            (out_dir / CLEANED).unlink(missing_ok=True)


def _ignore(stage: str, count: int) -> None:
    """Nobody listens."""


# Settings and files


def _check_settings(config: RunConfig) -> None:
    data = config.data
    check_language(data.source_language, name="data.source_language")
    check_language(data.target_language, name="data.target_language")
    for part in ("train", "validation", "test"):
        source, target = _names(data, part)
        if not source and (target or part == "train"):
            found = f"data.{part}_target is {target!r}, data.{part}_source is empty" if target else "it is empty"
            raise DataError(
                f"data/prepare: data.{part}_source must name a file; {found}. "
                f"Set data.{part}_source (and data.{part}_target for two files)."
            )
    if config.text.shared_vocabulary and config.model.source_vocab_size is not None:
        raise DataError(
            f"data/prepare: model.source_vocab_size is {config.model.source_vocab_size}, but text.shared_vocabulary is "
            "true: both sides have one vocabulary. Take out the one, or set the other to false."
        )


def _names(data: DataConfig, part: str) -> tuple[str, str]:
    return {
        "train": (data.train_source, data.train_target),
        "validation": (data.validation_source, data.validation_target),
        "test": (data.test_source, data.test_target),
    }[part]


def _read(data: DataConfig, data_dir: Path, part: str) -> Iterator[SentencePair]:
    source, target = (name if name == STANDARD_STREAM else data_dir / name for name in _names(data, part))
    return read(
        source,
        target if _names(data, part)[1] else None,
        source_language=data.source_language,
        target_language=data.target_language,
        format=data.format,
        source_field=data.source_field,
        target_field=data.target_field,
    )


def _digest(config: RunConfig, data_dir: Path) -> str:
    """One number for all that shapes the result; empty where a file cannot be read twice, or not at all."""
    digest = sha256(_settings(config))
    names = chain.from_iterable(_names(config.data, part) for part in ("train", "validation", "test"))
    try:
        for path in (data_dir / name for name in names if name):
            if not path.is_file():  # standard input or a pipe
                return ""
            with path.open("rb") as file:
                digest.update(file_digest(file, "sha256").digest())
    except OSError:  # reading the text will name what is wrong
        return ""
    return digest.hexdigest()


def _digest_of_text(config: RunConfig, cleaned: Path, texts: Iterable[SentencePair]) -> str:
    """The same for input that could be read once only: of the cleaned training text, validation and test."""
    digest = sha256(_settings(config))
    with cleaned.open("rb") as file:
        digest.update(file_digest(file, "sha256").digest())
    for pair in texts:
        digest.update(json.dumps((pair.source, pair.target)).encode())
    return digest.hexdigest()


def _settings(config: RunConfig) -> bytes:
    """All settings that shape the result."""
    settings = {
        "version": VERSION,
        "data": config.data.model_dump(),
        "clean": config.clean.model_dump(),
        "text": config.text.model_dump(),
        "vocab_sizes": (config.model.vocab_size, config.model.source_vocab_size),
        "seed": config.train.seed,
    }
    return json.dumps(settings, sort_keys=True).encode()


# Preparing


@dataclass(frozen=True, slots=True)
class _Cleaned:
    """The cleaned text, in a file, and which of its pairs are held out."""

    path: Path
    held_out: frozenset[int] = frozenset()

    def pairs(self) -> Iterator[SentencePair]:
        for line in read_lines(self.path):
            number, source, target = json.loads(line)
            yield SentencePair(source, target, number)

    def training(self) -> Iterator[SentencePair]:
        return (pair for index, pair in enumerate(self.pairs()) if index not in self.held_out)

    def validation(self) -> list[SentencePair]:
        return [pair for index, pair in enumerate(self.pairs()) if index in self.held_out]


@dataclass(slots=True)
class _Tally:
    """Dropped pairs while they are counted."""

    lines: list[int] = field(default_factory=list[int])
    count: int = 0

    def add(self, line: int) -> None:
        self.count += 1
        if len(self.lines) < NUM_LINES:
            self.lines.append(line)

    def dropped(self) -> Dropped:
        return Dropped(self.count, tuple(self.lines))


def _build(config: RunConfig, data_dir: Path, out_dir: Path, *, digest: str, on_progress: Progress) -> Prepared:
    data, report = config.data, CleanReport()
    named = bool(data.validation_source)
    validation = list(_read(data, data_dir, "validation")) if named else []
    test = list(_read(data, data_dir, "test")) if data.test_source else []
    kept = clean(_read(data, data_dir, "train"), config.clean, report)
    cleaned = _write_cleaned(kept, out_dir / CLEANED, on_progress=on_progress)
    _check_enough(report, named=named)
    if not named:
        cleaned = _hold_out(cleaned, config)
        validation = cleaned.validation()
    tokenizers = _learn(cleaned, config, on_progress=on_progress)
    clear(out_dir)  # not before: an error in the input leaves what an earlier call prepared
    write_tokenizers(out_dir, *tokenizers)
    counters = [OverlapCounter(validation), OverlapCounter(test)]
    training = counters[1].watch(counters[0].watch(cleaned.training()))
    encoded = {
        part: _encode(pairs, out_dir / part, tokenizers, max_tokens=data.max_tokens, on_progress=heard)
        for part, pairs, heard in (("train", training, on_progress), ("validation", iter(validation), _ignore))
    }
    _check_encoded(encoded, data)
    _write_texts(validation, out_dir, "validation")
    if data.test_source:
        _write_texts(test, out_dir, "test")
    result = Report(
        digest=digest or _digest_of_text(config, cleaned.path, chain(validation, test)),
        pairs_read=report.num_read,
        pairs_clean=report.num_kept,
        cleaning=tuple(report.rows()),
        held_out=len(cleaned.held_out),
        source_vocab_size=tokenizers[0].vocab_size,
        target_vocab_size=tokenizers[1].vocab_size,
        train=encoded["train"],
        validation=encoded["validation"],
        validation_overlap=counters[0].result(),
        test_overlap=counters[1].result() if data.test_source else None,
    )
    write_report(out_dir, result)
    return Prepared(out_dir, result, *tokenizers)


def _write_cleaned(pairs: Iterable[SentencePair], path: Path, *, on_progress: Progress) -> _Cleaned:
    """Write pairs as JSON lines: a text may hold a line break when the filter of control characters is off."""
    with open_writer(path) as file:
        for chunk in _chunks(pairs, "clean", on_progress):
            for pair in chunk:
                file.write(json.dumps((pair.line, pair.source, pair.target), ensure_ascii=False) + "\n")
    return _Cleaned(path)


def _chunks(pairs: Iterable[SentencePair], stage: str, on_progress: Progress) -> Iterator[list[SentencePair]]:
    iterator, seen = iter(pairs), 0
    while chunk := list(islice(iterator, CHUNK)):
        yield chunk
        seen += len(chunk)
        on_progress(stage, seen)


def _check_enough(report: CleanReport, *, named: bool) -> None:
    wanted, why = (1, "") if named else (2, ", one to train on and one to validate with")
    if report.num_kept >= wanted:
        return
    dropped = "; ".join(f"{name} {count:,}" for name, count in report.dropped.items()) or "none"
    raise DataError(
        f"data/prepare: {report.num_kept:,} of {report.num_read:,} sentence pairs are left after cleaning (dropped: "
        f"{dropped}); training needs at least {wanted}{why}. Add pairs, relax the filters of [clean]"
        f"{'' if named else ', or name validation files (data.validation_source)'}."
    )


def _hold_out(cleaned: _Cleaned, config: RunConfig) -> _Cleaned:
    sources = [pair.source for pair in cleaned.pairs()]
    chosen = hold_out_sources(
        sources,
        seed=config.train.seed,
        at_most=config.data.held_out_pairs,
        share=config.data.held_out_share,
    )
    return _Cleaned(cleaned.path, chosen)


def _learn(cleaned: _Cleaned, config: RunConfig, *, on_progress: Progress) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of both sides, from training text alone: held-out text stays unseen."""
    model, text = config.model, config.text

    def texts(sides: Sequence[str]) -> Iterator[str]:
        for chunk in _chunks(cleaned.training(), "learn", on_progress):
            for pair in chunk:
                yield from (getattr(pair, side) for side in sides)

    def learn(sides: Sequence[str], vocab_size: int) -> Tokenizer:
        return learn_bpe(texts(sides), vocab_size=vocab_size, byte_fallback=text.byte_fallback)

    if text.shared_vocabulary:
        tokenizer = learn(("source", "target"), model.vocab_size)
        return tokenizer, tokenizer
    return learn(("source",), model.source_vocab_size or model.vocab_size), learn(("target",), model.vocab_size)


def _encode(
    pairs: Iterable[SentencePair],
    folder: Path,
    tokenizers: tuple[Tokenizer, Tokenizer],
    *,
    max_tokens: int,
    on_progress: Progress,
) -> Encoded:
    """Write the store of these pairs, without those that are too long or empty, which are counted."""
    source_tokenizer, target_tokenizer = tokenizers
    too_long, empty = _Tally(), _Tally()
    sizes = {"source_vocab_size": source_tokenizer.vocab_size, "target_vocab_size": target_tokenizer.vocab_size}
    with StoreWriter(folder, **sizes) as writer:
        for chunk in _chunks(pairs, "encode", on_progress):
            sources = source_tokenizer.encode_batch([pair.source for pair in chunk])
            targets = target_tokenizer.encode_batch([pair.target for pair in chunk])
            for pair, source, target in zip(chunk, sources, targets, strict=True):
                if not pair.source.strip() or not pair.target.strip():
                    empty.add(pair.line)
                elif max(len(source), len(target)) + 1 > max_tokens:
                    too_long.add(pair.line)
                else:
                    writer.append(source, target)
    store = Store.open(folder)
    return Encoded(len(store), len(store.source_ids), len(store.target_ids), too_long.dropped(), empty.dropped())


def _check_encoded(encoded: dict[str, Encoded], data: DataConfig) -> None:
    for part, counts in encoded.items():
        if counts.pairs:
            continue
        raise DataError(
            f"data/prepare: no {part} pair is left of {counts.too_long.count + counts.empty.count:,}: "
            f"{counts.too_long.count:,} have more than {data.max_tokens:,} tokens on a side, EOS counted, and "
            f"{counts.empty.count:,} an empty side; at least 1 is needed. Raise data.max_tokens, or add {part} text."
        )


def _write_texts(pairs: Sequence[SentencePair], folder: Path, part: str) -> None:
    source_path, reference_path = text_paths(folder, part)
    with open_writer(source_path) as sources, open_writer(reference_path) as references:
        for pair in pairs:
            for text in (pair.source, pair.target):
                if "\n" in text or text.endswith("\r"):
                    raise DataError(
                        f"data/prepare: {part} text, line {pair.line:,} of its file: found a line break in a sentence "
                        f"({text[:40]!r}), wanted one sentence a line. Take the line break out of that file."
                    )
            sources.write(pair.source + "\n")
            references.write(pair.target + "\n")
