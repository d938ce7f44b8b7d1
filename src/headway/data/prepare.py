"""From files of parallel text to what training reads: cleaned, divided, encoded by a vocabulary learnt from it."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from itertools import chain, groupby
from pathlib import Path

import numpy as np

from headway.config.data_config import CorpusConfig, DataConfig
from headway.config.schema import RunConfig
from headway.corpus.language import check_language
from headway.corpus.lines import STANDARD_STREAM, open_writer
from headway.corpus.overlap import OverlapCounter
from headway.corpus.pair import SentencePair
from headway.corpus.read import ONE_TEXT, may_have_gaps
from headway.data.cleaned import Block
from headway.data.corpora import Progress, TrainingText, check_files, clean_corpora, corpora_of, files_of, read_corpus
from headway.data.encoder import Encoder, no_texts
from headway.data.given import GivenVocabulary
from headway.data.labels import Labels, find_labels
from headway.data.mixture import Mixture, Share
from headway.data.prepared import (
    CorpusReport,
    Dropped,
    Encoded,
    Prepared,
    Report,
    put_in_place,
    read_prepared,
    text_paths,
    write_report,
    write_tokenizers,
)
from headway.data.store import StoreWriter
from headway.data.treebank import source_coder
from headway.data.vocabulary import choose_sample, learn_vocabulary
from headway.errors import DataError
from headway.text.tokenizer import Tokenizer

VERSION = 3  # of what preparing does: another one means that everything is prepared again
CLEANED = "cleaned.blocks"
BESIDE = ".headway-prepare"  # a folder within that of the result, until all is whole
NUM_LINES = 3
PARTS_OF_DATA = ("train", "validation", "test")

Tagged = tuple[str, Block]  # pairs of one tag


def prepare(
    config: RunConfig,
    data_dir: Path,
    out_dir: Path,
    *,
    vocabulary: GivenVocabulary | None = None,
    on_progress: Progress | None = None,
    check: Callable[[Prepared], None] | None = None,
) -> Prepared:
    """Prepare the data that a run names, or take it from ``out_dir`` where equal input and settings prepared it.

    Without a given ``vocabulary`` one is learnt from the training text. ``check`` sees the result before it takes the
    place of what an earlier call prepared: that stays where it raises an error, as where preparing does.

    Training text is cleaned, each corpus for itself. Without validation files, ``data.held_out_pairs`` of it, chosen by
    ``train.seed``, are held out, pairs with the same source together. Validation and test text are taken as they are,
    without units (of TMX and the like) that lack a side.
    ``on_progress`` hears a stage (clean, learn, encode) and how many pairs it has seen. Memory: some 60 bytes a
    training pair, and what learning and encoding take; the text itself waits on the disk, beside the result.

    Raises DataError when too few pairs are left or the disk is full, CorpusError and TextError as their rooms do.
    """
    check_settings(config)
    check_files(config, data_dir)
    settings = _settings(config, vocabulary)
    digest = _digest(config, data_dir, settings)
    earlier = read_prepared(out_dir) if digest else None
    if earlier is not None and earlier.report.digest == digest:
        _checked(earlier, check)
        return earlier
    beside = out_dir / BESIDE
    try:
        shutil.rmtree(beside, ignore_errors=True)  # what a kill left
        beside.mkdir(parents=True)
        built = _build(
            config,
            data_dir,
            beside,
            vocabulary=vocabulary,
            settings=settings,
            digest=digest,
            on_progress=on_progress or _ignore,
        )
        (beside / CLEANED).unlink()
        _checked(built, check)
        return put_in_place(built, out_dir)
    except OSError as error:
        raise DataError(
            f"data/prepare: cannot write to {out_dir}: {error.strerror or error}. Make room on that disk, or write to "
            "another folder (--out)."
        ) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def input_digest(config: RunConfig, data_dir: Path) -> str:
    """The digest that ``prepare`` will give its result; empty where a file cannot be read twice, or is not there."""
    check_settings(config)
    return _digest(config, data_dir, _settings(config, None))


def _checked(prepared: Prepared, check: Callable[[Prepared], None] | None) -> None:
    if check is not None:
        check(prepared)


def _ignore(stage: str, count: int) -> None:
    """Nobody listens."""


# Settings and files


def check_settings(config: RunConfig) -> None:
    """Raise DataError where files or tags are not named as they must be; CorpusError for what is no language code."""
    data = config.data
    for section, place in ((data, "data"), *((corpus, "data.corpora") for corpus in data.corpora)):
        check_language(section.source_language, name=f"{place}.source_language")
        check_language(section.target_language, name=f"{place}.target_language")
    for part in PARTS_OF_DATA:
        _check_named(data, part)
        for corpus in corpora_of(data, part) if config.is_parser else ():
            _check_one_file(corpus, part)
    _check_sides(config)
    names = [name for part in PARTS_OF_DATA for corpus in corpora_of(data, part) for name in files_of(corpus)]
    if names.count(STANDARD_STREAM) > 1:
        raise DataError(
            f"data/prepare: {names.count(STANDARD_STREAM)} files are standard input (-); wanted one at most, as it can "
            "be read only once. Name files for the others."
        )
    if config.text.shared_vocabulary and config.model.source_vocab_size is not None:
        raise DataError(
            f"data/prepare: model.source_vocab_size is {config.model.source_vocab_size}, but text.shared_vocabulary is "
            "true: both sides have one vocabulary. Take out the one, or set the other to false."
        )


def _check_sides(config: RunConfig) -> None:
    """A run that reads one text learns from such text, without tags, and no other does."""
    wants_one, is_pairs = config.reads in ONE_TEXT, config.reads == "pairs"
    for corpus in (corpus for part in PARTS_OF_DATA for corpus in corpora_of(config.data, part)):
        fits = corpus.format == config.reads if wants_one else corpus.format not in ONE_TEXT
        if fits and (is_pairs or not corpus.tag):
            continue
        wanted = f"format {config.reads}" if wants_one else f"none of the formats {', '.join(ONE_TEXT)}"
        tag = f", tag {corpus.tag}" if corpus.tag else ""
        raise DataError(
            f"data/prepare: {corpus.source}: found format {corpus.format}{tag}; a run whose model.architecture is "
            f"{config.model.architecture}, train.objective {config.train.objective} and train.next_sentence "
            f"{str(config.train.next_sentence).lower()} wants {wanted}{'' if is_pairs else ' and no tag'}. "
            "Set data.format, or one of these three."
        )


def _check_named(data: DataConfig, part: str) -> None:
    """A target needs its source, training needs text, and validation and test need tags that are trained."""
    source, target, tag = (getattr(data, f"{part}_{name}", "") for name in ("source", "target", "tag"))
    if not source and (target or (part == "train" and not data.corpora)):
        found = f"data.{part}_target is {target!r}, data.{part}_source is empty" if target else "it is empty"
        raise DataError(
            f"data/prepare: data.{part}_source must name a file; {found}. "
            f"Set data.{part}_source (and data.{part}_target for two files)."
        )
    known = dict.fromkeys(corpus.tag for corpus in data.training_corpora)
    if part != "train" and ((source and tag not in known) or (tag and not source)):
        raise DataError(
            f"data/prepare: data.{part}_tag is {tag!r} with data.{part}_source {source!r}; the training corpora have "
            f"the tags {', '.join(map(repr, known))}. Set data.{part}_tag to that of the text, or to nothing without."
        )


def _check_one_file(corpus: CorpusConfig, part: str) -> None:
    """A treebank is both sides."""
    if corpus.target:
        raise DataError(
            f"data/prepare: data.format is trees, and {part} text has two files ({corpus.source}, {corpus.target}); "
            "wanted one of trees, which are both sides. Take the target file out."
        )


def _check_one_table(source: Tokenizer, target: Tokenizer) -> None:
    """Two tokenizers may share one table of embeddings only where every token has the same row in it."""
    names = [_table_names(tokenizer) for tokenizer in (source, target)]
    if names[0] == names[1]:
        return
    sizes = f"{source.vocab_size:,} and {target.vocab_size:,} tokens"
    pairs = enumerate(zip(*names, strict=False))
    at = next((f"; token {place} is {one!r} and {other!r}" for place, (one, other) in pairs if one != other), "")
    raise DataError(
        f"data/prepare: model.embedding_sharing is all, so both sides have one table, and the tokenizers of source and "
        f"target have {sizes}{at}. Wanted the same tokens in the same order. Remedy: begin with a model "
        "(train.init) whose tokenizers are of one vocabulary, or whose model.embedding_sharing is target or none."
    )


def _table_names(tokenizer: Tokenizer) -> list[str]:
    """What the rows stand for; the space before an imported word that its own side does not segment into is no part."""
    return [name.removeprefix(" ") if tokenizer.imported else name for name in tokenizer.names]


def _digest(config: RunConfig, data_dir: Path, settings: bytes) -> str:
    """One number for all that shapes the result; empty where a file cannot be read twice, or not at all."""
    digest = sha256(settings)
    corpora = (corpus for part in PARTS_OF_DATA for corpus in corpora_of(config.data, part))
    try:
        for path in (data_dir / name for corpus in corpora for name in files_of(corpus)):
            if not path.is_file():  # standard input or a pipe
                return ""
            with path.open("rb") as file:
                digest.update(file_digest(file, "sha256").digest())
    except OSError:  # reading the text will name what is wrong
        return ""
    return digest.hexdigest()


def _digest_of_text(settings: bytes, cleaned: Path, texts: Iterable[SentencePair]) -> str:
    """The same for input that could be read once only: of the cleaned training text, validation and test."""
    digest = sha256(settings)
    with cleaned.open("rb") as file:
        digest.update(file_digest(file, "sha256").digest())
    for pair in texts:
        digest.update(json.dumps((pair.source, pair.target)).encode())
    return digest.hexdigest()


def _settings(config: RunConfig, vocabulary: GivenVocabulary | None) -> bytes:
    """All settings that shape the result."""
    settings: dict[str, object] = {
        "version": VERSION,
        "data": config.data.model_dump(),
        "clean": config.clean.model_dump(),
        "text": config.text.model_dump(exclude={"bpe_dropout", "word_dropout"}),  # these are for training
        "vocab_sizes": (config.model.vocab_size, config.model.source_vocab_size),
        "seed": config.train.seed,
    }
    if config.is_parser:
        settings["parsing"] = config.parsing.model_dump(exclude={"constrained", "max_openings"})
    if config.reads != "pairs":
        settings["reads"] = config.reads
    if vocabulary is not None:
        settings["vocabulary"] = vocabulary.digest()
    return json.dumps(settings, sort_keys=True).encode()


# Preparing


@dataclass(slots=True)
class _Counts:
    """What went into a store and what did not, while it is written."""

    pairs: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    too_long: list[int] = field(default_factory=list[int])  # lines of the first few, ...
    num_too_long: int = 0  # ... and how many there are
    empty: list[int] = field(default_factory=list[int])
    num_empty: int = 0

    def add_left_out(self, *, too_long: list[int], empty: list[int]) -> None:
        """Count lines that are left out."""
        self.num_too_long += len(too_long)
        self.num_empty += len(empty)
        self.too_long += too_long[: NUM_LINES - len(self.too_long)]
        self.empty += empty[: NUM_LINES - len(self.empty)]

    def encoded(self) -> Encoded:
        """The counts as they are reported."""
        too_long, empty = Dropped(self.num_too_long, tuple(self.too_long)), Dropped(self.num_empty, tuple(self.empty))
        return Encoded(self.pairs, self.source_tokens, self.target_tokens, too_long, empty)


def _sum(counts: Sequence[_Counts]) -> Encoded:
    """The counts of all corpora together; lines only where there is one corpus, for they are those of a file."""
    if len(counts) == 1:
        return counts[0].encoded()
    whole = _Counts()
    for name in ("pairs", "source_tokens", "target_tokens", "num_too_long", "num_empty"):
        setattr(whole, name, sum(getattr(each, name) for each in counts))
    return whole.encoded()


def _build(
    config: RunConfig,
    data_dir: Path,
    out_dir: Path,
    *,
    vocabulary: GivenVocabulary | None,
    settings: bytes,
    digest: str,
    on_progress: Progress,
) -> Prepared:
    data = config.data
    validation, validation_gaps = _read_tagged(config, data_dir, "validation")
    test, test_gaps = _read_tagged(config, data_dir, "test")
    text = clean_corpora(config, data_dir, out_dir / CLEANED, on_progress=on_progress)
    if not data.validation_source:
        validation = [(text.corpora[number].config.tag, block) for number, block in text.blocks(~text.training)]
    sample = choose_sample(text, config)
    tokenizers = learn_vocabulary(text, sample, config, given=vocabulary, on_progress=on_progress)
    if config.model.embedding_sharing == "all":
        _check_one_table(*tokenizers)
    write_tokenizers(out_dir, *tokenizers)
    counters = [OverlapCounter(_pairs(part)) for part in (validation, test)]
    labels = find_labels(text) if config.reads == "labelled" else None
    coder = _Coder(tokenizers, config, labels)
    training = _encode_training(text, out_dir / "train", coder, config, counters=counters, on_progress=on_progress)
    encoded = {"train": _sum(training), "validation": _encode_validation(validation, out_dir / "validation", coder)}
    _check_encoded(encoded, data)
    _write_texts(validation, out_dir, "validation")
    if data.test_source:
        _write_texts(test, out_dir, "test")
    cleaning = text.cleaning()
    result = Report(
        digest=digest or _digest_of_text(settings, text.cleaned.path, chain(_pairs(validation), _pairs(test))),
        pairs_read=cleaning.num_read,
        pairs_clean=cleaning.num_kept,
        cleaning=tuple(cleaning.rows()),
        held_out=sum(corpus.held_out for corpus in text.corpora),
        source_vocab_size=tokenizers[0].vocab_size,
        target_vocab_size=tokenizers[1].vocab_size,
        train=encoded["train"],
        validation=encoded["validation"],
        validation_overlap=counters[0].result(),
        test_overlap=counters[1].result() if data.test_source else None,
        corpora=tuple(_corpus_reports(text, training, config)),
        learnt_pairs=int(sample.sum()),
        tags={"validation": _tags(validation), "test": _tags(test)},
        gaps={"validation": validation_gaps, "test": test_gaps},
        labels=() if labels is None else labels.names,
    )
    write_report(out_dir, result)
    return Prepared(out_dir, result, *tokenizers)


def _read_tagged(config: RunConfig, data_dir: Path, part: str) -> tuple[list[Tagged], Dropped]:
    """Named validation or test text, all of it in one block, and units that lack a side; nothing where none is named.

    Lines of text are all kept, as other tools score them. DataError when nothing is left.
    """
    tagged: list[Tagged] = []
    lines: list[int] = []
    for corpus in corpora_of(config.data, part):
        pairs = list(read_corpus(corpus, config, data_dir))
        whole = pairs
        if may_have_gaps(corpus.source, corpus.target, format=corpus.format):
            whole = [pair for pair in pairs if pair.source.strip() and pair.target.strip()]
            lines += [pair.line for pair in pairs if not (pair.source.strip() and pair.target.strip())]
        if lines and not whole:
            raise DataError(
                f"data/prepare: {corpus.source}: found nothing but units that lack a side ({len(pairs):,}), wanted "
                f"{part} text. Remedy: name a file with translations (data.{part}_source)."
            )
        tagged.append((corpus.tag, Block.of(whole)))
    return tagged, Dropped(len(lines), tuple(lines[:NUM_LINES]))


def _pairs(text: Iterable[Tagged]) -> Iterator[SentencePair]:
    return chain.from_iterable(block.pairs() for _, block in text)


def _tags(text: Iterable[Tagged]) -> list[tuple[str, int]]:
    """How many pairs of which tag, in the order of the text."""
    return [(tag, sum(len(block) for _, block in parts)) for tag, parts in groupby(text, key=lambda part: part[0])]


def _corpus_reports(text: TrainingText, training: Sequence[_Counts], config: RunConfig) -> Iterator[CorpusReport]:
    weights = text.weights([counts.pairs for counts in training], temperature=config.data.sampling_temperature)
    for corpus, counts, weight in zip(text.corpora, training, weights, strict=True):
        yield CorpusReport(
            name=corpus.config.source,
            tag=corpus.config.tag,
            weight=float(weight),
            pairs_read=corpus.cleaning.num_read,
            pairs_clean=corpus.cleaning.num_kept,
            cleaning=tuple(corpus.cleaning.rows()),
            held_out=corpus.held_out,
            pairs=counts.pairs,
            too_long=counts.encoded().too_long,
        )


# Encoding


class _Coder:
    """Turns pairs into ids, and leaves out what is too long or empty. Without sources, those have no ids.

    With ``labels`` targets are no text.
    """

    def __init__(self, tokenizers: tuple[Tokenizer, Tokenizer], config: RunConfig, labels: Labels | None) -> None:
        self._tokenizers = tokenizers
        self._max_tokens = config.data.max_tokens
        self._has_sources = config.reads != "text"
        source = source_coder(tokenizers[0], config.parsing) if config.is_parser else tokenizers[0]
        self._source = Encoder(source)
        text = self._source if tokenizers[0] is tokenizers[1] else Encoder(tokenizers[1])
        self._target = text if labels is None else labels
        self._target_size = tokenizers[1].vocab_size if labels is None else labels.size

    def open(self, folder: Path) -> StoreWriter:
        """A writer of a store with these vocabularies."""
        source = self._tokenizers[0].vocab_size
        return StoreWriter(folder, source_vocab_size=source, target_vocab_size=self._target_size)

    def write(self, block: Block, writer: StoreWriter, *, tag: str, counts: _Counts) -> None:
        """Add pairs to a store, and count them."""
        targets = self._target.encode(block.targets)
        sources = self._source.encode(block.sources) if self._has_sources else no_texts(len(block))
        if tag:
            sources = sources.after(self._tokenizers[0].tag_id(tag))
        texts = zip(block.sources, block.targets, strict=True)
        is_empty = np.array([not source.strip() or not target.strip() for source, target in texts], np.bool_)
        is_long = (np.maximum(sources.lengths, targets.lengths) + 1 > self._max_tokens) & ~is_empty
        left_out = [[block.lines[row] for row in np.flatnonzero(rows).tolist()] for rows in (is_long, is_empty)]
        counts.add_left_out(too_long=left_out[0], empty=left_out[1])
        kept = ~(is_long | is_empty)
        sources, targets = sources.some(kept), targets.some(kept)
        writer.extend(sources, targets)
        counts.pairs += int(kept.sum())
        counts.source_tokens += len(sources.ids)
        counts.target_tokens += len(targets.ids)


def _encode_training(
    text: TrainingText,
    folder: Path,
    coder: _Coder,
    config: RunConfig,
    *,
    counters: Sequence[OverlapCounter],
    on_progress: Progress,
) -> list[_Counts]:
    """Write the store of the training pairs, with the weights of their corpora; the counts of each corpus."""
    counts = [_Counts() for _ in text.corpora]
    seen = 0
    with coder.open(folder) as writer:
        for number, block in text.blocks(text.training):
            for source, target, line in zip(block.sources, block.targets, block.lines, strict=True):
                for counter in counters:
                    counter.see(source, target, line=line, corpus=text.name(number))
            coder.write(block, writer, tag=text.corpora[number].config.tag, counts=counts[number])
            seen += len(block)
            on_progress("encode", seen)
        writer.mix(_mixture([each.pairs for each in counts], text, config))
    return counts


def _mixture(sizes: Sequence[int], text: TrainingText, config: RunConfig) -> Mixture:
    """Corpora of these sizes with their weights. DataError when an epoch could be without a pair."""
    weights = text.weights(sizes, temperature=config.data.sampling_temperature)
    mixture = Mixture(tuple(Share(size, weight) for size, weight in zip(sizes, weights, strict=True)))
    if sum(sizes) and not mixture.fewest():
        raise DataError(
            f"data/prepare: corpora of {', '.join(f'{size:,}' for size in sizes)} pairs with the weights "
            f"{', '.join(f'{float(weight):g}' for weight in weights)} give epochs without a pair; wanted 1 at least. "
            "Raise the weights."
        )
    return mixture


def _encode_validation(text: Iterable[Tagged], folder: Path, coder: _Coder) -> Encoded:
    counts = _Counts()
    with coder.open(folder) as writer:
        for tag, block in text:
            coder.write(block, writer, tag=tag, counts=counts)
    return counts.encoded()


def _check_encoded(encoded: dict[str, Encoded], data: DataConfig) -> None:
    for part, counts in encoded.items():
        if counts.pairs:
            continue
        raise DataError(
            f"data/prepare: no {part} pair is left of {counts.too_long.count + counts.empty.count:,}: "
            f"{counts.too_long.count:,} have more than {data.max_tokens:,} tokens on a side, EOS counted, and "
            f"{counts.empty.count:,} an empty side; at least 1 is needed. Raise data.max_tokens, or add {part} text."
        )


def _write_texts(text: Iterable[Tagged], folder: Path, part: str) -> None:
    source_path, reference_path = text_paths(folder, part)
    with open_writer(source_path) as sources, open_writer(reference_path) as references:
        for pair in _pairs(text):
            for side in (pair.source, pair.target):
                if "\n" in side or side.endswith("\r"):
                    raise DataError(
                        f"data/prepare: {part} text, line {pair.line:,} of its file: found a line break in a sentence "
                        f"({side[:40]!r}), wanted one sentence a line. Take the line break out of that file."
                    )
            sources.write(pair.source + "\n")
            references.write(pair.target + "\n")
