"""``headway import``: a model folder from another toolkit's model."""

from pathlib import Path

import click

FOLDER = click.Path(path_type=Path)


@click.command("import")
@click.argument("folder", type=FOLDER)
@click.option("--from", "source_format", metavar="FORMAT", help="huggingface; found by looking, if not given.")
@click.option("--out", "out_dir", required=True, type=FOLDER, metavar="FOLDER", help="The new model folder.")
@click.option(
    "--unsafe", is_flag=True, help="Read weights from a pickle too (pytorch_model.bin); nothing in it is run."
)
def command(folder: Path, *, source_format: str | None, out_dir: Path, unsafe: bool) -> None:
    """Make a model folder from a Hugging Face MarianMT model (OPUS-MT), which translates as the original does.

    Neither transformers nor sentencepiece is needed. What cannot be done alike is an error, or a line that says so.
    """
    if out_dir.resolve() == folder.resolve():
        raise click.UsageError("--out is the folder that is imported, whose files it would replace; name another.")
    from headway.interchange.formats import import_model

    imported = import_model(folder, out_dir, source_format=source_format, unsafe=unsafe)
    model = imported.folder.config.model
    click.echo(
        f"Model: {model.num_encoder_layers} encoder and {model.num_decoder_layers} decoder layers, "
        f"d_model {model.d_model:,}, {model.vocab_size:,} tokens"
    )
    tags = [tag for tag in imported.folder.config.tags if tag]
    if tags:
        click.echo(f"Target languages to ask for with --tag: {len(tags)} ({', '.join(tags[:10])})")
    for notice in imported.notices:
        click.echo(f"Note: {notice}")
    click.echo(f"Model folder: {out_dir}; translate with: headway translate -m {out_dir}")
