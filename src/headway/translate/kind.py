"""Which command uses a model folder, by the architecture of its model."""

from headway.errors import TranslationError
from headway.folder.contents import ModelFolder

COMMANDS = {"decoder_only": "generate", "encoder_only": "classify"}  # of architectures that do not translate


def command_of(folder: ModelFolder) -> str:
    """The command that uses such a model."""
    if folder.config.parsing is not None:
        return "parse"
    return COMMANDS.get(folder.config.model.architecture, "translate")


def check_kind(folder: ModelFolder, command: str) -> None:
    """Raise TranslationError for a model that another command uses."""
    architecture = folder.config.model.architecture
    if COMMANDS.get(architecture, "translate") != command:
        raise TranslationError(
            f"translate/kind: {folder.path} has a model of architecture {architecture}; `headway {command}` wants one "
            f"that it can {command} with. Use it with `headway {command_of(folder)}`, or name another with -m."
        )
