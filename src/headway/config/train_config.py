"""How a model is trained: the section ``[train]``."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from headway.config.learning_rate import FALLING
from headway.config.section import Count, Positive, Probability, Section

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
    validation_beam_size: Count | None = None  # with which they are; absent: search.beam_size
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
    freeze: list[Component] = Field(default_factory=list[Component])  # components that keep their weights
    extend_vocabulary: Annotated[int, Field(ge=0)] = 0  # tokens learnt from the new text, put behind those of init
    lora_rank: Count | None = None  # train low-rank additions to the attention of init, all else frozen
    lora_alpha: Positive | None = None  # the additions count alpha / rank; absent: as the rank, so 1

    @model_validator(mode="after")
    def _check_schedule(self) -> Self:
        if self.schedule in FALLING and self.max_steps <= self.warmup_steps:
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
