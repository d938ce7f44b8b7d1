"""Measures every local ``name_BTD`` of a room's functions: names that end in shape letters must tell the truth.

Within one call of a function a letter has one size, whatever the tensor it names a dimension of; a digit is that size
itself. ``sys.setprofile`` shows each frame as it begins (its arguments) and as it ends (its locals). The fields of a
dataclass are measured together in the same way.
"""

import dataclasses
import re
import sys

import torch

ROOMS = ("headway.nn.", "headway.model.", "headway.search.")
SHAPED = re.compile(r"_([A-Z][A-Z0-9]*)$")


class ShapeTracer:
    """While active, measures the locals of every Python function whose module's name begins with one of ``rooms``."""

    def __init__(self, rooms=ROOMS):
        self.rooms = rooms
        self.clashes = []
        self.measured = set()
        self._sizes = {}  # of the frames under way: letter -> (size, the name that set it)

    def __enter__(self):
        self._previous = sys.getprofile()
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_):
        sys.setprofile(self._previous)

    def check(self):
        assert not self.clashes, "\n".join(self.clashes)

    def _look(self, frame, event, _argument):
        if event not in ("call", "return") or not frame.f_globals.get("__name__", "").startswith(self.rooms):
            return
        sizes = self._sizes.setdefault(frame, {})
        place = f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}"
        for name, value in frame.f_locals.items():
            self._measure(place, name, value, sizes)
        if event == "return":
            del self._sizes[frame]

    def _measure(self, place, name, value, sizes):
        if isinstance(value, torch.Tensor):
            letters = SHAPED.search(name)
            if letters:
                self._bind(place, name, letters[1], value.shape, sizes)
        elif isinstance(value, list | tuple):
            for part in value:
                self._measure(place, "", part, {})
        elif dataclasses.is_dataclass(value) and type(value).__module__.startswith(self.rooms):
            own = {}
            for field in dataclasses.fields(value):
                self._measure(f"{place} {type(value).__name__}", field.name, getattr(value, field.name, None), own)

    def _bind(self, place, name, letters, shape, sizes):
        self.measured.add(name)
        if len(letters) != len(shape):
            self.clashes.append(f"{place}: {name} has {len(shape)} dimensions {tuple(shape)}")
            return
        for letter, size in zip(letters, shape, strict=True):
            if letter.isdigit():
                first_size, first_name = int(letter), "the digit"
            else:
                first_size, first_name = sizes.setdefault(letter, (size, name))
            if first_size != size:
                self.clashes.append(
                    f"{place}: {letter} is {size} in {name} {tuple(shape)}, {first_size} by {first_name}"
                )
