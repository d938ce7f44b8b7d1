"""The ``headway`` command: which commands there are, and how every failure is told.

A command is imported only when it is called, so that ``headway --help`` answers at once. Everything a user can cause
ends in one line on standard error, ``headway: error: ...``, and exit code 2; an interruption ends in 130.
"""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Sequence

import click

from headway.cli.lazy import LazyGroup
from headway.errors import HeadwayError, is_out_of_memory

# name -> what it does; the module headway.cli.<name> (or that of MODULES) holds the object `command`.
COMMANDS = {
    "train": "Parallel text in, a trained and measured translator out.",
    "translate": "Translate standard input or files, line by line.",
    "parse": "Sentences in, constituency trees out.",
    "generate": "A language model goes on from prompts.",
    "classify": "Labels of texts, by a model trained on labelled ones.",
    "evaluate": "Score translations (BLEU, chrF, TER), trees (F1) and other models' work, with intervals.",
    "prepare": "Read, clean and encode parallel text, without training.",
    "audit": "Look at parallel text before training: faults, costs, remedies.",
    "average": "Average the kept weights of a run into a model folder.",
    "pack": "A model folder for the compiled engine, before its first use.",
    "shortlist": "Learn which tokens the compiled engine may search among.",
    "explain": "Where a model looks, drawn; and what each of its heads is worth.",
    "describe": "Exact parameters, multiply-adds and memory of a model.",
    "import": "A model folder from another toolkit's model.",
    "export": "Another toolkit's model from a model folder, verified.",
    "demo": "Build a corpus, train on it, translate: minutes on two cores.",
    "paper": "The paper's tables and claims, measured beside published.",
}
# Commands whose name is a word of Python, or of its imports, live in a module of another name.
MODULES = {"import": "import_model", "export": "export_model"}
# an optional package -> the extra of Headway that brings it
EXTRAS = {"torch": "train", "babel": "demo", "ray": "ray"}

REMEDIES = {
    errno.ENOSPC: "Free space on that disk, or choose another folder",
    errno.EDQUOT: "Free space within your quota, or choose another folder",
    errno.EFBIG: "Raise the limit on file sizes (ulimit -f), or choose another disk",
    errno.EACCES: "Change the permissions, or choose another path",
    errno.EPERM: "Change the permissions, or choose another path",
    errno.EROFS: "Choose a path on a disk that can be written",
    errno.ENOENT: "Check the path",
    errno.ENOTDIR: "A part of this path is a file; choose another path",
    errno.EISDIR: "Give a file, not a folder",
    errno.EEXIST: "Choose another path, or move the old one away",
    errno.ENOTEMPTY: "Choose another path, or move the old one away",
    errno.EMFILE: "Raise the limit on open files (ulimit -n)",
    errno.ENOMEM: "Free memory, or lower train.microbatch_tokens",
    errno.EIO: "The disk failed to answer; check it",
}


class Commands(LazyGroup):
    """The commands of ``COMMANDS``."""

    table = COMMANDS

    def module(self, name: str) -> str:
        """The module of a command."""
        return f"headway.cli.{MODULES.get(name, name)}"


def _show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        from headway import __version__

        click.echo(f"headway {__version__}")
        ctx.exit()


@click.group("headway", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def group() -> None:
    """Train, measure and use Transformer translators, exactly as the paper has them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code: 0 done, 2 a user's error, 130 interrupted.

    ``arguments`` are those after ``headway``; absent, the process's own.
    """
    if os.environ.get("_HEADWAY_COMPLETE"):
        from click.shell_completion import shell_complete

        return shell_complete(group, {}, "headway", "_HEADWAY_COMPLETE", os.environ["_HEADWAY_COMPLETE"])
    try:
        return _run(list(sys.argv[1:] if arguments is None else arguments))
    except BrokenPipeError:  # the reader of our output went away, as `| head` does; there is nobody to tell
        _abandon_output()
        return 1
    except OSError as error:
        code = _report(explain_os_error(error))
        _abandon_output()
        return code
    except (KeyboardInterrupt, click.Abort):
        return _report("interrupted", code=130, prefix="headway")
    except Exception as error:
        message = explain(error)
        if message is None:  # a fault of ours: let the traceback tell
            raise
        return _report(message)


def _run(arguments: list[str]) -> int:
    _buffer_output()
    try:
        with group.make_context("headway", arguments) as context:
            group.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    finally:
        sys.stdout.flush()  # here, because only the last write may notice that the disk is full
    return 0


def explain(error: Exception) -> str | None:
    """Say in one line what a user's error is, or None for an error that can only be ours."""
    if isinstance(error, HeadwayError):
        return str(error)
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "headway"
        return f"{error.format_message().rstrip()} See: {command} --help"
    if isinstance(error, click.ClickException):
        return error.format_message()
    if is_out_of_memory(error):
        return (
            "not enough memory. Free some, or compute less at once: with a lower --batch-tokens, or in training a "
            "lower train.microbatch_tokens."
        )
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        if package in EXTRAS:
            return f"this needs {package}, which is not installed. Run: pip install 'headway[{EXTRAS[package]}]'"
    return None


def explain_os_error(error: OSError) -> str:
    """Say in one line which file, what went wrong and what to do."""
    names = (error.filename, error.filename2)
    paths = " -> ".join(os.fsdecode(name) for name in names if isinstance(name, str | bytes))
    what = error.strerror or str(error) or type(error).__name__
    remedy = REMEDIES.get(error.errno or 0)
    return ": ".join(part for part in (paths, what) if part) + (f". {remedy}." if remedy else ".")


def _report(message: str, *, code: int = 2, prefix: str = "headway: error") -> int:
    line = f"{prefix}: {_rank()}{message}".replace("\r", "\\r").replace("\n", "\\n")
    erase = "\r\x1b[K" if sys.stderr.isatty() else ""  # a live line of progress may stand there
    click.echo(erase + line, err=True)
    return code


def _rank() -> str:
    """Which of several processes tells, where torchrun started them."""
    rank, world_size = os.environ.get("RANK"), os.environ.get("WORLD_SIZE", "1")
    return f"rank {rank}: " if rank is not None and world_size != "1" else ""


def _buffer_output() -> None:
    """Put a buffer back under standard output where PYTHONUNBUFFERED took it away.

    Without one, Python drops what a nearly full disk did not take of a write, and reports success.
    """
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        sys.stdout = os.fdopen(
            sys.stdout.fileno(),
            "w",
            buffering=1,  # by lines, as close to unbuffered as is safe
            encoding=sys.stdout.encoding,
            errors=sys.stdout.errors,
            closefd=False,
        )


def _abandon_output() -> None:
    """Point standard output at nothing, so that the interpreter's own last flush cannot fail again."""
    with contextlib.suppress(OSError, ValueError):  # a test's stand-in for standard output has no file number
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
