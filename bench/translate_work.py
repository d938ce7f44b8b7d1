"""What bench/translate.py gives every engine to do: models in each engine's own format, and token ids in groups.

A group is sentences of like length that are translated side by side. Where a group is held, every output has as many
steps as its mean reference has tokens: with random weights outputs would hardly ever end.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from headway.config.data_config import TextConfig
from headway.config.model_config import ModelConfig
from headway.config.presets import BASE, TINY
from headway.config.schema import SearchConfig
from headway.corpus.lines import read_lines
from headway.engine.pack import PRECISIONS, pack_folder
from headway.errors import HeadwayError
from headway.folder.contents import FolderConfig, ModelFolder, write_folder
from headway.text.reserved import EOS_ID
from headway.text.subword import LEARNERS
from headway.text.tokenizer import Tokenizer

MODELS = {
    "base": BASE,
    "tiny": TINY,
    "smallest": ModelConfig(  # to try the script with
        vocab_size=307, d_model=16, d_ff=32, num_heads=2, num_encoder_layers=1, num_decoder_layers=1
    ),
}
TEST = ("wmt/newstest2014.en-de.en", "wmt/newstest2014.en-de.de")
LEARNT_FROM = ("wmt/newstest2013.en", "wmt/newstest2013.de", "tatoeba/en-de.train.tsv")
MEAN_LENGTH, SPREAD = 29, 0.48  # tokens of newstest2014, and the spread of their logarithm, where it is not at hand
SENTENCES, LONGEST = 3_003, 256
SEED = 1
VERIFIED = ("A man rides a horse.",)  # what an export of random weights is compared on
Ids = list[int]


@dataclass(frozen=True)
class Group:
    """Sources in ids, EOS last, and how many steps an output may have, EOS's counted; held: has."""

    sources: list[Ids]
    limit: int
    held: bool


@dataclass
class Contest:
    """One model in every engine's format, and what there is to translate with it.

    ``work``: by its name, groups. ``missing``: engines that have no model, and why. ``texts``: references in the order
    of the corpus, for a model whose outputs mean something.
    """

    name: str
    folder: ModelFolder
    work: dict[str, list[Group]]
    paths: dict[str, Path] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    references: list[str] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def config(self) -> ModelConfig:
        """The model's."""
        return self.folder.config.model

    def write_work(self, path: Path) -> None:
        """For the processes of the engines."""
        found = {name: [asdict(group) for group in groups] for name, groups in self.work.items()}
        path.write_text(json.dumps(found), encoding="utf-8")


def held_groups(sources: Sequence[Ids], lengths: Sequence[int], *, size: int) -> list[Group]:
    """All sources by length in groups, each held to the mean of its references' ``lengths``, EOS counted."""
    order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
    groups: list[Group] = []
    for start in range(0, len(order), size):
        places = order[start : start + size]
        mean = round(sum(lengths[place] for place in places) / len(places))
        groups.append(Group([sources[place] for place in places], max(mean, 1), held=True))
    return groups


def free_groups(sources: Sequence[Ids], *, size: int, extra: int) -> tuple[list[Group], list[int]]:
    """The same with real ends, the limit the longest source + ``extra``; and the place of each output in the corpus."""
    order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
    groups = [
        Group([sources[place] for place in places], max(len(sources[place]) for place in places) + extra, held=False)
        for start in range(0, len(order), size)
        if (places := order[start : start + size])
    ]
    return groups, order


def spread(groups: Sequence[Group], count: int) -> list[Group]:
    """So many of the groups, evenly over all lengths."""
    if count >= len(groups):
        return list(groups)
    return [groups[round((place + 0.5) * len(groups) / count - 0.5)] for place in range(count)]


def singles(groups: Sequence[Group], count: int) -> list[Group]:
    """So many of the sentences, evenly over all lengths, each a group of its own."""
    return spread([Group([ids], group.limit, held=group.held) for group in groups for ids in group.sources], count)


def read_texts(data: Path | None) -> tuple[list[str], list[str], list[str]] | None:
    """Source and reference of newstest2014, and other text to learn its vocabulary from; None where they are not."""
    wanted = [] if data is None else [data / name for name in (*TEST, *LEARNT_FROM)]
    if not wanted or not all(path.exists() for path in wanted):
        return None
    source, reference, *others = ([*read_lines(path)] for path in wanted)
    return source, reference, [text for lines in others for line in lines for text in line.split("\t")]


def drawn_texts(seed: int = SEED) -> list[str]:
    """Words of random letters, to learn any vocabulary from."""
    random = np.random.default_rng(seed)
    letters = np.array([*"abcdefghijklmnopqrstuvwxyz"])
    words = ["".join(random.choice(letters, length)) for length in random.integers(3, 9, 20_000)]
    return [" ".join(words[start : start + 20]) for start in range(0, len(words), 20)] * 2


def drawn_ids(vocab_size: int, *, count: int, seed: int = SEED) -> tuple[list[Ids], list[int]]:
    """Sources of random tokens whose lengths are spread as newstest2014's, and lengths of references."""
    random = np.random.default_rng(seed)
    lengths = np.exp(np.log(MEAN_LENGTH) - SPREAD**2 / 2 + SPREAD * random.standard_normal((2, count)))
    sources, references = np.clip(lengths.round(), 2, LONGEST).astype(int)
    return [[*random.integers(4, vocab_size, length - 1).tolist(), EOS_ID] for length in sources], references.tolist()


def random_contest(name: str, *, folder: Path, data: Path | None, size: int, groups: int, sentences: int) -> Contest:
    """A model with random weights: newstest2014 at base's size, each group held to its mean reference length."""
    model = MODELS[name]
    texts = read_texts(data) if name == "base" else None
    tokenizer = learnt(folder / "tokenizer.json", drawn_texts() if texts is None else texts[2], model.vocab_size)
    opened = random_folder(folder / "model", model.model_copy(update={"vocab_size": tokenizer.vocab_size}), tokenizer)
    if texts is None:
        sources, lengths = drawn_ids(tokenizer.vocab_size, count=SENTENCES)
        note = f"{name}: sources of random tokens, their lengths drawn as newstest2014's are spread"
        if name == "base":
            note += f" (newstest2014 and what its vocabulary is learnt from are not in {data}: give --data)"
    else:
        sources = [[*ids, EOS_ID] for ids in tokenizer.encode_batch(texts[0])]
        lengths = [len(ids) + 1 for ids in tokenizer.encode_batch(texts[1])]
        note = f"{name}: newstest2014 English, {np.mean([len(ids) for ids in sources]):.1f} tokens a sentence"
    everything = held_groups(sources, lengths, size=size)
    contest = Contest(
        name,
        opened,
        {"corpus": spread(everything, groups), "single": singles(held_groups(sources, lengths, size=1), sentences)},
    )
    contest.notes.append(f"{note}; random weights, {tokenizer.vocab_size:,} tokens")
    make_models(contest, folder, sentences=VERIFIED)
    return contest


def learnt(path: Path, texts: Sequence[str], vocab_size: int) -> Tokenizer:
    """A BPE vocabulary, learnt once and kept."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LEARNERS["bpe"](texts, vocab_size=vocab_size).to_json(), encoding="utf-8")
    return Tokenizer.from_json(path.read_text(encoding="utf-8"))


def random_folder(path: Path, model: ModelConfig, tokenizer: Tokenizer) -> ModelFolder:
    """A model folder as the initial weights of training are, made once."""
    from headway.model.build import build_transformer, export_weights

    if not path.exists():
        write_folder(
            path,
            config=FolderConfig(
                model=model,
                search=SearchConfig(max_extra_tokens=1),  # no output ends by itself
                text=TextConfig(shared_vocabulary=True),
                max_source_tokens=LONGEST,
            ),
            weights=export_weights(build_transformer(model, seed=SEED)),
            source_tokenizer=tokenizer,
            target_tokenizer=tokenizer,
            card="Random weights, for bench/translate.py.\n",
        )
    return ModelFolder.open(path)


def real_contest(model: Path, *, folder: Path, source: Path, reference: Path, size: int, sentences: int) -> Contest:
    """A trained model and real text; outputs end where they end."""
    opened = ModelFolder.open(model)
    texts, references = [*read_lines(source)], [*read_lines(reference)]
    if len(texts) != len(references):
        raise SystemExit(
            f"{source} has {len(texts):,} lines, {reference} {len(references):,}: they are of unlike texts"
        )
    sources = [[*ids, EOS_ID] for ids in opened.source_tokenizer.encode_batch(texts)]
    groups, order = free_groups(sources, size=size, extra=opened.config.search.max_extra_tokens)
    contest = Contest("tiny", opened, {"corpus": groups, "single": singles(groups, sentences)})
    contest.references = [references[place] for place in order]
    mean = np.mean([len(ids) for ids in sources])
    contest.notes.append(f"tiny: {model}, {source.name}, {len(sources):,} sentences, {mean:.1f} tokens each; real ends")
    make_models(contest, folder, sentences=texts[:200])
    return contest


def make_models(contest: Contest, folder: Path, *, sentences: Sequence[str]) -> None:
    """The folder packed, and exported to the peers, each by Headway's own exporter; kept for another time."""
    contest.paths["torch"] = contest.folder.path
    folder.mkdir(parents=True, exist_ok=True)
    for precision in PRECISIONS:
        path = folder / f"packed-{precision}.safetensors"
        contest.paths[f"headway-{precision}"] = pack_folder(contest.folder, precision=precision, path=path)
    for engine, make in (("huggingface", export), ("ctranslate2", export_ctranslate2)):
        try:
            contest.paths |= make(contest.folder, folder, sentences)
        except HeadwayError as error:
            contest.missing[engine] = f"not exported: {error}"


def export(folder: ModelFolder, out: Path, sentences: Sequence[str], *, name: str = "huggingface") -> dict[str, Path]:
    """By ``headway export``, made again where the weights are newer."""
    from headway.interchange.formats import export_model

    path = out / name
    weights = folder.path / "model.safetensors"
    if path.exists() and path.stat().st_mtime < weights.stat().st_mtime:
        shutil.rmtree(path)
    if not path.exists():
        export_model(folder, path, target_format=name, sentences=sentences)
    return {f"{name}-float32": path}


def export_ctranslate2(folder: ModelFolder, out: Path, sentences: Sequence[str]) -> dict[str, Path]:
    """The same; and once more with its own 8-bit weights on the disk, so that loading them takes no more memory."""
    found = export(folder, out, sentences, name="ctranslate2")
    whole, path = found["ctranslate2-float32"], out / "ctranslate2-int8"
    if path.exists() and path.stat().st_mtime < whole.stat().st_mtime:
        shutil.rmtree(path)
    if not path.exists():
        from headway.interchange.ctranslate2_export import count_positions
        from headway.interchange.ctranslate2_spec import build_spec

        spec = build_spec(folder.config.model, folder.weights(), num_positions=count_positions(folder))
        spec.register_source_vocabulary(list(folder.source_tokenizer.names))
        spec.register_target_vocabulary(list(folder.target_tokenizer.names))
        spec.validate()
        spec.optimize(quantization="int8")
        path.mkdir()
        spec.save(str(path))
        shutil.copyfile(whole / "config.json", path / "config.json")
    return {**found, "ctranslate2-int8": path}
