"""What the card of a model that reads one text says: what it is for, how to use it, and its limits."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from headway.folder.contents import FolderConfig


@dataclass(frozen=True, slots=True)
class OneSided:
    """The words of one architecture; ``commands`` use the model, FOLDER stands for its name."""

    title: str
    what: str
    layers: str
    commands: tuple[str, ...]
    limits: str

    def usage(self, folder_name: str) -> str:
        """The section of the card that shows the commands."""
        name = shlex.quote(folder_name)
        commands = [command.replace("FOLDER", name) for command in (*self.commands, "headway describe FOLDER")]
        return "\n".join(["## Use", "", "```sh", *commands, "```"])


def one_sided(config: FolderConfig) -> OneSided | None:
    """The words for this model; None for one that translates."""
    words = WORDS.get(config.model.architecture)
    return None if words is None else words(config)


def _language_model(config: FolderConfig) -> OneSided:
    language = config.target_language or "one language"
    longest = f"- The longest text trained on has {config.max_source_tokens:,} tokens; nothing longer was learnt."
    return OneSided(
        title=f"A language model of {language}",
        what=f"A Transformer decoder alone that goes on from a text of {language}",
        layers=f"{config.model.num_decoder_layers} decoder layers",
        commands=(
            "headway generate -m FOLDER --sample --prompt 'A text that'",
            "headway evaluate --task language-model -m FOLDER --reference test.txt",
        ),
        limits="\n".join(
            [
                "## Limits",
                "",
                longest,
                "- Text unlike the training text is predicted worse, and nothing says so.",
                "- What it writes is likely text, not true text.",
            ]
        ),
    )


def _text_encoder(config: FolderConfig) -> OneSided:
    labels = ", ".join(config.labels[:10]) + (" ..." if len(config.labels) > 10 else "")
    language = config.target_language or config.source_language or "one language"
    classify = (
        "headway classify -m FOLDER texts.txt",
        "headway evaluate --task classification -m FOLDER --reference test.tsv",
    )
    begin = ("headway train classify --init FOLDER --set data.train_source=labelled.tsv --out runs/labels",)
    return OneSided(
        title=f"A classifier of texts ({language})" if config.labels else f"A pre-trained encoder of {language}",
        what=(
            f"A Transformer encoder alone that tells texts apart: {labels}"
            if config.labels
            else "A Transformer encoder alone that was trained to fill in hidden tokens, to be fine-tuned"
        ),
        layers=f"{config.model.num_encoder_layers} encoder layers",
        commands=classify if config.labels else begin,
        limits="\n".join(
            [
                "## Limits",
                "",
                f"- The longest text trained on has {config.max_source_tokens:,} tokens.",
                "- Text unlike the training text is told apart worse, and nothing says so.",
            ]
        ),
    )


WORDS: dict[str, Callable[[FolderConfig], OneSided]] = {
    "decoder_only": _language_model,
    "encoder_only": _text_encoder,
}
