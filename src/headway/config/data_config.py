"""What a run reads: the sections ``[data]``, ``[clean]`` and ``[text]``."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from headway.config.section import Count, Probability, Section

Tag = Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$")]
Format = Literal["auto", "moses", "tsv", "jsonl", "tmx", "po", "xliff", "parquet", "text", "consecutive", "trees"]


class CorpusConfig(Section):
    """One of several training corpora, a table ``[[data.corpora]]``: its files, its share, and its tag."""

    source: str = Field(min_length=1)
    target: str = ""  # empty: source holds both sides
    format: Format = "auto"  # auto: data.format
    source_field: str = ""  # empty, these four: that of [data]
    target_field: str = ""
    source_language: str = ""
    target_language: str = ""
    weight: Annotated[float, Field(gt=0.0, le=1000.0)] = 1.0  # how often a pair of it comes in an epoch
    tag: Tag = ""  # a reserved token before each of its sources; empty: none


class DataConfig(Section):
    """Where the parallel text lies and what it is. File names are relative to the data folder (``--data``)."""

    source_language: str = ""
    target_language: str = ""
    format: Format = "auto"
    train_source: str = ""
    train_target: str = ""  # empty: train_source holds both sides (TSV, JSONL)
    corpora: list[CorpusConfig] = Field(default_factory=list[CorpusConfig])  # in place of train_source's one
    sampling_temperature: Annotated[float, Field(ge=1.0)] = 1.0  # corpora's shares of an epoch, to the power of 1 / it
    validation_source: str = ""
    validation_target: str = ""
    test_source: str = ""
    test_target: str = ""
    validation_tag: Tag = ""  # the tag of named validation text; held-out pairs keep that of their corpus
    test_tag: Tag = ""
    inline_tags: Literal["drop", "keep"] = "drop"  # of TMX and XLIFF: left out, or <g id="1">...</g> and <x id="2"/>
    # TSV: a column number from 1; JSONL: a key. Empty: 1 and 2; language codes, source and target
    source_field: str = ""
    target_field: str = ""
    held_out_pairs: Count = 1000  # taken from training, by seed, when no validation files are named ...
    held_out_share: Probability = 0.05  # ... but never more than this share of the corpus
    max_tokens: Count = 256  # longer sentences (in tokens, EOS counted) are dropped and counted

    @model_validator(mode="after")
    def _check_corpora(self) -> Self:
        if self.corpora and (self.train_source or self.train_target):
            raise ValueError(
                f"both data.train_source ({self.train_source!r}) and [[data.corpora]] ({len(self.corpora)}) name "
                "training text; take out the one, or make it one of the others"
            )
        return self

    @property
    def training_corpora(self) -> list[CorpusConfig]:
        """The training corpora, each with its format, fields and languages; train_source gives a list of one."""
        corpora = self.corpora
        if self.train_source:
            corpora = [CorpusConfig(source=self.train_source, target=self.train_target)]
        unset = {"format": "auto", "source_field": "", "target_field": "", "source_language": "", "target_language": ""}
        return [
            corpus.model_copy(
                update={name: getattr(self, name) for name, value in unset.items() if getattr(corpus, name) == value}
            )
            for corpus in corpora
        ]


class CleanConfig(Section):
    """The plain filters a training pair must pass. A filter set to 0 or false is off; empty sides always go."""

    max_characters: Annotated[int, Field(ge=0)] = 5000  # on either side
    max_ratio: Annotated[float, Field(ge=0.0)] = 9.0  # of the longer side to the shorter, in characters ...
    ratio_from_characters: Annotated[int, Field(ge=0)] = 20  # ... judged only when the longer side has this many
    drop_identical: bool = True
    drop_duplicates: bool = True
    drop_control_characters: bool = True


class TextConfig(Section):
    """How text becomes token ids."""

    model: Literal["bpe", "wordpiece", "unigram"] = "bpe"
    shared_vocabulary: bool = True
    byte_fallback: bool = True
    bpe_dropout: Probability = 0.0  # in training: of a merge to be left out; drawn anew in every epoch
    word_dropout: Probability = 0.0  # in training: of a source token to be read as unknown; drawn anew likewise
    sample_pairs: Annotated[int, Field(ge=0)] = 1_000_000  # the vocabulary is learnt from so many at most; 0: from all

    @model_validator(mode="after")
    def _check_dropout(self) -> Self:
        if self.bpe_dropout and self.model != "bpe":
            raise ValueError(
                f"bpe_dropout is {self.bpe_dropout:g} and model is {self.model}, which has no merges to leave out; "
                "set text.model to bpe, or text.bpe_dropout to 0"
            )
        return self
