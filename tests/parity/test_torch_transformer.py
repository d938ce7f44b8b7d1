"""With equal weights, Headway's model is torch.nn.Transformer, without its two final norms where layers end in one.

The paper's layers are post-norm: each ends in a norm, and the stacks have none of their own. torch.nn.Transformer adds
one to each stack; with post-norm they are taken out here. Pre-norm has them, as torch's norm_first. Its masks say True
for "hidden", Headway's for "may be attended".

Shapes: B sentences, S source positions, T target positions, V vocabulary.
"""

import math
import warnings

import pytest
import torch
from torch import nn

from headway.config.model_config import ModelConfig
from headway.model.build import build_transformer

CONFIG = ModelConfig(
    vocab_size=37,
    d_model=22,
    d_ff=41,
    num_heads=2,
    num_encoder_layers=2,
    num_decoder_layers=3,
    dropout=0.0,
    attention_bias=True,
)
VARIANTS = {
    "the paper": CONFIG,
    "pre-norm": CONFIG.model_copy(update={"norm_placement": "pre", "norm_epsilon": 1e-4}),
    "GELU": CONFIG.model_copy(update={"activation": "gelu"}),
    "pre-norm and GELU": CONFIG.model_copy(update={"norm_placement": "pre", "activation": "gelu"}),
}


def scramble(model, seed):
    """Random numbers in biases and gains too, so that each one counts."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.1)


def build_reference(config):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "enable_nested_tensor is True")  # told of norm_first; switched off below
        reference = transformer(config)
    if config.norm_placement == "post":
        reference.encoder.norm = reference.decoder.norm = None
    reference.encoder.enable_nested_tensor = False
    return reference


def transformer(config):
    return nn.Transformer(
        CONFIG.d_model,
        CONFIG.num_heads,
        CONFIG.num_encoder_layers,
        CONFIG.num_decoder_layers,
        CONFIG.d_ff,
        dropout=0.0,
        activation=config.activation,
        layer_norm_eps=config.norm_epsilon,
        norm_first=config.norm_placement == "pre",
        batch_first=True,
    )


def attention_names(ours, theirs):
    return {
        f"{theirs}.in_proj_weight": [f"{ours}.{part}.weight" for part in ("query", "key", "value")],
        f"{theirs}.in_proj_bias": [f"{ours}.{part}.bias" for part in ("query", "key", "value")],
        f"{theirs}.out_proj.weight": [f"{ours}.output.weight"],
        f"{theirs}.out_proj.bias": [f"{ours}.output.bias"],
    }


def layer_names(stack, index, attentions, norms):
    """Their name -> our names, whose tensors stand under each other in theirs."""
    ours, theirs = f"{stack}.layers.{index}", f"{stack}.layers.{index}"
    names = {}
    for our_part, their_part in attentions:
        names |= attention_names(f"{ours}.{our_part}", f"{theirs}.{their_part}")
    for kind in ("weight", "bias"):
        names[f"{theirs}.linear1.{kind}"] = [f"{ours}.feed_forward.inner.{kind}"]
        names[f"{theirs}.linear2.{kind}"] = [f"{ours}.feed_forward.outer.{kind}"]
        for number, sublayer in enumerate(norms, start=1):
            names[f"{theirs}.norm{number}.{kind}"] = [f"{ours}.{sublayer}_sublayer.norm.{kind}"]
    return names


def all_names(config):
    pre = config.norm_placement == "pre"
    ends = [f"{stack}.norm.{kind}" for stack in ("encoder", "decoder") for kind in ("weight", "bias") if pre]
    names = {end: [end] for end in ends}
    for index in range(CONFIG.num_encoder_layers):
        names |= layer_names("encoder", index, [("self_attention", "self_attn")], ("attention", "feed_forward"))
    both = [("self_attention", "self_attn"), ("cross_attention", "multihead_attn")]
    for index in range(CONFIG.num_decoder_layers):
        names |= layer_names("decoder", index, both, ("self", "cross", "feed_forward"))
    return names


def as_theirs(tensors, config):
    """Headway's tensors, by name, put together as torch.nn.Transformer names and stacks them."""
    return {theirs: torch.cat([tensors[name] for name in ours]) for theirs, ours in all_names(config).items()}


def waves(length):
    position = torch.arange(length, dtype=torch.float64)[:, None]
    angle = position / 10000.0 ** (torch.arange(0, CONFIG.d_model, 2, dtype=torch.float64) / CONFIG.d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


def their_logits(reference, embedding, source, target_in):
    vectors = [embedding[ids] * math.sqrt(CONFIG.d_model) + waves(ids.shape[1]) for ids in (source, target_in)]
    length = target_in.shape[1]
    hidden = reference(
        *vectors,
        tgt_mask=torch.ones(length, length).triu(1).bool(),
        src_key_padding_mask=source == 0,
        memory_key_padding_mask=source == 0,
        tgt_key_padding_mask=target_in == 0,
    )
    return hidden @ embedding.T


def example():
    generator = torch.Generator().manual_seed(4)
    source, target_in = (torch.randint(4, 37, (4, length), generator=generator) for length in (7, 11))
    for row, (source_length, target_length) in enumerate([(7, 11), (5, 3), (1, 1), (6, 8)]):
        source[row, source_length:] = 0
        target_in[row, target_length:] = 0
    return source, target_in


@pytest.fixture(params=VARIANTS)
def config(request):
    return VARIANTS[request.param]


@pytest.fixture
def pair(config):
    model = build_transformer(config)
    scramble(model, seed=2)
    reference = build_reference(config)
    reference.load_state_dict(as_theirs(dict(model.named_parameters()), config))
    embedding = model.output.weight.detach().clone().requires_grad_()
    return model, reference, embedding


def test_logits_equal_torch_with_padding_masks(pair):
    model, reference, embedding = pair
    source, target_in = example()
    real = target_in != 0
    ours = model(source, source != 0, target_in)[real]
    theirs = their_logits(reference, embedding, source, target_in)[real]
    assert theirs.std() > 0.5
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_gradients_of_every_weight_equal_torch(pair, config):
    model, reference, embedding = pair
    source, target_in = example()
    real = target_in != 0
    wanted_tokens = target_in.roll(-1, dims=1)[real]
    for logits in (model(source, source != 0, target_in), their_logits(reference, embedding, source, target_in)):
        nn.functional.cross_entropy(logits[real], wanted_tokens).backward()
    own = {name: parameter.grad for name, parameter in model.named_parameters() if "stem" not in name}
    ours = as_theirs(own, config)
    theirs = {name: parameter.grad for name, parameter in reference.named_parameters()}
    assert ours.keys() == theirs.keys()
    for name, gradient in theirs.items():
        torch.testing.assert_close(ours[name], gradient, atol=1e-6, rtol=1e-4, msg=lambda text, name=name: name + text)
    torch.testing.assert_close(model.output.weight.grad, embedding.grad, atol=1e-6, rtol=1e-4)


def test_the_layers_have_as_many_numbers_as_torchs(pair):
    model, reference, _ = pair
    ours = sum(parameter.numel() for parameter in model.parameters()) - CONFIG.vocab_size * CONFIG.d_model
    assert ours == sum(parameter.numel() for parameter in reference.parameters())
