"""Headway: train, measure, explain and serve Transformer encoder-decoder models."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("headway")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.0.0"
