"""What kind of model a folder holds, and which command uses it."""

from headway.config.model_config import ModelConfig
from headway.config.schema import ParsingConfig
from headway.errors import TranslationError
from headway.folder.contents import ModelFolder

# command -> the models that it uses
KINDS = {
    "translate": "a translator",
    "parse": "a parser",
    "generate": "a language model",
    "classify": "a text encoder",
}
COMMANDS = {"decoder_only": "generate", "encoder_only": "classify"}  # of architectures without a source


def command_of(model: ModelConfig, parsing: ParsingConfig | None) -> str:
    """The command that uses such a model; ``parsing`` is that of a parser, and absent of all others."""
    return "parse" if parsing is not None else COMMANDS.get(model.architecture, "translate")


def kind_of(folder: ModelFolder) -> str:
    """What the model is, in words."""
    return KINDS[command_of(folder.config.model, folder.config.parsing)]


def check_kind(folder: ModelFolder, command: str) -> None:
    """Raise TranslationError for a model that another command uses."""
    config = folder.config
    own = command_of(config.model, config.parsing)
    if own == command:
        return
    is_unlabelled = own == "classify" and not config.labels
    use = f"train classify --init {folder.path}" if is_unlabelled else own
    raise TranslationError(
        f"translate/kind: {folder.path} is {KINDS[own]} (architecture {config.model.architecture}); wanted "
        f"{KINDS[command]}. Use it with `headway {use}`, or name another model."
    )
