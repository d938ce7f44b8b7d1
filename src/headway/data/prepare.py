"""From files of parallel text to what training reads: cleaned, divided, encoded by a vocabulary learnt from it."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path

from headway.config.data_config import DataConfig
from headway.config.schema import RunConfig
from headway.corpus.lines import open_writer
from headway.corpus.overlap import OverlapCounter
from headway.corpus.pair import SentencePair
from headway.corpus.read import may_have_gaps
from headway.data.cleaned import Block
from headway.data.corpora import Progress, TrainingText, clean_corpora, corpora_of, read_corpus
from headway.data.digest import digest_of_files, digest_of_text, settings_of
from headway.data.encoding import (
    NUM_LINES,
    Coder,
    Counts,
    Tagged,
    encode_training,
    encode_validation,
    sum_of,
)
from headway.data.given import GivenVocabulary
from headway.data.labels import find_labels
from headway.data.named_files import check_files, check_settings
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
from headway.data.vocabulary import check_one_table, choose_sample, learn_vocabulary
from headway.errors import DataError

CLEANED = "cleaned.blocks"
BESIDE = ".headway-prepare"  # a folder within that of the result, until all is whole


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
    settings = settings_of(config, vocabulary)
    digest = digest_of_files(config, data_dir, settings=settings)
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
    return digest_of_files(config, data_dir, settings=settings_of(config, None))


def _checked(prepared: Prepared, check: Callable[[Prepared], None] | None) -> None:
    if check is not None:
        check(prepared)


def _ignore(stage: str, count: int) -> None:
    """Nobody listens."""


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
        check_one_table(*tokenizers)
    write_tokenizers(out_dir, *tokenizers)
    counters = [OverlapCounter(_pairs(part)) for part in (validation, test)]
    labels = find_labels(text) if config.reads == "labelled" else None
    coder = Coder(tokenizers, config, labels=labels)
    training = encode_training(
        text, out_dir / "train", coder=coder, config=config, counters=counters, on_progress=on_progress
    )
    encoded = {
        "train": sum_of(training),
        "validation": encode_validation(validation, out_dir / "validation", coder=coder),
    }
    _check_encoded(encoded, data)
    _write_texts(validation, out_dir, "validation")
    if data.test_source:
        _write_texts(test, out_dir, "test")
    cleaning = text.cleaning()
    result = Report(
        digest=digest
        or digest_of_text(settings, cleaned=text.cleaned.path, texts=chain(_pairs(validation), _pairs(test))),
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


def _corpus_reports(text: TrainingText, training: Sequence[Counts], config: RunConfig) -> Iterator[CorpusReport]:
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
