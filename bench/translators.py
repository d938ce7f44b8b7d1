"""One engine with one model, in a process of its own; ``bench/translate.py`` starts it and says when it is its turn.

    python bench/translators.py SPECIFICATION.json

A command is a line of JSON on standard input, its answer one on standard output; between two commands the process
waits. What is timed begins with token ids (or an engine's own strings for them) and ends with an engine's own results:
all else is made before or after. Only what an engine needs is imported, so that a peer may live in another interpreter,
without Headway.
"""

import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO

PAD, BOS, EOS = 0, 2, 3
Ids = list[int]
Specification = dict[str, Any]  # what bench/translate.py writes: engine, precision, model, threads, replicas, work
Group = dict[str, Any]  # sources (ids, EOS last), limit (steps at most, EOS's counted), held (no end before the limit)
Ask = dict[str, Any]  # work, beam, length_penalty, batch, one_by_one
Prepared = Any  # in an engine's own form
Raw = Any
Tensor = Any  # torch's; not every engine has it


class Translator(Protocol):
    """An engine with a model."""

    def prepare(self, groups: Sequence[Group], ask: Ask) -> Prepared:
        """Groups in the engine's own form. Not timed."""
        ...

    def run(self, prepared: Prepared, ask: Ask) -> Raw:
        """Translate; all of it at once, or, ``one_by_one``, a group after the other. Timed."""
        ...

    def outputs(self, raw: Raw) -> list[Ids]:
        """Token ids of each best output, EOS left out, in the order of the groups. Not timed."""
        ...


class Headway:
    """The compiled engine with a packed model."""

    def __init__(self, spec: Specification) -> None:
        from headway.engine.engine import Engine
        from headway.engine.packed import read_packed

        self.engine = Engine(read_packed(Path(spec["model"])), threads=spec["threads"])

    def prepare(self, groups: Sequence[Group], ask: Ask) -> list[dict[str, Any]]:
        """The arguments of each call: one for all, or one a group."""
        from headway.search.settings import SearchSettings

        return [
            {
                "sources": [ids for group in together for ids in group["sources"]],
                "prefixes": [() for group in together for _ in group["sources"]],
                "limits": [group["limit"] for group in together for _ in group["sources"]],
                "settings": SearchSettings(
                    beam_size=ask["beam"],
                    length_penalty=ask["length_penalty"],
                    reserved=(EOS,) if together[0]["held"] else (),  # at its limit an output ends all the same
                ),
            }
            for together in ([[group] for group in groups] if ask["one_by_one"] else [groups])
        ]

    def run(self, prepared: list[dict[str, Any]], ask: Ask) -> Raw:
        """Search."""
        del ask
        return [self.engine.search(**call) for call in prepared]

    def outputs(self, raw: Raw) -> list[Ids]:
        """Its hypotheses end in EOS."""
        return [list(found[0].token_ids[:-1]) for call in raw for found in call]


class CTranslate2:
    """CTranslate2 with a folder that Headway exported; it takes and gives strings."""

    def __init__(self, spec: Specification) -> None:
        import ctranslate2

        folder = Path(spec["model"])
        self.translator = ctranslate2.Translator(
            str(folder),
            device="cpu",
            compute_type=spec["precision"],
            inter_threads=spec["replicas"],
            intra_threads=spec["threads"] // spec["replicas"],
        )
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.adds_eos = config["add_source_eos"]
        self.source, self.target = read_vocabularies(folder)
        self.id_of = {token: number for number, token in enumerate(self.target)}

    def prepare(self, groups: Sequence[Group], ask: Ask) -> list[tuple[list[list[str]], dict[str, Any]]]:
        """Batches of strings, each with its options."""
        return [
            (
                [[self.source[token] for token in (ids[:-1] if self.adds_eos else ids)] for ids in sources],
                {
                    "beam_size": ask["beam"],
                    "length_penalty": ask["length_penalty"],
                    "max_decoding_length": group["limit"],
                    "min_decoding_length": group["limit"] if group["held"] else 0,
                    "max_input_length": 0,
                    "asynchronous": not ask["one_by_one"],
                },
            )
            for group in groups
            for sources in batches(group["sources"], ask["batch"])
        ]

    def run(self, prepared: list[tuple[list[list[str]], dict[str, Any]]], ask: Ask) -> Raw:
        """All batches wait in its queue for a replica; or one call after the other."""
        calls = [self.translator.translate_batch(sources, **options) for sources, options in prepared]
        if ask["one_by_one"]:
            return calls
        return [[pending.result() for pending in batch] for batch in calls]

    def outputs(self, raw: Raw) -> list[Ids]:
        """Its hypotheses have no EOS."""
        return [[self.id_of[token] for token in found.hypotheses[0]] for batch in raw for found in batch]


def read_vocabularies(folder: Path) -> tuple[list[str], list[str]]:
    """CTranslate2's strings by token id, of the source and of the target."""
    shared = folder / "shared_vocabulary.json"
    names = (
        [shared, shared] if shared.exists() else [folder / f"{side}_vocabulary.json" for side in ("source", "target")]
    )
    source, target = (json.loads(path.read_text(encoding="utf-8")) for path in names)
    return source, target


class HuggingFace:
    """MarianMTModel of transformers with a folder that Headway exported: float32, eager, padded batches."""

    def __init__(self, spec: Specification) -> None:
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a third party says while it is imported
            from transformers import GenerationConfig, MarianMTModel
            from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        torch.set_num_threads(spec["threads"])
        self.settings = GenerationConfig
        self.model = MarianMTModel.from_pretrained(spec["model"], dtype=torch.float32).eval()

    def prepare(self, groups: Sequence[Group], ask: Ask) -> list[tuple[Any, Any]]:
        """Tensors of ids, and how to generate."""
        return [
            (
                padded(sources),
                self.settings(
                    num_beams=ask["beam"],
                    length_penalty=ask["length_penalty"],
                    do_sample=False,
                    early_stopping=False,
                    max_new_tokens=group["limit"],
                    min_new_tokens=group["limit"] if group["held"] else None,
                    decoder_start_token_id=BOS,
                    bos_token_id=BOS,
                    eos_token_id=EOS,
                    pad_token_id=PAD,
                ),
            )
            for group in groups
            for sources in batches(group["sources"], ask["batch"])
        ]

    def run(self, prepared: list[tuple[Any, Any]], ask: Ask) -> Raw:
        """Generate."""
        del ask
        return [
            self.model.generate(input_ids=ids, attention_mask=(ids != PAD).long(), generation_config=settings)
            for ids, settings in prepared
        ]

    def outputs(self, raw: Raw) -> list[Ids]:
        """Rows begin with the start and go on behind EOS with padding."""
        return [until_eos(row[1:].tolist()) for batch in raw for row in batch]


class Torch:
    """Headway's own search over its Predictor in torch, float32: what the others' outputs are compared with."""

    def __init__(self, spec: Specification) -> None:
        import torch

        from headway.folder.contents import ModelFolder
        from headway.model.build import build_transformer, load_weights
        from headway.model.predictor import TransformerPredictor

        torch.set_num_threads(spec["threads"])
        folder = ModelFolder.open(Path(spec["model"]))
        model = build_transformer(folder.config.model)
        load_weights(model, folder.weights())
        self.predictor = TransformerPredictor(model.eval())

    def prepare(self, groups: Sequence[Group], ask: Ask) -> list[dict[str, Any]]:
        """The arguments of each call."""
        from headway.search.settings import SearchSettings

        return [
            {
                "ids": padded(sources),
                "limits": [group["limit"]] * len(sources),
                "settings": SearchSettings(
                    beam_size=ask["beam"],
                    length_penalty=ask["length_penalty"],
                    reserved=(EOS,) if group["held"] else (),
                ),
            }
            for group in groups
            for sources in batches(group["sources"], ask["batch"])
        ]

    def run(self, prepared: list[dict[str, Any]], ask: Ask) -> Raw:
        """Search."""
        from headway.search.run import search

        del ask
        return [
            search(
                self.predictor,
                call["ids"],
                call["ids"] != PAD,
                settings=call["settings"],
                max_output_length_B=call["limits"],
            )
            for call in prepared
        ]

    def outputs(self, raw: Raw) -> list[Ids]:
        """Its hypotheses end in EOS."""
        return [list(found[0].token_ids[:-1]) for batch in raw for found in batch]


TRANSLATORS = {"headway": Headway, "ctranslate2": CTranslate2, "huggingface": HuggingFace, "torch": Torch}


def batches(sources: Sequence[Ids], size: int) -> list[Sequence[Ids]]:
    """The sources of a group by so many at most."""
    return [sources[start : start + size] for start in range(0, len(sources), size)]


def padded(sources: Sequence[Ids]) -> Tensor:
    """One tensor of ids."""
    import torch

    longest = max(len(ids) for ids in sources)
    return torch.tensor([[*ids, *[PAD] * (longest - len(ids))] for ids in sources])


def until_eos(ids: Ids) -> Ids:
    """What stands before the first EOS; all, without one."""
    return ids[: ids.index(EOS)] if EOS in ids else ids


def memory(model: str) -> dict[str, int]:
    """Bytes of this process: the most ever held, and how many are the model's file itself, mapped, not copied."""
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status, maps = Path("/proc/self/status"), Path("/proc/self/smaps")
    if not status.exists():
        return {"peak_bytes": peak, "mapped_bytes": 0}
    for line in status.read_text(encoding="utf-8").split("\n"):
        if line.startswith("VmHWM:"):  # ru_maxrss may be that of the process which started this one
            peak = 1024 * int(line.split()[1])
    return {"peak_bytes": peak, "mapped_bytes": mapped_bytes(maps.read_text(encoding="utf-8"), os.path.realpath(model))}


def mapped_bytes(maps: str, model: str) -> int:
    """Of /proc/self/smaps: resident bytes of the file (or of the files in the folder) ``model``."""
    found, is_own = 0, False
    for line in maps.split("\n"):
        fields = line.split(maxsplit=5)
        if fields and "-" in fields[0] and not fields[0].endswith(":"):
            path = fields[5] if len(fields) == 6 else ""
            is_own = path == model or path.startswith(model + os.sep)
        elif is_own and line.startswith("Rss:"):
            found += 1024 * int(fields[1])
    return found


def answer(translator: Translator, groups: Sequence[Group], ask: Ask) -> dict[str, Any]:
    """One turn: the seconds it took, and the steps of each output. Held outputs that are shorter are an error."""
    prepared = translator.prepare(groups, ask)
    begin = time.perf_counter()
    raw = translator.run(prepared, ask)
    seconds = time.perf_counter() - begin
    found = translator.outputs(raw)
    steps = [len(ids) + 1 for ids in found]  # EOS's step counted; a peer that is held has a token in its place
    wanted = [group["limit"] for group in groups for _ in group["sources"]]
    assert len(steps) == len(wanted)
    held = groups[0]["held"]
    if held and not all(limit <= own <= limit + 1 for own, limit in zip(steps, wanted, strict=True)):
        raise SystemExit("outputs were to be held to one length and are not: the engines would do unlike work")
    result: dict[str, Any] = {"seconds": seconds, "steps": wanted if held else steps}
    return {**result, "outputs": found} if ask.get("outputs") else result


def serve(spec: Specification, answers: TextIO) -> None:
    """Load the model, then a command at a time, until standard input ends."""
    work = json.loads(Path(spec["work"]).read_text(encoding="utf-8"))
    imported = memory(spec["model"])
    begin = time.perf_counter()
    translator = TRANSLATORS[spec["engine"]](spec)
    ready = {"load_seconds": time.perf_counter() - begin, "before": imported, "loaded": memory(spec["model"])}
    print(json.dumps(ready), file=answers, flush=True)
    for line in sys.stdin:
        ask = json.loads(line)
        result = answer(translator, work[ask["work"]], ask)
        print(json.dumps({**result, **memory(spec["model"])}), file=answers, flush=True)


def main() -> None:
    """Answers go out on what was standard output; whatever a library prints goes to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        serve(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), answers)


if __name__ == "__main__":
    main()
