"""What a run is: all sections of a recipe, and what must hold between them."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from headway.config.architecture import ONE_SIDED, SEQUENTIAL
from headway.config.data_config import CleanConfig, DataConfig, TextConfig
from headway.config.model_config import ModelConfig
from headway.config.section import Count, Section
from headway.config.train_config import TrainConfig


class SearchConfig(Section):
    """Decoding as in Section 6.1 of the paper."""

    beam_size: Count = 4
    length_penalty: Annotated[float, Field(ge=0.0)] = 0.6
    max_extra_tokens: Count = 50  # output may have source length + this many tokens, EOS counted
    no_repeat_ngram: Annotated[int, Field(ge=0)] = 0  # no run of so many tokens occurs twice in an output; 0: no rule
    split_sentences: bool = False  # a line of several sentences is translated sentence by sentence


class ParsingConfig(Section):
    """How trees become pairs, where ``data.format`` is trees: words as source, the tree as symbols as target."""

    style: Literal["tags", "xx", "binary", "binary-xx"] = (
        "tags"  # of symbols: a word is its tag, or XX; in two branches
    )
    tags: Literal["predicted", "given"] = "predicted"  # given: each word's tag is read with it, and is in its tree
    words: bool = True  # are read; false: given tags alone
    functions: Literal["strip", "keep"] = "strip"  # of labels: NP-SBJ becomes NP
    traces: Literal["strip", "keep"] = "strip"  # words that are not there: (-NONE- *T*-1)
    constrained: bool = True  # outputs are searched among trees over the words ...
    max_openings: Count = 10  # ... in which no more phrases than this begin one in the other, at one word
    word_reward: Annotated[float, Field(ge=0.0)] = (
        0.0  # ... and a hypothesis is ranked by so many nats higher for each word that it has
    )

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if not self.words and self.tags == "predicted":
            raise ValueError(
                "words is false and tags are predicted, so a source would hold nothing; set parsing.tags to given, or "
                "parsing.words to true"
            )
        return self


class EvaluateConfig(Section):
    """How the finished model is scored on the test files."""

    tokenize: str = "auto"  # a sacreBLEU tokenizer, or auto: it follows the target language
    lowercase: bool = False


class RunConfig(Section):
    """One run: what a recipe says, with every default filled in."""

    title: str = ""
    note: str = ""
    data: DataConfig = Field(default_factory=DataConfig)
    clean: CleanConfig = Field(default_factory=CleanConfig)
    text: TextConfig = Field(default_factory=TextConfig)
    model: ModelConfig = Field(default_factory=ModelConfig)
    train: TrainConfig = Field(default_factory=TrainConfig)
    search: SearchConfig = Field(default_factory=SearchConfig)
    evaluate: EvaluateConfig = Field(default_factory=EvaluateConfig)
    parsing: ParsingConfig = Field(default_factory=ParsingConfig)

    @property
    def is_parser(self) -> bool:
        """Whether the run trains on trees."""
        return self.data.format == "trees"

    @property
    def translates(self) -> bool:
        """Whether it trains a translator: on pairs of sentences, of which the target is no tree."""
        return self.reads == "pairs" and not self.is_parser

    @model_validator(mode="after")
    def _check_parsing(self) -> Self:
        train = self.train
        formats = {corpus.format for corpus in self.data.training_corpora} | {self.data.format}
        if "trees" in formats and len(formats) > 1:
            raise ValueError(
                f"formats {', '.join(sorted(formats))} are mixed, and trees go with trees alone; set data.format to "
                "trees and leave out that of [[data.corpora]]"
            )
        if not self.is_parser:
            if self.model.counts_words:
                raise ValueError(
                    "positions and cross_positions words count the words that trees are written over, and data.format "
                    f"is {self.data.format}; set data.format to trees, or take them out of [model]"
                )
            if "f1" in (train.best_by, train.early_stopping):
                raise ValueError(
                    f"data.format is {self.data.format}, whose outputs have no F1; set data.format to trees, or "
                    "train.best_by and train.early_stopping to another measure"
                )
            if self.parsing != ParsingConfig():
                raise ValueError(
                    f"data.format is {self.data.format}, for which [parsing] means nothing; set data.format to trees, "
                    "or take [parsing] out"
                )
            return self
        if self.model.architecture in ONE_SIDED:
            raise ValueError(
                f"data.format is trees, which a model with a source and a target writes, and model.architecture is "
                f"{self.model.architecture}; set data.format to another, or take model.architecture out"
            )
        if self.text.shared_vocabulary:
            raise ValueError(
                "data.format is trees, whose symbols have a vocabulary of their own; set text.shared_vocabulary to "
                "false, and model.embedding_sharing to target or none"
            )
        if self.search.no_repeat_ngram:
            raise ValueError(
                f"search.no_repeat_ngram is {self.search.no_repeat_ngram}, and trees repeat their symbols; set it to 0"
            )
        return self

    @model_validator(mode="after")
    def _check_sentences(self) -> Self:
        if self.search.split_sentences and not self.translates:
            raise ValueError(
                "search.split_sentences is about translating, and this recipe trains a model of another kind; set it "
                "to false"
            )
        return self

    @model_validator(mode="after")
    def _check_passes(self) -> Self:
        train, model = self.train, self.model
        drops = model.dropout or model.attention_dropout or model.activation_dropout
        if train.consistency == "none" or drops or (train.consistency == "cutoff" and train.cutoff_share):
            return self
        raise ValueError(
            f"train.consistency is {train.consistency}, but its two passes are equal: no dropout of model is above 0, "
            "and no token is cut; set model.dropout (usual: 0.1 to 0.3), or train.consistency to none"
        )

    @model_validator(mode="after")
    def _check_transformer(self) -> Self:
        """Refuse what works on a Transformer's own parts; what another architecture lacks would be left out unseen."""
        needing = {
            "optimizer": self.train.optimizer == "muon",
            "lora_rank": self.train.lora_rank is not None,
            "sharding": self.train.sharding != "none",
        }
        found = [name for name, needs in needing.items() if needs]
        if self.model.architecture in SEQUENTIAL and found:
            raise ValueError(
                f"train.{found[0]} is {getattr(self.train, found[0])}, which works on the layers of a Transformer, and "
                f"model.architecture is {self.model.architecture}; take train.{found[0]} out"
            )
        return self

    @model_validator(mode="after")
    def _check_one_sided(self) -> Self:
        if self.model.architecture not in ONE_SIDED:
            return self
        measured = {"best_by": self.train.best_by, "early_stopping": self.train.early_stopping}
        for name, value in measured.items():
            if value in ("bleu", "chrf"):
                raise ValueError(
                    f"train.{name} is {value} and model.architecture {self.model.architecture} gives no translations "
                    f"to score; set train.{name} to loss, perplexity or accuracy"
                )
        if not self.text.shared_vocabulary:
            raise ValueError(
                f"text.shared_vocabulary is false and model.architecture {self.model.architecture} reads one text, so "
                "it has one vocabulary; set text.shared_vocabulary to true"
            )
        return self

    @model_validator(mode="after")
    def _check_objective(self) -> Self:
        train, architecture = self.train, self.model.architecture
        if (train.objective == "target") != (architecture != "encoder_only"):
            wanted = "masked or labels" if architecture == "encoder_only" else "target"
            raise ValueError(
                f"train.objective is {train.objective} and model.architecture {architecture}; set train.objective to "
                f"{wanted}, or choose another model.architecture"
            )
        if train.next_sentence and train.objective != "masked":
            raise ValueError(
                f"train.next_sentence goes with train.objective masked, which is {train.objective}; "
                "set train.next_sentence to false"
            )
        unfit = {
            "train.consistency": train.consistency != "none",
            "train.sharding": train.sharding != "none",
            "text.bpe_dropout": bool(self.text.bpe_dropout) and train.objective == "labels",
        }
        if architecture == "encoder_only" and any(unfit.values()):
            name = next(name for name, is_unfit in unfit.items() if is_unfit)
            raise ValueError(f"{name} is not for model.architecture encoder_only and this objective; take {name} out")
        return self

    @property
    def reads(self) -> Literal["pairs", "text", "consecutive", "labelled"]:
        """What a line of training text is: a pair, one text, one text with that after it, or a text and its label."""
        if self.model.architecture not in ONE_SIDED:
            return "pairs"
        if self.train.objective == "labels":
            return "labelled"
        return "consecutive" if self.train.next_sentence else "text"

    @model_validator(mode="after")
    def _check_vocabularies(self) -> Self:
        # An imported model may take the two sides apart in two ways, into the tokens of one table.
        if not self.text.shared_vocabulary and self.model.embedding_sharing == "all" and not self.train.init:
            raise ValueError(
                "text.shared_vocabulary is false but model.embedding_sharing is all; "
                "set model.embedding_sharing to target or none"
            )
        return self
