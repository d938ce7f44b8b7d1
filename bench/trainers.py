"""One model of one toolkit, trained for some steps in a process of its own; ``bench/train.py`` starts it.

    python bench/trainers.py SPECIFICATION.json

Every case reads the same batches and begins with the same weights, made over to its own names and layout. Dropout is
where the paper has it (sums of embedding and position, outputs of sub-layers), and nowhere else. The peers get torch's
fused AdamW, no clipping. Headway keeps freed memory, as `headway train` does. Only what a case needs is imported, so
that a peer may live in another interpreter, without Headway.
"""

import json
import math
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

Ids = tuple[Tensor, Tensor, Tensor]  # source, target_in, target_out
Step = Callable[[Ids, int], float]
Specification = dict  # what bench/train.py writes: sizes, paths, precision, steps
LABEL_SMOOTHING, LEARNING_RATE, SEED = 0.1, 1e-4, 1
BETAS, EPSILON = (0.9, 0.98), 1e-9


def headway(spec: Specification, weights: dict[str, np.ndarray]) -> tuple[nn.Module, Step]:
    """Headway's own step, as ``headway train`` takes it."""
    from headway.config.model_config import ModelConfig
    from headway.config.train_config import TrainConfig
    from headway.data.batch import Batch
    from headway.model.build import build_transformer, load_weights
    from headway.train.objective import Likelihood
    from headway.train.optimizer import build_adam
    from headway.train.step import train_step

    train = TrainConfig(beta1=BETAS[0], beta2=BETAS[1], epsilon=EPSILON)
    model = build_transformer(ModelConfig.model_validate(spec["sizes"]))
    load_weights(model, weights)
    model = model.to(spec["device"]).train()
    optimizer = build_adam(model, train)

    def step(ids: Ids, number: int) -> float:
        result = train_step(
            model,
            optimizer,
            batches=[Batch(*ids)],
            step=number,
            seed=SEED,
            learning_rate=LEARNING_RATE,
            objective=Likelihood(LABEL_SMOOTHING),
            precision=spec["precision"],
        )
        return result.loss

    return model, step


def peer_step(spec: Specification, model: nn.Module, loss_of: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Step:
    """A step as people write it: the mean loss over real target tokens, autocast for bf16, fused AdamW."""
    device = torch.device(spec["device"])
    model.to(device).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=LEARNING_RATE, betas=BETAS, eps=EPSILON, weight_decay=0.0, fused=True
    )

    def step(ids: Ids, number: int) -> float:
        torch.manual_seed(number)
        source_BS, target_in_BT, target_out_BT = (side.to(device) for side in ids)
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=spec["precision"] == "bf16"):
            loss = loss_of(source_BS, target_in_BT, target_out_BT)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def cross_entropy(logits_BTV: Tensor, target_out_BT: Tensor) -> Tensor:
    """Torch's own, smoothed, over all positions but padding."""
    return functional.cross_entropy(
        logits_BTV.flatten(0, 1), target_out_BT.flatten(), ignore_index=0, label_smoothing=LABEL_SMOOTHING
    )


def hugging_face(spec: Specification, weights: dict[str, np.ndarray]) -> tuple[nn.Module, Step]:
    """MarianMTModel of transformers: the paper's layers, post-norm, sinusoids in halves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a third party says while it is imported
        from transformers import MarianConfig, MarianMTModel
    from headway.config.model_config import ModelConfig
    from headway.interchange.marian import to_marian

    sizes = spec["sizes"]
    model = MarianMTModel(
        MarianConfig(
            vocab_size=sizes["vocab_size"],
            d_model=sizes["d_model"],
            encoder_layers=sizes["num_encoder_layers"],
            decoder_layers=sizes["num_decoder_layers"],
            encoder_attention_heads=sizes["num_heads"],
            decoder_attention_heads=sizes["num_heads"],
            encoder_ffn_dim=sizes["d_ff"],
            decoder_ffn_dim=sizes["d_ff"],
            activation_function="relu",
            scale_embedding=True,
            max_position_embeddings=1024,
            dropout=sizes["dropout"],
            attention_dropout=0.0,
            activation_dropout=0.0,
            pad_token_id=0,
            bos_token_id=2,
            decoder_start_token_id=2,
            eos_token_id=3,
            forced_eos_token_id=None,
            attn_implementation=spec["attention"],
        )
    )
    theirs = to_marian(weights, ModelConfig.model_validate(sizes))
    outcome = model.load_state_dict({name: torch.from_numpy(array) for name, array in theirs.items()}, strict=False)
    tied = ("embed_tokens.weight", "embed_positions.weight", "lm_head.weight")
    assert not outcome.unexpected_keys
    assert all(name.endswith(tied) for name in outcome.missing_keys), outcome.missing_keys

    def loss_of(source_BS: Tensor, target_in_BT: Tensor, target_out_BT: Tensor) -> Tensor:
        output = model(
            input_ids=source_BS,
            attention_mask=(source_BS != 0).long(),
            decoder_input_ids=target_in_BT,
            use_cache=False,
        )
        return cross_entropy(output.logits, target_out_BT)

    return model, peer_step(spec, model, loss_of)


class TorchTransformer(nn.Module):
    """torch.nn.Transformer with one embedding matrix, sinusoids, and no norms behind the stacks."""

    def __init__(self, sizes: dict) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # told of the two norms that go
            self.body = nn.Transformer(
                sizes["d_model"],
                sizes["num_heads"],
                sizes["num_encoder_layers"],
                sizes["num_decoder_layers"],
                sizes["d_ff"],
                dropout=sizes["dropout"],
                layer_norm_eps=1e-6,
                batch_first=True,
            )
        self.body.encoder.norm = self.body.decoder.norm = None
        for module in self.body.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            elif isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout.p = 0.0  # inside the feed-forward network
        self.embedding = nn.Embedding(sizes["vocab_size"], sizes["d_model"], padding_idx=0)
        self.dropout = nn.Dropout(sizes["dropout"])
        self.scale = math.sqrt(sizes["d_model"])
        self.register_buffer("waves_TD", waves(1024, sizes["d_model"]), persistent=False)

    def forward(self, source_BS: Tensor, target_in_BT: Tensor) -> Tensor:
        """Logits. Padding stands behind the words, so a causal mask hides it from them."""
        hidden_BS = None if bool((source_BS != 0).all()) else source_BS == 0
        length = target_in_BT.shape[1]
        mask_TT = torch.ones(length, length, dtype=torch.bool, device=source_BS.device).triu(1)
        output_BTD = self.body(
            self.stem(source_BS),
            self.stem(target_in_BT),
            tgt_mask=mask_TT,
            src_key_padding_mask=hidden_BS,
            memory_key_padding_mask=hidden_BS,
            tgt_is_causal=True,
        )
        return functional.linear(output_BTD, self.embedding.weight)

    def stem(self, ids_BT: Tensor) -> Tensor:
        """Embedding, scaled, and position."""
        vectors_BTD = self.embedding(ids_BT) * self.scale + self.waves_TD[: ids_BT.shape[1]]
        return self.dropout(vectors_BTD)


def waves(length: int, d_model: int) -> Tensor:
    """Sinusoids as printed in the paper, sines and cosines in turn."""
    position_T1 = torch.arange(length, dtype=torch.float64)[:, None]
    angle = position_T1 / 10000.0 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


TORCH_PARTS = {
    "attention_sublayer.norm": "norm1",
    "self_sublayer.norm": "norm1",
    "cross_sublayer.norm": "norm2",
    "feed_forward.inner": "linear1",
    "feed_forward.outer": "linear2",
}


def torch_weights(weights: dict[str, np.ndarray], sizes: dict) -> dict[str, Tensor]:
    """Headway's weights by the names of ``TorchTransformer``."""
    found = {"embedding.weight": weights["source_stem.embedding.weight"]}
    for stack, norm in (("encoder", "norm2"), ("decoder", "norm3")):
        parts = {**TORCH_PARTS, "feed_forward_sublayer.norm": norm}
        for layer in range(sizes[f"num_{stack}_layers"]):
            ours, theirs = f"{stack}.layers.{layer}.", f"body.{stack}.layers.{layer}."
            for kind in ("weight", "bias"):
                for name, other in parts.items():
                    if ours + name + "." + kind in weights:
                        found[f"{theirs}{other}.{kind}"] = weights[f"{ours}{name}.{kind}"]
                for name, other in (("self_attention", "self_attn"), ("cross_attention", "multihead_attn")):
                    if f"{ours}{name}.query.{kind}" in weights:
                        three = [weights[f"{ours}{name}.{part}.{kind}"] for part in ("query", "key", "value")]
                        found[f"{theirs}{other}.in_proj_{kind}"] = np.concatenate(three)
                        found[f"{theirs}{other}.out_proj.{kind}"] = weights[f"{ours}{name}.output.{kind}"]
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in found.items()}


def plain_torch(spec: Specification, weights: dict[str, np.ndarray]) -> tuple[nn.Module, Step]:
    """torch.nn.Transformer."""
    model = TorchTransformer(spec["sizes"])
    model.load_state_dict(torch_weights(weights, spec["sizes"]))

    def loss_of(source_BS: Tensor, target_in_BT: Tensor, target_out_BT: Tensor) -> Tensor:
        return cross_entropy(model(source_BS, target_in_BT), target_out_BT)

    return model, peer_step(spec, model, loss_of)


JOEY_PARTS = {
    "self_attention.query": ("src_src_att.q_layer", "trg_trg_att.q_layer"),
    "self_attention.key": ("src_src_att.k_layer", "trg_trg_att.k_layer"),
    "self_attention.value": ("src_src_att.v_layer", "trg_trg_att.v_layer"),
    "self_attention.output": ("src_src_att.output_layer", "trg_trg_att.output_layer"),
    "attention_sublayer.norm": ("layer_norm", ""),
    "self_sublayer.norm": ("", "x_layer_norm"),
    "cross_attention.query": ("", "src_trg_att.q_layer"),
    "cross_attention.key": ("", "src_trg_att.k_layer"),
    "cross_attention.value": ("", "src_trg_att.v_layer"),
    "cross_attention.output": ("", "src_trg_att.output_layer"),
    "cross_sublayer.norm": ("", "dec_layer_norm"),
    "feed_forward.inner": ("feed_forward.pwff_layer.0", "feed_forward.pwff_layer.0"),
    "feed_forward.outer": ("feed_forward.pwff_layer.3", "feed_forward.pwff_layer.3"),
    "feed_forward_sublayer.norm": ("feed_forward.layer_norm", "feed_forward.layer_norm"),
}


def joey_weights(weights: dict[str, np.ndarray]) -> dict[str, Tensor]:
    """Headway's weights by JoeyNMT's names."""
    table = weights["source_stem.embedding.weight"]
    found = {f"{name}.weight": table for name in ("src_embed.lut", "trg_embed.lut", "decoder.output_layer")}
    for name, array in weights.items():
        if ".layers." in name:
            stack, _, layer, part = name.split(".", 3)
            part, kind = part.rsplit(".", 1)
            found[f"{stack}.layers.{layer}.{JOEY_PARTS[part][stack == 'decoder']}.{kind}"] = array
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in found.items()}


def joey(spec: Specification, weights: dict[str, np.ndarray]) -> tuple[nn.Module, Step]:
    """JoeyNMT's own model and loss (smoothed targets as a tokens x V matrix), with the optimizer of the other peers."""
    from types import SimpleNamespace

    from joeynmt.decoders import TransformerDecoder
    from joeynmt.embeddings import Embeddings
    from joeynmt.encoders import TransformerEncoder
    from joeynmt.model import Model
    from joeynmt.vocabulary import Vocabulary

    sizes = spec["sizes"]
    marks = {"unk_token": "U", "pad_token": "P", "bos_token": "B", "eos_token": "E", "sep_token": None}
    numbers = {"unk_id": 0, "pad_id": 1, "bos_id": 2, "eos_id": 3, "sep_id": None}  # its own order
    vocabulary = Vocabulary([], SimpleNamespace(**marks, **numbers, lang_tags=[]))
    vocabulary.pad_index, vocabulary.unk_index = 0, 1  # Headway's
    common = {
        "hidden_size": sizes["d_model"],
        "ff_size": sizes["d_ff"],
        "num_heads": sizes["num_heads"],
        "dropout": sizes["dropout"],
        "emb_dropout": sizes["dropout"],
        "layer_norm": "post",
    }
    embedding = Embeddings(sizes["d_model"], scale=True, vocab_size=sizes["vocab_size"], padding_idx=0)
    encoder = TransformerEncoder(num_layers=sizes["num_encoder_layers"], **common)
    decoder = TransformerDecoder(num_layers=sizes["num_decoder_layers"], vocab_size=sizes["vocab_size"], **common)
    decoder.output_layer.weight = embedding.lut.weight
    model = Model(encoder, decoder, embedding, embedding, vocabulary, vocabulary)
    outcome = model.load_state_dict(joey_weights(weights), strict=False)
    assert not outcome.unexpected_keys
    assert all(name.endswith(".pe.pe") for name in outcome.missing_keys), outcome.missing_keys
    for name, module in model.named_modules():  # dropout inside attention and feed-forward, which the paper has not
        if name.endswith(("_att.dropout", "pwff_layer.2")):
            module.p = 0.0
    model.loss_function = ("crossentropy", LABEL_SMOOTHING)
    others = sizes["vocab_size"] - 2
    kept, spread = 1.0 - LABEL_SMOOTHING, LABEL_SMOOTHING
    entropy = -(kept * math.log(kept) + spread * math.log(spread / others))  # its loss is a divergence: this is less

    def loss_of(source_BS: Tensor, target_in_BT: Tensor, target_out_BT: Tensor) -> Tensor:
        total, *_ = model(
            return_type="loss",
            src=source_BS,
            src_mask=(source_BS != 0)[:, None],
            src_length=None,
            trg_input=target_in_BT,
            trg=target_out_BT,
            trg_mask=(target_out_BT != 0)[:, None],
        )
        return total / (target_out_BT != 0).sum() + entropy

    return model, peer_step(spec, model, loss_of)


TRAINERS = {"headway": headway, "hf": hugging_face, "torch": plain_torch, "joeynmt": joey}


def read_batches(path: Path) -> list[Ids]:
    """What ``bench/train.py`` wrote."""
    arrays = np.load(path)
    count = len(arrays.files) // 3
    return [
        (
            torch.from_numpy(arrays[f"source_{number}"]),
            torch.from_numpy(arrays[f"target_in_{number}"]),
            torch.from_numpy(arrays[f"target_out_{number}"]),
        )
        for number in range(count)
    ]


def peak_bytes(device: str) -> int:
    """The most memory that this process ever held; on a GPU, there."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").split("\n"):
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def run(spec: Specification) -> dict[str, object]:
    """Some steps that are not counted, then those that are."""
    if spec["trainer"] == "headway":
        from headway.train.memory import settle_memory

        settle_memory()  # as `headway train` does; a peer is given the same by its environment
    torch.set_num_threads(spec["threads"])
    batches = read_batches(Path(spec["batches"]))
    with np.load(spec["weights"]) as arrays:
        weights = {name: arrays[name] for name in arrays.files}
    model, step = TRAINERS[spec["trainer"]](spec, weights)
    del weights
    before = peak_bytes(spec["device"])
    losses: list[float] = []
    seconds: list[float] = []
    tokens: list[int] = []
    for number in range(1, spec["warm_up"] + spec["steps"] + 1):
        ids = batches[(number - 1) % len(batches)]
        begin = time.perf_counter()
        losses.append(step(ids, number))
        seconds.append(time.perf_counter() - begin)
        tokens.append(int((ids[0] != 0).sum() + (ids[2] != 0).sum()))
    counted = slice(spec["warm_up"], None)
    return {
        "tokens_per_second": sum(tokens[counted]) / sum(seconds[counted]),
        "seconds": seconds,
        "losses": losses,
        "before_bytes": before,
        "peak_bytes": peak_bytes(spec["device"]),
        "parameters": sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
    }


if __name__ == "__main__":
    print(json.dumps(run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
