"""``headway export``: another toolkit's model from a model folder, verified before it is kept."""

from pathlib import Path

import click

PATH = click.Path(path_type=Path)


@click.command("export")
@click.option("-m", "--model", "model_dir", required=True, type=PATH, metavar="FOLDER", help="The model folder.")
@click.option("--to", "target_format", required=True, metavar="FORMAT", help="huggingface or ctranslate2.")
@click.option("--out", "out_dir", required=True, type=PATH, metavar="FOLDER", help="The new folder.")
@click.option("--sentences", type=PATH, metavar="FILE", help="Source text to verify by; else validation text, or made.")
@click.option("--verify", "count", type=click.IntRange(min=1), default=200, show_default=True, help="Sentences.")
def command(model_dir: Path, *, target_format: str, out_dir: Path, sentences: Path | None, count: int) -> None:
    """Write a model for another toolkit.

    huggingface makes a MarianMTModel and its tokenizer; ctranslate2 (extra ctranslate2) a model for that library's
    Translator, with its tokenizer.

    The written folder is read back, by that library (transformers: where it is installed), and must give the same
    tokens by greedy search and the same forced scores within 1e-4; else nothing is kept, and the first difference is
    named.
    """
    from headway.folder.contents import ModelFolder
    from headway.interchange.formats import export_model
    from headway.interchange.sentences import find_sentences, read_sentences

    folder = ModelFolder.open(model_dir)
    if sentences is None:
        texts, origin = find_sentences(folder, count)
    else:
        texts, origin = read_sentences(sentences, count), str(sentences)
    exported = export_model(folder, out_dir, target_format=target_format, sentences=texts)
    verified = exported.verified
    compared = (
        "source ids, greedy output and forced scores" if verified.compares_text else "greedy output, forced scores"
    )
    click.echo(
        f"Verified by {verified.reading}: {compared} of {verified.sentences:,} sentences ({origin}), "
        f"{verified.tokens:,} tokens; largest difference of a log-probability {verified.largest:.1e}"
    )
    if verified.ties:
        click.echo(f"Note: {verified.ties:,} outputs part at two tokens of equal probability")
    for notice in exported.notices:
        click.echo(f"Note: {notice}")
    click.echo(f"Folder: {out_dir}")
