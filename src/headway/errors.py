"""What can go wrong through a user's input or machine. An error says what, where, found, wanted and remedy.

Example of the grammar: ``corpus/moses: train.de has 1,203 lines, train.en has 1,204; pairs need equal counts.
Remedy: restore the original files, or export them again as one TSV.``
"""


class HeadwayError(Exception):
    """Anything a user can cause and can mend. The command line prints it as one line and exits with 2."""


class ConfigError(HeadwayError):
    """A recipe, preset or ``--set`` value that cannot be a run."""


class CorpusError(HeadwayError):
    """A file of parallel text that cannot be read as pairs."""


class TextError(HeadwayError):
    """A tokenizer that cannot be learnt, loaded or applied."""


class TreeError(HeadwayError):
    """Trees in brackets that cannot be read, written or changed as asked."""


class DataError(HeadwayError):
    """Prepared data that is missing, damaged or too small to train on."""


class MetricError(HeadwayError):
    """Scores that cannot be computed from what was given."""


class FolderError(HeadwayError):
    """A model folder that is missing, incomplete or damaged."""


class ModelError(HeadwayError):
    """A model whose parts do not fit together, or whose weights do not fit it."""


class CheckpointError(HeadwayError):
    """A training state that cannot be written, read or continued from."""


class TrainingError(HeadwayError):
    """Training that must stop: a loss that is not finite, nothing to train on."""


class TranslationError(HeadwayError):
    """Input that cannot be translated, or a request the model cannot meet."""


class CancelledError(HeadwayError):
    """A call that another thread has ended before its time."""


class InspectionError(HeadwayError):
    """A sentence or a model that cannot be looked into."""


class InterchangeError(HeadwayError):
    """A model of another toolkit that cannot be read, or one of ours that it cannot express."""


class EngineError(HeadwayError):
    """The CPU engine, or a model packed for it."""


class PaperError(HeadwayError):
    """A table of the paper that cannot be made from what was given."""


class MissingExtraError(HeadwayError):
    """An optional part of Headway that is not installed; the message gives the command that installs it."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: Python tells it by a class, PyTorch by words that differ from device to device."""
    said = str(error)
    words = ("out of memory", "not enough memory", "allocate memory")
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(word in said for word in words))
