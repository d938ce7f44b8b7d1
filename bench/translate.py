"""Translating speed beside CTranslate2 and Hugging Face: same weights, same token ids, same beams, turn by turn.

    python bench/translate.py --data DIR --model FOLDER --source test.en --reference test.de --work runs/translate
    python bench/translate.py --data DIR --work runs/translate --quick

Every engine has a process of its own with the model loaded; they take turns, one at work at a time, so that a ratio is
of figures taken moments apart: told is the median over rounds of one round's ratio, and its range. What is timed begins
with token ids and ends with an engine's own results.

base: random weights at the size of the paper's base model, on newstest2014. Every batch is held to one output length,
its mean reference length, in every engine: no output ends before, all take as many steps. tiny: --model on --source,
outputs end where they end; without --model, random weights and drawn lengths, held too.

CTranslate2 has as many replicas as cores with one thread each for a corpus, its batch of --ct2-batches that is fastest;
for one sentence at a time one replica, with one thread or all, the faster. Hugging Face is MarianMT as people run it.
A share of the limit: of what the products with weights would allow at the speed that the engine's own kernels have at
their best shape; for one sentence at a time, of what reading the weights of each step would allow.

A peer in another interpreter: --peer-python ctranslate2=PATH/bin/python.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from headway.metrics.translation import score_translations
from translate_limit import multiply_adds, weight_bytes
from translate_table import machine, told
from translate_work import Contest, random_contest, real_contest, spread

HERE = Path(__file__).parent
TITLES = {"headway": "Headway", "ctranslate2": "CTranslate2", "huggingface": "HF MarianMT", "torch": "Headway on torch"}
OURS, RIVAL = "headway-int8", "ctranslate2-int8"
SLOW = ("huggingface", "torch")  # warm up on little
PAUSE = 0.25  # seconds between two turns, in which a peer's threads stop waiting for work
STARTS = 5
SENTENCE = "A man rides a horse along the beach."


@dataclass(frozen=True)
class Case:
    """An engine with a precision, so many threads in all, divided among replicas."""

    engine: str
    precision: str
    threads: int
    replicas: int = 1

    @property
    def kind(self) -> str:
        """Of which model it is."""
        return f"{self.engine}-{self.precision}"

    @property
    def title(self) -> str:
        """As the table has it."""
        how = f", {self.replicas} x {self.threads // self.replicas}" if self.engine == "ctranslate2" else ""
        return f"{TITLES[self.engine]} {self.precision}{how}"

    def environment(self, outer: Mapping[str, str]) -> dict[str, str]:
        """Of its process. OpenMP's threads are those of one replica, as CTranslate2 recommends."""
        return {**outer, "OMP_NUM_THREADS": str(self.threads // self.replicas)}


@dataclass(frozen=True)
class Entry:
    """A case in one row of the table, with the batch it is given."""

    case: Case
    batch: int
    rounds: int

    def __str__(self) -> str:
        return f"{self.case.title}, batch {self.batch}" if self.batch > 1 else self.case.title


@dataclass(frozen=True)
class Row:
    """One row of the table: what is translated, how, and the ratio to CTranslate2 that is wanted."""

    contest: str
    work: str  # corpus or single
    beam: int
    required: float
    aim: float

    @property
    def title(self) -> str:
        """As the table has it."""
        how = f"beam {self.beam}" if self.beam > 1 else "greedy"
        return f"{self.contest}, {'one sentence at a time' if self.work == 'single' else self.work}, {how}"


ROWS = (
    Row("base", "corpus", 4, 1.5, 2.2),
    Row("base", "corpus", 1, 1.3, 2.0),
    Row("base", "single", 4, 2.0, 3.5),
    Row("tiny", "corpus", 4, 1.2, 2.0),
    Row("tiny", "corpus", 1, 1.2, 2.0),
    Row("tiny", "single", 4, 1.0, 1.5),
    Row("smallest", "corpus", 4, 1.0, 1.0),
    Row("smallest", "single", 1, 1.0, 1.0),
)
MEMORY_REQUIRED, MEMORY_AIM = 1.0, 0.5  # of CTranslate2's peak


class Worker:
    """A process that answers a line with a line. Raises SystemExit, with the end of what it said, where it ends."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                env=dict(environment),
            )
        self.ready = self.answer()

    def send(self, ask: Mapping[str, object]) -> None:
        """Give a command, without waiting."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(ask) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict:
        """Wait for what it says next."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.close()
        said = [text for text in self.log.read_text(encoding="utf-8", errors="replace").split("\n") if text.strip()]
        raise SystemExit(said[-1] if said else f"it ended by itself, status {self.process.returncode}")

    def ask(self, ask: Mapping[str, object]) -> dict:
        """Command and answer."""
        self.send(ask)
        return self.answer()

    def close(self) -> None:
        """Let it end."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@dataclass
class Found:
    """What one row gave: of each entry its answers, round by round; and of each entry that is missing, why."""

    answers: dict[Entry, list[dict]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def rates(self, entry: Entry) -> list[float]:
        """Sentences a second, round by round."""
        return [len(answer["steps"]) / answer["seconds"] for answer in self.answers[entry]]

    def best(self, kind: str) -> Entry | None:
        """The entry of this engine and precision with the highest median."""
        own = [entry for entry in self.answers if entry.case.kind == kind]
        return max(own, key=lambda entry: statistics.median(self.rates(entry)), default=None)

    def ratios(self, kind: str, rival: str) -> list[float]:
        """Of the two's best entries, round by round, as far as both went."""
        mine, its = self.best(kind), self.best(rival)
        if mine is None or its is None:
            return []
        return [one / other for one, other in zip(self.rates(mine), self.rates(its), strict=False)]


class Race:
    """All rows of one contest, measured round by round."""

    def __init__(self, contest: Contest, settings: argparse.Namespace, folder: Path) -> None:
        self.contest, self.settings, self.folder = contest, settings, folder
        self.pythons = dict(pair.split("=", 1) for pair in settings.peer_python)
        self.threads: int = settings.threads
        self.rows = [row for row in ROWS if row.contest == contest.name]
        self.found: dict[Row, Found] = {row: Found() for row in self.rows}
        self.speeds: dict[str, list[float]] = {}  # own_shapes and best_shape in operations, reading in bytes a second
        self.peaks: dict[str, dict] = {}
        contest.work["memory"] = spread(contest.work["corpus"], 2 * self.threads)
        contest.work |= {f"warm {name}": spread(contest.work[name], 2) for name in ("corpus", "single")}
        contest.write_work(folder / "work.json")

    def entries(self, row: Row) -> list[Entry]:
        """Who takes part in a row. The first two engines in every round, the others in some."""
        every, some, threads = self.settings.rounds, self.settings.other_rounds, self.threads
        size, batches = self.settings.batch, self.settings.ct2_batches
        size = 1 if row.work == "single" else size
        entries = [Entry(Case("headway", "int8", threads), size, every)]
        if row.work == "single":
            counts = sorted({1, threads})
            entries += [Entry(Case("ctranslate2", "int8", count), 1, every) for count in counts]
        else:
            entries += [Entry(Case("ctranslate2", "int8", threads, threads), batch, every) for batch in batches]
            entries.append(Entry(Case("ctranslate2", "float32", threads, threads), size, some))
            if self.contest.references is not None:
                entries.append(Entry(Case("torch", "float32", threads), size, 1))
        entries.append(Entry(Case("headway", "float32", threads), size, some))
        entries.append(Entry(Case("huggingface", "float32", threads), size, some))
        return [entry for entry in entries if entry.rounds]

    def start(self, case: Case, name: str) -> Worker:
        """The process of a case. Raises SystemExit where there is none to be had."""
        key = "torch" if case.engine == "torch" else case.kind
        if key not in self.contest.paths:
            raise SystemExit(self.contest.missing.get(case.engine, "there is no model for it"))
        specification = {
            "engine": case.engine,
            "precision": case.precision,
            "threads": case.threads,
            "replicas": case.replicas,
            "model": str(self.contest.paths[key]),
            "work": str(self.folder / "work.json"),
        }
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(specification), encoding="utf-8")
        command = [self.pythons.get(case.engine, sys.executable), str(HERE / "translators.py"), str(path)]
        return Worker(command, case.environment(os.environ), self.folder / f"{name}.log")

    @contextmanager
    def workers(self) -> Iterator[dict[Case, Worker]]:
        """All processes of this contest; those that do not start are told of as missing."""
        with ExitStack() as stack:
            found: dict[Case, Worker] = {}
            for case in dict.fromkeys(entry.case for row in self.rows for entry in self.entries(row)):
                try:
                    found[case] = self.start(case, f"worker-{len(found)}")
                except SystemExit as error:
                    self.contest.missing[case.engine] = str(error)
                    tell(f"{self.contest.name}: {case.title} is missing: {error}")
                else:
                    stack.callback(found[case].close)
            yield found

    def ask(self, row: Row, entry: Entry, *, outputs: bool = False) -> dict:
        """What an engine is told to do."""
        return {
            "work": row.work,
            "beam": row.beam,
            "length_penalty": self.settings.length_penalty,
            "batch": entry.batch,
            "one_by_one": row.work == "single",
            "outputs": outputs,
        }

    def run(self) -> None:
        """Every row: a turn for each that is not counted, then the rounds, each begun by another engine."""
        with self.workers() as workers, self.cores() as cores:
            for row in self.rows:
                self.measure_limits(cores)
                entries = [entry for entry in self.entries(row) if entry.case in workers]
                for entry in entries:
                    short = "single" if entry.case.engine in SLOW else row.work
                    workers[entry.case].ask({**self.ask(row, entry), "work": f"warm {short}"})
                for number in range(self.settings.rounds):
                    shift = number % max(len(entries), 1)
                    for entry in (*entries[shift:], *entries[:shift]):
                        if number < entry.rounds:
                            self.turn(row, entry, workers[entry.case], is_first=number == 0)
        if self.contest.name != "tiny":
            self.measure_memory()

    def turn(self, row: Row, entry: Entry, worker: Worker, *, is_first: bool) -> None:
        """One engine's turn in one round."""
        time.sleep(PAUSE)
        wants_outputs = is_first and self.contest.references is not None and row.work == "corpus"
        answer = worker.ask(self.ask(row, entry, outputs=wants_outputs))
        self.found[row].answers.setdefault(entry, []).append(answer)
        tell(f"{row.title}: {entry}: {len(answer['steps']) / answer['seconds']:,.1f} sentences/s")

    @contextmanager
    def cores(self) -> Iterator[list[Worker]]:
        """A process for each core that measures what a limit is made of."""
        spec = json.dumps({"model": self.contest.config.model_dump()})
        command = [sys.executable, str(HERE / "translate_limit.py"), spec]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with ExitStack() as stack:
            found: list[Worker] = []
            for core in range(self.threads):
                found.append(Worker(command, environment, self.folder / f"limit-{core}.log"))
                stack.callback(found[-1].close)
            yield found

    def measure_limits(self, cores: Sequence[Worker]) -> None:
        """What this machine can do just now, all cores at once: products in 8 bits, and reading a step's weights."""
        step = weight_bytes(self.contest.config, precision="int8").step
        for ask in ({"what": "products"}, {"what": "reading", "bytes": step // self.threads}):
            for core in cores:
                core.send({**ask, "seconds": self.settings.limit_seconds})
            answers = [core.answer() for core in cores]
            for name in answers[0]:
                self.speeds.setdefault(name, []).append(sum(answer[name] for answer in answers))

    def measure_memory(self) -> None:
        """The peak of each engine in a fresh process that translates some batches, one in each replica at a time."""
        threads = self.threads
        cases = [Case("headway", "int8", threads), Case("ctranslate2", "int8", threads, threads)]
        cases += [Case("headway", "float32", threads), Case("huggingface", "float32", threads)]
        row = Row(self.contest.name, "memory", 4, MEMORY_REQUIRED, MEMORY_AIM)
        for case in cases:
            try:
                worker = self.start(case, "memory")
            except SystemExit:
                continue
            answer = worker.ask(self.ask(row, Entry(case, self.settings.batch, 1)))
            worker.close()
            peaks = {"before_bytes": worker.ready["before"]["peak_bytes"], "load_seconds": worker.ready["load_seconds"]}
            self.peaks[case.kind] = {name: answer[name] for name in ("peak_bytes", "mapped_bytes")} | peaks

    def limit(self, row: Row) -> float:
        """Sentences a second of the row's limit, for what Headway's 8 bits were given to do."""
        found = self.found[row]
        entry = found.best(OURS)
        if entry is None:
            return float("nan")
        steps = found.answers[entry][0]["steps"]
        groups = self.contest.work[row.work]
        sources = [len(ids) for group in groups for ids in group.sources]
        config = self.contest.config
        if row.work == "single":
            weights = weight_bytes(config, precision="int8")
            need = sum(weights.sentence(own) for own in steps)
            return len(steps) * statistics.median(self.speeds["reading"]) / need
        alike = Counter(zip(sources, steps, strict=True))
        need = sum(
            count * multiply_adds(config, source=source, steps=own, beam=row.beam).operations
            for (source, own), count in alike.items()
        )
        return len(steps) * statistics.median(self.speeds["best_shape"]) / need

    def summary(self) -> dict:
        """Everything that was measured, for --json."""
        return {
            "contest": self.contest.name,
            "notes": self.contest.notes,
            "missing": self.contest.missing,
            "model": self.contest.config.model_dump(),
            "speeds": self.speeds,
            "memory": self.peaks,
            "rows": {row.title: self.summary_of(row) for row in self.rows},
            "quality": quality(self) if self.contest.references is not None else {},
        }

    def summary_of(self, row: Row) -> dict:
        """Rates, ratios and the limit of a row."""
        found = self.found[row]
        rates = {str(entry): found.rates(entry) for entry in found.answers}
        kinds = dict.fromkeys(entry.case.kind for entry in found.answers)
        return {
            "required": row.required,
            "aim": row.aim,
            "rates": rates,
            "best": {kind: str(found.best(kind)) for kind in kinds},
            "ratios": {kind: found.ratios(OURS, kind) for kind in kinds if kind != OURS},
            "limit": self.limit(row),
            "sentences": sum(len(group.sources) for group in self.contest.work[row.work]),
        }


def quality(race: Race) -> dict[str, dict]:
    """Of every variant of a corpus: BLEU, and how many hypotheses are the float32 ones of Headway on torch."""
    contest = race.contest
    assert contest.references is not None
    tokenizer = contest.folder.target_tokenizer
    language = contest.folder.config.target_language
    found: dict[str, dict] = {}
    for row, own in race.found.items():
        outputs = {entry: answers[0]["outputs"] for entry, answers in own.answers.items() if "outputs" in answers[0]}
        truth = next((ids for entry, ids in outputs.items() if entry.case.engine == "torch"), None)
        for entry, ids in outputs.items():
            bleu = score_translations(
                [tokenizer.decode(one) for one in ids],
                contest.references,
                target_language=language,
                tokenize=race.settings.tokenize,
                lowercase=race.settings.lowercase,
                confidence=False,
                include_ter=False,
            ).bleu
            equal = None if truth is None else sum(one == other for one, other in zip(ids, truth, strict=True))
            found.setdefault(row.title, {})[str(entry)] = {
                "bleu": bleu.value,
                "signature": bleu.signature,
                "equal": equal,
                "sentences": len(ids),
            }
    return found


def start_times(contest: Contest, pythons: Mapping[str, str]) -> dict[str, list[float]]:
    """Seconds from the prompt to the answer of one short sentence, the model's files in the page cache."""
    folder, paths = contest.folder.path, contest.paths
    headway = [sys.executable, "-m", "headway", "translate", "-m", str(folder), "-s", SENTENCE]
    commands = {"headway": headway}
    longest = len(contest.folder.source_tokenizer.encode(SENTENCE)) + 1 + contest.folder.config.search.max_extra_tokens
    for engine, key in (("ctranslate2", "ctranslate2-int8"), ("huggingface", "huggingface-float32")):
        if key in paths:
            tokenizer = paths[f"{engine}-float32"]
            script = START_SCRIPTS[engine].format(
                model=str(paths[key]), tokenizer=str(tokenizer), sentence=SENTENCE, longest=longest
            )
            commands[engine] = [pythons.get(engine, sys.executable), "-c", script]
    found: dict[str, list[float]] = {engine: [] for engine in commands}
    for number in range(STARTS + 1):
        for engine, command in commands.items():
            begin = time.perf_counter()
            finished = subprocess.run(command, check=False, capture_output=True)
            taken = time.perf_counter() - begin
            if finished.returncode == 0 and number:  # the first brings files into the cache
                found[engine].append(taken)
    return {engine: seconds for engine, seconds in found.items() if seconds}


START_SCRIPTS = {
    "ctranslate2": """
import ctranslate2, tokenizers
tokenizer = tokenizers.Tokenizer.from_file({tokenizer!r} + "/tokenizer.json")
translator = ctranslate2.Translator({model!r}, compute_type="int8")
tokens = [tokenizer.id_to_token(i) for i in tokenizer.encode({sentence!r}).ids]
(found,) = translator.translate_batch([tokens], beam_size=4, max_decoding_length={longest})
print(tokenizer.decode([tokenizer.token_to_id(token) for token in found.hypotheses[0]]))
""",
    "huggingface": """
from transformers import AutoTokenizer, MarianMTModel
tokenizer = AutoTokenizer.from_pretrained({model!r})
model = MarianMTModel.from_pretrained({model!r})
ids = model.generate(**tokenizer({sentence!r}, return_tensors="pt"), num_beams=4, max_new_tokens={longest})
print(tokenizer.decode(ids[0], skip_special_tokens=True))
""",
}


def contests(settings: argparse.Namespace, folder: Path) -> Iterator[Contest]:
    """Those that were asked for, one after the other."""
    for name in settings.contests:
        own = (settings.work or folder) / name
        if name == "tiny" and settings.model is not None:
            yield real_contest(
                settings.model,
                folder=own,
                source=settings.source,
                reference=settings.reference,
                size=settings.batch,
                sentences=settings.singles,
            )
        else:
            yield random_contest(
                name,
                folder=own,
                data=settings.data,
                size=settings.batch,
                groups=max(1, settings.sentences // settings.batch),
                sentences=settings.singles,
            )


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--contests", nargs="+", choices=["base", "tiny", "smallest"], default=["base", "tiny"])
    parser.add_argument("--data", type=Path, help="with wmt/newstest2014 and 2013 and tatoeba; else lengths are drawn")
    parser.add_argument("--model", type=Path, help="a trained model folder, for tiny")
    parser.add_argument("--source", type=Path, help="text for it, a sentence a line")
    parser.add_argument("--reference", type=Path, help="translations of that text")
    parser.add_argument("--tokenize", default="auto", help="BLEU's tokenizer; none for text that is tokenised")
    parser.add_argument("--lowercase", action="store_true", help="BLEU without regard to case")
    parser.add_argument("--work", type=Path, help="keep models and exports here, for another time")
    parser.add_argument("--quick", action="store_true", help="fewer sentences and rounds: some two minutes")
    parser.add_argument("--rounds", type=int, help="of Headway and CTranslate2 in 8 bits")
    parser.add_argument("--other-rounds", type=int, default=1, help="of all others; 0: without them")
    parser.add_argument("--sentences", type=int, help="of a corpus with random weights")
    parser.add_argument("--singles", type=int, help="sentences of one at a time")
    parser.add_argument("--batch", type=int, default=32, help="sentences side by side, and held to one length")
    parser.add_argument("--ct2-batches", type=int, nargs="+", help="that CTranslate2 divides these into")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--length-penalty", type=float, default=0.6)
    parser.add_argument("--limit-seconds", type=float, default=0.1, help="of measuring each product, at least")
    parser.add_argument("--no-start", action="store_true", help="leave out the time from the prompt to the answer")
    parser.add_argument("--peer-python", action="append", default=[], metavar="ctranslate2=PATH")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    settings = parser.parse_args()
    for name, quick, full in (("rounds", 2, 5), ("sentences", 64, 384), ("singles", 6, 24)):
        if getattr(settings, name) is None:
            setattr(settings, name, quick if settings.quick else full)
    if settings.ct2_batches is None:
        settings.ct2_batches = (
            [settings.batch] if settings.quick else sorted({settings.batch // 2 or 1, settings.batch})
        )
    if settings.model is not None and (settings.source is None or settings.reference is None):
        parser.error("--model wants --source and --reference")
    return settings


def tell(text: str) -> None:
    """How far it is, on standard error."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Measure, print, write."""
    settings = parse()
    pythons = dict(pair.split("=", 1) for pair in settings.peer_python)
    found: dict = {
        "machine": machine(settings.threads, pythons),
        "arguments": sys.argv[1:],
        "contests": {},
        "start": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        for contest in contests(settings, Path(folder)):
            race = Race(contest, settings, Path(folder))
            race.run()
            found["contests"][contest.name] = race.summary()
            if not settings.no_start and contest.name != "tiny":
                found["start"] = start_times(contest, pythons)
    print("\n".join(told(found)))
    if settings.json is not None:
        settings.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
