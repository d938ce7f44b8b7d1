"""Headway: train, measure, explain and serve Transformer encoder-decoder models."""

__version__ = "0.1.0"  # pyproject.toml reads it here; asking the installed package would cost every start
