"""Recurrent layers: LSTM (Hochreiter and Schmidhuber 1997; Gers et al. 2000) and GRU (Cho et al. 2014).

Shapes: B sentences or rows, T positions, I numbers of an input, D numbers of a state, E = 4 D (LSTM) or 3 D (GRU) rows
of the matrices of all gates, R rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from headway.nn.sequence import SequenceLayer


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The state after the latest position: what the layer gives out, and the LSTM's cell beside it."""

    hidden_BD: Tensor
    cell_BD: Tensor | None = None

    def select(self, rows_R: Tensor) -> "Recurrence":
        """The given rows in the given order."""
        cell = None if self.cell_BD is None else self.cell_BD.index_select(0, rows_R)
        return Recurrence(self.hidden_BD.index_select(0, rows_R), cell)


class Gates(NamedTuple):
    """The matrices and biases of all gates, one below another, in the order in which torch has them."""

    input_EI: Tensor
    state_ED: Tensor
    input_bias_E: Tensor
    state_bias_E: Tensor


def lstm_cell(x_BI: Tensor, before: Recurrence, gates: Gates) -> Recurrence:
    """One position of an LSTM with forget gate.

    i = sigma(W_i x + U_i h + b_i), f and o alike, g = tanh(W_g x + U_g h + b_g); c' = f c + i g, h' = o tanh(c').
    Departure: b is the sum of two biases, as torch has it.
    """
    assert before.cell_BD is not None
    from_input_BE = x_BI @ gates.input_EI.T + gates.input_bias_E
    from_state_BE = before.hidden_BD @ gates.state_ED.T + gates.state_bias_E
    enter_BD, keep_BD, candidate_BD, show_BD = (from_input_BE + from_state_BE).chunk(4, dim=-1)
    cell_BD = keep_BD.sigmoid() * before.cell_BD + enter_BD.sigmoid() * candidate_BD.tanh()
    return Recurrence(show_BD.sigmoid() * cell_BD.tanh(), cell_BD)


def gru_cell(x_BI: Tensor, before: Recurrence, gates: Gates) -> Recurrence:
    """One position of a GRU.

    r = sigma(W_r x + U_r h + b_r), z alike, n = tanh(W_n x + b_n + r (U_n h + b'_n)); h' = (1 - z) n + z h.
    Departure: the reset gate r acts after the product with U_n, so that one product serves all gates; torch has it so.
    """
    from_input_BE = x_BI @ gates.input_EI.T + gates.input_bias_E
    from_state_BE = before.hidden_BD @ gates.state_ED.T + gates.state_bias_E
    input_reset_BD, input_keep_BD, input_new_BD = from_input_BE.chunk(3, dim=-1)
    state_reset_BD, state_keep_BD, state_new_BD = from_state_BE.chunk(3, dim=-1)
    keep_BD = (input_keep_BD + state_keep_BD).sigmoid()
    new_BD = (input_new_BD + (input_reset_BD + state_reset_BD).sigmoid() * state_new_BD).tanh()
    return Recurrence((1.0 - keep_BD) * new_BD + keep_BD * before.hidden_BD)


class Cell(NamedTuple):
    """A kind of recurrence: its definition, and torch's layer that does the same for all positions."""

    step: Callable[[Tensor, Recurrence, Gates], Recurrence]
    layer: type[nn.LSTM] | type[nn.GRU]


CELLS: dict[str, Cell] = {"lstm": Cell(lstm_cell, nn.LSTM), "gru": Cell(gru_cell, nn.GRU)}


class Recurrent(SequenceLayer[Recurrence]):
    """One position after another, each through the state that the one before has left; ``cell`` is a name of CELLS.

    Causal: one direction of d_model numbers. Else two, each of half as many, side by side: the second reads each
    sentence from its end (Schuster and Paliwal 1997). An input has ``d_input`` numbers, absent d_model.
    """

    def __init__(self, d_model: int, cell: str, *, causal: bool, d_input: int | None = None) -> None:
        super().__init__()
        assert causal or d_model % 2 == 0, "two directions share d_model"
        self.causal = causal
        self.cell = CELLS[cell]
        size = d_model if causal else d_model // 2
        d_input = d_model if d_input is None else d_input
        self.forwards = self.cell.layer(d_input, size, batch_first=True)
        self.backwards = None if causal else self.cell.layer(d_input, size, batch_first=True)

    def forward(self, x_BTI: Tensor, /, mask_BT: Tensor | None = None) -> Tensor:
        """All positions: (B, T, D). Padding follows the real positions, so that only the way back has to mind it."""
        forwards_BTD, _ = _run(self.forwards, x_BTI, None)
        if self.backwards is None:
            return forwards_BTD
        order_BT = turned(x_BTI, mask_BT)
        backwards_BTD, _ = _run(self.backwards, _reorder(x_BTI, order_BT), None)
        return torch.cat((forwards_BTD, _reorder(backwards_BTD, order_BT)), dim=-1)

    def step(self, x_B1I: Tensor, past: Recurrence | None, /) -> tuple[Tensor, Recurrence]:
        """One new position: (B, 1, D), which is also the state that is kept."""
        assert self.causal
        return _run(self.forwards, x_B1I, past)

    def plain(self, x_BTI: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """The definition, position by position: (B, T, D). Padding leaves the state as it was."""
        mask_BT = torch.ones_like(x_BTI[..., 0], dtype=torch.bool) if mask_BT is None else mask_BT
        forwards_BTD = _recur(self.forwards, x_BTI, mask_BT, self.cell)
        if self.backwards is None:
            return forwards_BTD
        backwards_BTD = _recur(self.backwards, x_BTI.flip(1), mask_BT.flip(1), self.cell).flip(1)
        return torch.cat((forwards_BTD, backwards_BTD), dim=-1)


def _gates(layer: nn.LSTM | nn.GRU) -> Gates:
    """What torch's layer holds, which its stubs do not say."""
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    return Gates(*(layer.get_parameter(name) for name in names))


def _recur(layer: nn.LSTM | nn.GRU, x_BTI: Tensor, mask_BT: Tensor, cell: Cell) -> Tensor:
    gates = _gates(layer)
    zero_BD = x_BTI.new_zeros(x_BTI.shape[0], layer.hidden_size)
    state = Recurrence(zero_BD, zero_BD)
    hidden: list[Tensor] = []
    for place in range(x_BTI.shape[1]):
        state = _where(mask_BT[:, place, None], cell.step(x_BTI[:, place], state, gates), state)
        hidden.append(state.hidden_BD)
    return torch.stack(hidden, dim=1)


def _where(mask_B1: Tensor, newer: Recurrence, older: Recurrence) -> Recurrence:
    hidden_BD = torch.where(mask_B1, newer.hidden_BD, older.hidden_BD)
    if newer.cell_BD is None or older.cell_BD is None:
        return Recurrence(hidden_BD)
    return Recurrence(hidden_BD, torch.where(mask_B1, newer.cell_BD, older.cell_BD))


def _run(layer: nn.LSTM | nn.GRU, x_BTI: Tensor, past: Recurrence | None) -> tuple[Tensor, Recurrence]:
    """Torch's layer over some positions, and the state after the last. It works in the precision of its weights."""
    with torch.autocast(x_BTI.device.type, enabled=False):
        x_BTI = x_BTI.to(_gates(layer).input_EI.dtype)
        if isinstance(layer, nn.GRU):
            y_BTD, hidden_1BD = layer(x_BTI, None if past is None else past.hidden_BD[None])
            return y_BTD, Recurrence(hidden_1BD[0])
        before = None
        if past is not None:
            assert past.cell_BD is not None
            before = past.hidden_BD[None], past.cell_BD[None]
        y_BTD, (hidden_1BD, cell_1BD) = layer(x_BTI, before)
        return y_BTD, Recurrence(hidden_1BD[0], cell_1BD[0])


def turned(x_BTI: Tensor, mask_BT: Tensor | None) -> Tensor:
    """Places (B, T) that turn the real positions of each sentence round and leave its padding; twice gives x again."""
    place_T = torch.arange(x_BTI.shape[1], device=x_BTI.device)
    if mask_BT is None:
        return place_T.flip(0).expand(x_BTI.shape[0], -1)
    length_B1 = mask_BT.sum(dim=1, keepdim=True)
    return torch.where(place_T < length_B1, length_B1 - 1 - place_T, place_T)


def _reorder(x_BTI: Tensor, order_BT: Tensor) -> Tensor:
    return x_BTI.gather(1, order_BT[..., None].expand_as(x_BTI))
