"""A tiny translator trained once a session through the real command."""

import pytest
from journey_command import SMALL, five_letter_strings, headway, set_options, write_lines


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """``a.en`` and ``a.de``: 211 strings, and the same in capitals."""
    folder = tmp_path_factory.mktemp("corpus")
    strings = five_letter_strings(211)
    write_lines(folder / "a.en", strings)
    write_lines(folder / "a.de", [text.upper() for text in strings])
    return folder


@pytest.fixture(scope="session")
def train_arguments(corpus):
    """The short form over that corpus, without ``--out``: a run of 12 steps."""
    return [
        "train",
        *("--source", corpus / "a.en", "--target", corpus / "a.de"),
        *("--source-language", "en", "--target-language", "de"),
        *set_options(
            *SMALL,
            "model.vocab_size=20",
            "train.max_steps=12",
            "train.batch_tokens=300",
            "train.validate_every=6",
            "train.checkpoint_every=3",
        ),
    ]


@pytest.fixture(scope="session")
def model(train_arguments, tmp_path_factory):
    """The folder of that run: a whole model folder of a poor translator."""
    out = tmp_path_factory.mktemp("model") / "m"
    done = headway(*train_arguments, "--out", out)
    assert done.returncode == 0, done.stderr.decode()
    return out
