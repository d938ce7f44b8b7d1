"""``headway pack``: a model folder's weights as the compiled engine reads them, made before their first use."""

import json
import time
from pathlib import Path

import click

from headway.cli.reports import columns


@click.command("pack")
@click.option("-m", "--model", required=True, type=click.Path(path_type=Path), help="The model folder.")
@click.option(
    "--precision",
    type=click.Choice(["int8", "float32"]),
    default="int8",
    show_default=True,
    help="What the engine is to compute in.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(*, model: Path, precision: str, as_json: bool) -> None:
    """Pack a model folder for the compiled engine, once; the packed file lies beside the weights.

    Translating does the same by itself at its first use. Packing beforehand serves folders that whoever translates
    cannot write to. Packed again, the file is made anew.

    Example: headway pack -m runs/mine
    """
    from headway.engine.pack import pack_folder
    from headway.folder.contents import ModelFolder

    started = time.perf_counter()
    path = pack_folder(ModelFolder.open(model), precision=precision)
    seconds = time.perf_counter() - started
    size = path.stat().st_size
    if as_json:
        click.echo(json.dumps({"path": str(path), "bytes": size, "precision": precision, "seconds": round(seconds, 3)}))
        return
    rows = [
        ("packed", str(path)),
        ("size", f"{size:,} bytes"),
        ("precision", precision),
        ("seconds", f"{seconds:.2f}"),
    ]
    click.echo(columns(rows))
