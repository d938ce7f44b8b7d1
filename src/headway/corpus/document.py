"""Documents that hold texts and places for their translations, by the suffix of their name."""

from importlib import import_module
from pathlib import Path
from typing import cast

from headway.corpus.compression import FilePath
from headway.corpus.segment import DocumentFormat
from headway.errors import CorpusError

DOCUMENTS = {  # suffix -> the module of this room that is its DocumentFormat; imported when it is asked for
    ".po": "po",
    ".pot": "po",
    ".tmx": "tmx",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".sdlxliff": "xliff",  # Trados
    ".mqxliff": "xliff",  # memoQ
    ".mxliff": "xliff",  # Phrase
}


def is_document(path: FilePath) -> bool:
    """Whether a file is a document by its suffix; any case will do."""
    return Path(path).suffix.lower() in DOCUMENTS


def document_format(path: FilePath) -> DocumentFormat:
    """The format of a document, by the suffix of its name.

    Raises:
        CorpusError: the suffix is not that of a document.

    """
    suffix = Path(path).suffix.lower()
    if suffix not in DOCUMENTS:
        raise CorpusError(
            f"corpus/document: {path}: found the suffix {suffix!r}, wanted one of {', '.join(DOCUMENTS)}. "
            f"Remedy: give the file the suffix of its format, or translate it as lines, without a second file."
        )
    return cast(DocumentFormat, import_module(f"headway.corpus.{DOCUMENTS[suffix]}"))
