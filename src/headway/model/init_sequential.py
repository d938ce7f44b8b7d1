"""Initial weights of the recurrent and the convolutional model.

Both: embeddings and learned positions normal, standard deviation d_model^-0.5, the padding row zero, as the Transformer
has them; biases 0 but where said.

Recurrent: every gate's matrices Glorot uniform, each by itself, so are those of attention and readout; the bias of an
LSTM's forget gate 1 (Jozefowicz et al. 2015).

Convolutional: normal, with the deviations that keep variances as they are from layer to layer (Gehring et al. 2017,
Section 3.5): sqrt(3 p / n) of a convolution that a gated linear unit follows, p the share of inputs that dropout keeps
and n how many an output reads; sqrt(1 / n) of attention's matrices. Departure: the article has 4 in the place of 3, for
vectors so small that the square of a gate is a quarter; at variance 1 it is a third on average.
"""

import math

import torch
from torch import nn

from headway.model.convolutional_model import ConvolutionalModel
from headway.model.init import draw_glorot, draw_rows
from headway.model.recurrent_model import RecurrentModel
from headway.model.translation_model import TranslationModel
from headway.nn.convolution import Convolution
from headway.nn.embedding import OutputProjection, TokenEmbedding
from headway.nn.position import Learned

GATED = 3.0  # g with g x the mean square of sigmoid(sqrt(g) b) = 1, for normal b of variance 1


def initialise_recurrent(model: RecurrentModel, seed: int) -> None:
    """Draw every weight of the model from ``seed`` alone."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        _embeddings(model, generator)
        for module in model.modules():
            if isinstance(module, nn.LSTM | nn.GRU):
                _gates(module, generator)
            elif isinstance(module, nn.Linear):
                draw_glorot((module,), generator, (1.0,))


def initialise_convolutional(model: ConvolutionalModel, seed: int, *, dropout: float) -> None:
    """Draw every weight of the model from ``seed`` alone; ``dropout`` is that of the convolutions' inputs."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        _embeddings(model, generator)
        for module in model.modules():
            if isinstance(module, Convolution):
                kernel = module.kernel
                deviation = math.sqrt(GATED * (1.0 - dropout) / (kernel.in_channels * module.kernel_size))
                kernel.weight.normal_(0.0, deviation, generator=generator)
                kernel.get_parameter("bias").zero_()
            elif isinstance(module, nn.Linear):
                module.weight.normal_(0.0, module.in_features**-0.5, generator=generator)
                module.bias.zero_()


def _embeddings(model: TranslationModel, generator: torch.Generator) -> None:
    d_model = model.output.weight.shape[1]
    for module in model.modules():
        if isinstance(module, TokenEmbedding | OutputProjection):
            draw_rows(module.weight, generator, d_model)
            module.weight[0] = 0.0
        elif isinstance(module, Learned):
            draw_rows(module.weight, generator, d_model)
    if model.output.bias is not None:
        model.output.bias.zero_()


def _gates(layer: nn.LSTM | nn.GRU, generator: torch.Generator) -> None:
    for parameter in layer.parameters():
        if parameter.dim() == 1:
            parameter.zero_()
            continue
        for gate in parameter.split(layer.hidden_size):
            limit = math.sqrt(6.0 / sum(gate.shape))
            gate.uniform_(-limit, limit, generator=generator)
    if isinstance(layer, nn.LSTM):
        layer.get_parameter("bias_ih_l0")[layer.hidden_size : 2 * layer.hidden_size] = 1.0
