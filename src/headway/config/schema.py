"""What a run is. Every section is strict and frozen: an unknown key or a wrong type is an error, never a guess."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from headway.config.architecture import SEQUENTIAL, UNUSED, check_architecture

Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0.0)]
Component = Literal[
    "embeddings",
    "positions",
    "encoder",
    "decoder",
    "self_attention",
    "cross_attention",
    "feed_forward",
    "norms",
    "output",
]  # parts of a model that training may leave as they are
CUTOFF_SHARE = 0.05
ONE_SIDED = ("decoder_only", "encoder_only")  # architectures of one stack: they read one text, and give no translation
Tag = Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*)?$")]
Format = Literal["auto", "moses", "tsv", "jsonl", "tmx", "po", "xliff", "parquet", "text", "consecutive", "trees"]


class Section(BaseModel):
    """One table of a recipe."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, validate_default=True, allow_inf_nan=False, defer_build=True
    )


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
    corpora: list[CorpusConfig] = []  # several, in place of the one of train_source
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


class ModelConfig(Section):
    """The Transformer of the paper; every axis of its Table 3. Defaults are the base model."""

    architecture: Literal["transformer", "recurrent", "convolutional", "decoder_only", "encoder_only"] = "transformer"
    vocab_size: Count = 37_000  # of the shared vocabulary, or of the target side's
    source_vocab_size: Count | None = None  # only with separate vocabularies
    d_model: Count = 512
    d_ff: Count = 2048
    num_heads: Count = 8
    d_k: Count | None = None  # absent: d_model / num_heads
    d_v: Count | None = None
    num_encoder_layers: Count = 6
    num_decoder_layers: Count = 6
    dropout: Probability = 0.1
    attention_bias: bool = False  # the paper's equations have none in W^Q W^K W^V W^O
    positions: Literal["sinusoidal", "learned", "none", "rope", "alibi", "t5"] = "sinusoidal"
    max_positions: Count = 1024  # rows of the learned table
    embedding_sharing: Literal["all", "target", "none"] = "all"  # target: decoder input and softmax
    # What came after the paper; the defaults are the paper's. Each may be combined with every other but where said.
    norm_placement: Literal["post", "pre"] = "post"
    norm: Literal["layer", "rms"] = "layer"
    norm_epsilon: Positive = 1e-6  # the paper gives none; its code has this
    activation: Literal["relu", "gelu", "silu", "swiglu"] = "relu"
    num_kv_heads: Count | None = None  # heads of keys and values; absent: num_heads
    attention_score: Literal["scaled", "unscaled", "additive"] = "scaled"  # of a query and a key
    attention_window: Count | None = None  # self-attention sees this many tokens to a side; absent: all
    attention_dropout: Probability = 0.0  # on attention weights
    activation_dropout: Probability = 0.0  # inside the feed-forward network
    residual_scaling: Literal["none", "deepnorm"] = "none"  # deepnorm: only with norm_placement post
    embedding_scale: bool = True  # embeddings times sqrt(d_model)
    output_bias: bool = False  # a number a token, added to the logits
    recurrent_cell: Literal["lstm", "gru"] = "lstm"  # only with architecture recurrent
    kernel_size: Count = 3  # positions that a convolution sees; only with architecture convolutional
    num_classes: Count | None = None  # that an encoder alone tells apart; training counts them

    @model_validator(mode="after")
    def _check_unused(self) -> Self:
        check_architecture(self.architecture, self.model_dump(exclude_defaults=True))
        if self.architecture == "recurrent" and self.d_model % 2:
            raise ValueError(
                f"architecture recurrent reads sources from both ends, with half of d_model each, and d_model is "
                f"{self.d_model}; set model.d_model to an even number"
            )
        return self

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        has_heads = "num_heads" not in UNUSED[self.architecture]
        for name, value in (("d_k", self.d_k), ("d_v", self.d_v)):
            if has_heads and value is None and self.d_model % self.num_heads:
                raise ValueError(
                    f"d_model {self.d_model} is not divisible by num_heads {self.num_heads} and {name} is not given; "
                    f"set model.{name}, or choose num_heads from the divisors of {self.d_model}"
                )
        if self.source_vocab_size is not None and self.embedding_sharing == "all":
            raise ValueError(
                "source_vocab_size needs separate embeddings; set model.embedding_sharing to target or none"
            )
        return self

    @model_validator(mode="after")
    def _check_architecture(self) -> Self:
        if self.architecture in ONE_SIDED and self.source_vocab_size is not None:
            raise ValueError(
                f"architecture {self.architecture} reads one text and source_vocab_size is {self.source_vocab_size}; "
                "take model.source_vocab_size out"
            )
        if self.num_classes is not None and self.architecture != "encoder_only":
            raise ValueError(
                f"num_classes is {self.num_classes} and architecture {self.architecture} tells no classes apart; "
                "take model.num_classes out"
            )
        return self

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if self.num_heads % self.kv_heads:
            raise ValueError(
                f"num_kv_heads {self.kv_heads} does not divide num_heads {self.num_heads}; "
                f"set model.num_kv_heads to a divisor of {self.num_heads}"
            )
        if self.residual_scaling == "deepnorm" and self.norm_placement == "pre":
            raise ValueError(
                "residual_scaling deepnorm is defined for post-norm and norm_placement is pre; "
                "set model.norm_placement to post, or model.residual_scaling to none"
            )
        if self.positions == "rope" and self.key_size % 2:
            raise ValueError(
                f"positions rope turns pairs of numbers and the size of a key is {self.key_size}, which is odd; "
                "set model.d_k to an even number, or choose other positions"
            )
        return self

    @property
    def key_size(self) -> int:
        """d_k, given or d_model / num_heads."""
        return self.d_model // self.num_heads if self.d_k is None else self.d_k

    @property
    def value_size(self) -> int:
        """d_v, given or d_model / num_heads."""
        return self.d_model // self.num_heads if self.d_v is None else self.d_v

    @property
    def kv_heads(self) -> int:
        """num_kv_heads, given or num_heads."""
        return self.num_heads if self.num_kv_heads is None else self.num_kv_heads


class TrainConfig(Section):
    """The paper's training recipe (Section 5) and how a run is kept."""

    seed: Annotated[int, Field(ge=0)] = 1
    max_steps: Count = 100_000
    max_epochs: Count | None = None
    max_minutes: Positive | None = None  # of training time, all resumptions together
    batch_tokens: Count = 25_000  # a step's budget of padded tokens on the longer side
    microbatch_tokens: Count | None = None  # the most that one forward and backward holds; absent: the whole step
    warmup_steps: Count = 4000
    learning_rate: Positive | None = None  # the peak; absent: d_model^-0.5 * warmup_steps^-0.5, the paper's
    schedule: Literal["noam", "linear", "cosine", "constant"] = "noam"  # of the rate after its peak
    optimizer: Literal["adam", "schedule_free", "muon"] = "adam"
    beta1: Probability = 0.9
    beta2: Probability = 0.98
    epsilon: Positive = 1e-9
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0  # decoupled, of matrices alone
    label_smoothing: Probability = 0.1
    objective: Literal["target", "masked", "labels"] = "target"  # the last two of an encoder alone
    masked_share: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.15  # of the tokens of a text, with objective masked
    next_sentence: bool = False  # and whether the second line follows the first, with objective masked
    # two passes of each microbatch that are to agree: other dropout masks (R-Drop), or tokens cut too (SimCut)
    consistency: Literal["none", "rdrop", "cutoff"] = "none"
    consistency_weight: Positive | None = None  # alpha; absent: 5 for rdrop, 3 for cutoff
    cutoff_share: Probability = CUTOFF_SHARE  # of the tokens whose embeddings the second pass of cutoff reads as zeros
    clip_norm: Positive | None = None
    precision: Literal["auto", "float32", "bf16"] = "auto"
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    threads: Count | None = None  # of each process; absent: as many as torch takes
    sharding: Literal["none", "fsdp"] = "none"  # fsdp: each of several processes holds a part of every parameter
    validate_every: Count = 1000  # steps
    validation_sentences: Count = 1000  # decoded at each validation; the loss always takes all
    checkpoint_every: Count = 1000  # steps
    keep_last: Count = 5
    keep_best: Count = 5
    best_by: Literal["loss", "perplexity", "accuracy", "bleu", "chrf", "f1"] = "bleu"  # f1: of parsers alone
    early_stopping: Literal["none", "loss", "perplexity", "accuracy", "bleu", "chrf", "f1"] = "none"
    patience: Count = 10  # validations without a better value
    average: Literal["last", "best", "none"] = "last"
    average_count: Count = 5
    moving_average: Probability | None = None  # decay a step; the averaged weights are those that count
    init: str = ""  # a model folder whose weights and vocabulary the run begins with; empty: drawn by the seed
    freeze: list[Component] = []  # components that keep their weights: encoder, decoder, embeddings ...
    extend_vocabulary: Annotated[int, Field(ge=0)] = 0  # tokens learnt from the new text, put behind those of init
    lora_rank: Count | None = None  # train low-rank additions to the attention of init, all else frozen
    lora_alpha: Positive | None = None  # the additions count alpha / rank; absent: as the rank, so 1

    @model_validator(mode="after")
    def _check_schedule(self) -> Self:
        if self.schedule in ("linear", "cosine") and self.max_steps <= self.warmup_steps:
            raise ValueError(
                f"schedule {self.schedule} falls from warmup_steps ({self.warmup_steps:,}) to max_steps "
                f"({self.max_steps:,}), which is no later; raise train.max_steps, or lower train.warmup_steps"
            )
        return self

    @model_validator(mode="after")
    def _check_optimizer(self) -> Self:
        if self.optimizer == "schedule_free":
            if self.schedule != "constant":
                raise ValueError(
                    f"optimizer schedule_free averages in the place of a fall and schedule is {self.schedule}; "
                    "set train.schedule to constant"
                )
            if self.moving_average is not None:
                raise ValueError(
                    f"optimizer schedule_free has an average of its own and moving_average is {self.moving_average:g}; "
                    "take train.moving_average out"
                )
            if self.beta1 < 0.5:
                raise ValueError(
                    f"optimizer schedule_free finds its average through beta1, which is {self.beta1:g}; "
                    "set train.beta1 to 0.5 or more (usual: 0.9)"
                )
        if self.optimizer == "muon" and (self.sharding != "none" or self.lora_rank is not None):
            raise ValueError(
                "optimizer muon works on whole matrices of the model itself; set train.sharding to none and take "
                "train.lora_rank out, or choose optimizer adam"
            )
        return self

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.consistency == "none" and self.consistency_weight is not None:
            raise ValueError(
                f"consistency_weight is {self.consistency_weight:g} and consistency is none; set train.consistency to "
                "rdrop or cutoff, or take consistency_weight out"
            )
        if self.consistency != "cutoff" and self.cutoff_share != CUTOFF_SHARE:
            raise ValueError(
                f"cutoff_share is {self.cutoff_share:g} and consistency is {self.consistency}, which cuts no tokens; "
                "set train.consistency to cutoff, or take cutoff_share out"
            )
        return self

    @model_validator(mode="after")
    def _check_additions(self) -> Self:
        if self.lora_alpha is not None and self.lora_rank is None:
            raise ValueError("lora_alpha is set but lora_rank is not; set train.lora_rank, or take lora_alpha out")
        if self.lora_rank is not None and (self.freeze or self.extend_vocabulary or self.sharding != "none"):
            raise ValueError(
                "lora_rank freezes all weights but its own, of models whole on each process; take out freeze, "
                "extend_vocabulary and sharding, or lora_rank"
            )
        if self.freeze and self.sharding != "none":
            raise ValueError("freeze needs a model that is whole on each process; set train.sharding to none")
        return self


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
        if self.search.split_sentences and (self.is_parser or self.reads != "pairs"):
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
