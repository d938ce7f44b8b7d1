"""The engine in float32 beside torch: the same hypotheses for every switch of the search, or the same scores.

    python bench/equality.py --model FOLDER --source test.en [--count 1000] [--json FILE]

For every switch: how many sentences have all hypotheses equal token for token, and how many differ while both scores
lie within 1e-4 (two hypotheses that are as good as each other); these are listed. Anything else is a fault: exit 1.
Then the engine alone, whose results must be the same to the last bit: in another order, alone, with other rows and
threads, and with each set of kernels the same hypotheses.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import headway_native

from headway.engine.engine import Engine
from headway.engine.packed import open_packed
from headway.folder.contents import ModelFolder
from headway.search.hypothesis import Hypothesis
from headway.search.settings import SearchSettings
from headway.text.tokenizer import EOS_ID
from headway.translate.backend import load_backend
from headway.translate.compute import Compute

TOLERANCE = 1e-4
Ids = tuple[int, ...]
Found = list[list[Hypothesis]]


@dataclass(frozen=True)
class Switch:
    """One way to search."""

    name: str
    settings: SearchSettings
    prefix: int = 0  # tokens of the greedy output that are forced
    extra: int = 50  # output tokens beyond the source's


@dataclass
class Result:
    """What came out for one switch."""

    name: str
    sentences: int
    equal: int = 0
    as_good: list[dict[str, object]] = field(default_factory=list)
    faults: list[dict[str, object]] = field(default_factory=list)


def switches(settings: SearchSettings) -> Iterator[Switch]:
    """Every switch of the engine's search, one at a time."""
    yield Switch("greedy", replace(settings, beam_size=1))
    for beam in (2, 4, 5, 8):
        yield Switch(f"beam {beam}", replace(settings, beam_size=beam))
    yield Switch("beam 4, 4 best", replace(settings, beam_size=4, n_best=4))
    for penalty in (0.0, 0.6, 1.4):
        yield Switch(f"beam 4, length penalty {penalty}", replace(settings, beam_size=4, length_penalty=penalty))
    yield Switch("beam 4, no 2-gram again", replace(settings, beam_size=4, no_repeat_ngram=2))
    yield Switch("beam 4, three tokens given", replace(settings, beam_size=4), prefix=3)
    yield Switch("greedy, two tokens given", replace(settings, beam_size=1), prefix=2)
    yield Switch("beam 4, cut short", replace(settings, beam_size=4), extra=-4)


def compare(name: str, ours: Found, theirs: Found) -> Result:
    """Sentence by sentence."""
    result = Result(name, len(ours))
    for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        tokens = [found.token_ids for found in one], [found.token_ids for found in other]
        apart = [abs(a.score - b.score) for a, b in zip(one, other, strict=False)]
        row: dict[str, object] = {"sentence": place + 1, "apart": apart, "engine": tokens[0], "torch": tokens[1]}
        if len(one) != len(other) or not all(gap <= TOLERANCE for gap in apart):  # no gap is the largest beside NaN
            result.faults.append(row)
        elif tokens[0] == tokens[1]:
            result.equal += 1
        else:
            result.as_good.append(row)
    return result


def exact(name: str, ours: Found, theirs: Found) -> Result:
    """Equal to the last bit."""
    result = Result(name, len(ours))
    for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if one == other:
            result.equal += 1
        else:
            result.faults.append({"sentence": place + 1, "one": str(one), "other": str(other)})
    return result


class Trial:
    """A model on both paths, and the sentences."""

    def __init__(self, folder: ModelFolder, sources: Sequence[Ids]) -> None:
        self.sources = sources
        self.packed = open_packed(folder, precision="float32")
        self.engine = Engine(self.packed)
        self.torch = load_backend([folder], compute=Compute(engine="torch"))
        greedy = Switch("", SearchSettings(beam_size=1))
        self.outputs = [own[0].token_ids[:-1] for own in self.by_engine(greedy)]

    def by_engine(self, switch: Switch, *, engine: Engine | None = None, rows: int | None = None) -> Found:
        """All sentences at once."""
        return (engine or self.engine).search(
            self.sources,
            prefixes=self.prefixes(switch),
            limits=self.limits(switch),
            settings=switch.settings,
            rows=rows,
        )

    def by_torch(self, switch: Switch) -> Found:
        """In batches of 64, as they come."""
        prefixes, limits = self.prefixes(switch), self.limits(switch)
        found: Found = []
        for start in range(0, len(self.sources), 64):
            part = slice(start, start + 64)
            found += self.torch.search(
                self.sources[part], prefixes=prefixes[part], limits=limits[part], settings=switch.settings
            )
        return found

    def prefixes(self, switch: Switch) -> list[Ids]:
        """What each output must begin with: the beginning of the greedy one."""
        if switch.prefix == 0:
            return [()] * len(self.sources)
        return [tuple(ids[: switch.prefix]) for ids in self.outputs]

    def limits(self, switch: Switch) -> list[int]:
        """The most tokens of each output."""
        return [max(len(ids) + switch.extra, switch.prefix + 1) for ids in self.sources]


def alone(trial: Trial, switch: Switch) -> Iterator[Result]:
    """The engine beside itself: company, order, rows, threads; and each set of kernels beside torch's tolerance."""
    wanted = trial.by_engine(switch)
    backwards = Trial.__new__(Trial)
    backwards.sources, backwards.engine, backwards.outputs = trial.sources[::-1], trial.engine, trial.outputs[::-1]
    yield exact("from the last sentence to the first", backwards.by_engine(switch)[::-1], wanted)
    single: Found = []
    for ids, limit in zip(trial.sources, trial.limits(switch), strict=True):
        single += trial.engine.search([ids], prefixes=[()], limits=[limit], settings=switch.settings)
    yield exact("one sentence at a time", single, wanted)
    for rows in (1, 7, 300):
        yield exact(f"{rows} rows side by side", trial.by_engine(switch, rows=rows), wanted)
    for threads in (1, 2, 3, 8):
        engine = Engine(trial.packed, threads=threads)
        yield exact(f"{threads} threads", trial.by_engine(switch, engine=engine), wanted)
    for kernels in headway_native.available():
        engine = Engine(trial.packed, kernels=kernels)
        yield compare(f"kernels {kernels}", trial.by_engine(switch, engine=engine), wanted)


def main() -> None:
    """Print a table, a line a switch, and what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    folder = ModelFolder.open(options.model)
    lines = options.source.read_text(encoding="utf-8").split("\n")[: options.count]
    encoded = folder.source_tokenizer.encode_batch([line for line in lines if line.strip()])
    trial = Trial(folder, [(*ids, EOS_ID) for ids in encoded])
    settings = folder.config.search
    plain = SearchSettings(beam_size=4, length_penalty=settings.length_penalty)
    results: list[Result] = []
    print("| switch | sentences | equal | as good, within 1e-4 | faults |\n|---|---|---|---|---|")

    def told(result: Result) -> None:
        results.append(result)
        counts = (result.sentences, result.equal, len(result.as_good), len(result.faults))
        print(f"| {result.name} | " + " | ".join(f"{count:,}" for count in counts) + " |", flush=True)

    for switch in switches(plain):
        told(compare(switch.name, trial.by_engine(switch), trial.by_torch(switch)))
    for result in alone(trial, Switch("", plain)):
        told(result)
    for result in results:
        for row in (*result.as_good, *result.faults):
            print(f"{result.name}: {row}")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1), encoding="utf-8")
    sys.exit(1 if any(result.faults for result in results) else 0)


if __name__ == "__main__":
    main()
