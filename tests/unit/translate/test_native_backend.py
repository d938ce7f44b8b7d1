"""What computes a translation: the compiled engine where it can, torch for what it lacks, and why, by name."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from test_translate_folder import SENTENCES, folder

from headway.engine.pack import PRECISIONS as ENGINE_PRECISIONS
from headway.errors import HeadwayError, MissingExtraError, TranslationError
from headway.folder.contents import ModelFolder
from headway.search.settings import Diversity, Sampling
from headway.translate import backend
from headway.translate.backend import choose
from headway.translate.compute import PRECISIONS, Choice, Compute
from headway.translate.decoding import Decoding
from headway.translate.evaluate import evaluate
from headway.translate.marked import translate_marked
from headway.translate.native_backend import NativeBackend
from headway.translate.risk import Risk
from headway.translate.torch_backend import TorchBackend
from headway.translate.translator import Translator

WITHOUT_TORCH = """
import sys
from pathlib import Path

class Refuse:
    def find_spec(self, name, path=None, target=None):
        return __import__("importlib.machinery", fromlist=["x"]).ModuleSpec(name, self) if name == "torch" else None
    def create_module(self, spec):
        raise ImportError("torch is refused here")
    def exec_module(self, module): ...

if sys.argv[2] == "refused":
    sys.meta_path.insert(0, Refuse())
from headway.cli.main import main
from headway.translate.translator import Translator

path = sys.argv[1]
Path("source").write_text("the cat\\na small house\\n")
Path("reference").write_text("the mat\\na house\\n")
for words in (
    ["translate", "source", "--format", "jsonl", "--alignment", "--n-best", "2"],
    ["translate", "source", "--score", "reference"],
    ["evaluate", "--source", "source", "--reference", "reference"],
):
    assert main([words[0], "-m", path, *words[1:]]) == 0, words
translator = Translator.from_folder(path)
assert translator.translate(["the cat"], with_alignment=True)[0].alignment is not None
assert translator.score(["the cat"], ["the mat"])[0].num_tokens > 1
assert "torch" not in sys.modules
"""


def needs_engine():
    pytest.importorskip("headway_native", reason="headway-native is not built here")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return folder(tmp_path_factory.mktemp("model"))


@pytest.fixture
def native(path, notices):
    needs_engine()
    return Translator.from_folder(path, "cpu", precision="float32", on_notice=notices.append)


@pytest.fixture(scope="module")
def other(path):
    return Translator.from_folder(path, "cpu", engine="torch")


@pytest.fixture
def notices():
    return []


@pytest.fixture
def with_engine(monkeypatch):
    monkeypatch.setattr(backend, "is_installed", lambda: True)
    monkeypatch.setattr(backend, "has_gpu", lambda: False)


@pytest.fixture
def no_torch(monkeypatch):
    monkeypatch.setattr(backend, "find_spec", lambda name: None)


def chosen(path, compute, count=1):
    return choose([ModelFolder.open(path)] * count, compute)


@pytest.mark.parametrize("way", ["refused", "free"])
def test_translating_scoring_aligning_and_evaluating_never_import_torch(path, tmp_path, way):
    needs_engine()
    command = [sys.executable, "-c", WITHOUT_TORCH, str(path), way]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "torch" not in done.stderr


@pytest.mark.parametrize("beam_size", [1, 3])
def test_what_the_engine_finds_and_scores_is_what_torch_does(native, other, beam_size):
    assert isinstance(native.backend, NativeBackend)
    assert isinstance(other.backend, TorchBackend)
    settings = {"beam_size": beam_size, "n_best": beam_size, "with_alignment": True}
    for one, two in zip(*(which.translate(SENTENCES, **settings) for which in (native, other)), strict=True):
        assert one.text == two.text
        assert one.alignment == two.alignment
        for mine, its in zip((one, *one.alternatives), (two, *two.alternatives), strict=True):
            assert mine.tokens == its.tokens
            assert mine.log_prob == pytest.approx(its.log_prob, abs=1e-4)
    for one, two in zip(*(which.score(SENTENCES, SENTENCES[::-1]) for which in (native, other)), strict=True):
        assert one.token_log_probs == pytest.approx(two.token_log_probs, abs=1e-4)


def test_the_engine_is_given_all_sentences_at_once_and_the_result_does_not_depend_on_it(native, monkeypatch):
    sizes = []
    search = native.backend.engine.search

    def counted(sources, **options):
        sizes.append(len(sources))
        return search(sources, **options)

    monkeypatch.setattr(native.backend.engine, "search", counted)
    texts = SENTENCES * 61
    together = native.translate(texts)
    assert sizes == [len(texts)]
    assert native.translate(texts, batch_tokens=211) == together
    assert len(sizes) > 31


@pytest.mark.parametrize(
    ("settings", "lacking"),
    [
        ({"decoding": Decoding(sampling=Sampling(seed=7))}, "sampling"),
        ({"decoding": Decoding(risk=Risk(samples=5))}, "sampling"),
        ({"decoding": Decoding(beam_size=4, diversity=Diversity(groups=2))}, "diversity groups"),
        ({"phrases": [["mat"]] * 2}, "phrases that outputs must contain"),
    ],
)
def test_what_the_search_of_the_engine_lacks_is_computed_by_torch_and_told_once(
    native, other, notices, settings, lacking
):
    for _ in range(2):
        assert native.translate(SENTENCES[:2], **settings) == other.translate(SENTENCES[:2], **settings)
    assert notices == [f"the engine's search has no {lacking}: torch computes that, in float32"]


def test_sentences_without_phrases_stay_with_the_engine(native, other, notices):
    wanted = [[], ["mat"], []]
    found = native.translate(SENTENCES[:3], phrases=wanted)
    assert [one.tokens for one in found] == [one.tokens for one in other.translate(SENTENCES[:3], phrases=wanted)]
    assert found[0] == native.translate(SENTENCES[:1])[0]
    assert len(notices) == 1


@pytest.mark.parametrize(
    ("wish", "words"),
    [({"engine": "native"}, "Leave --engine native out"), ({"precision": "int8"}, "Leave --precision int8 out")],
)
def test_torch_never_takes_the_place_of_an_engine_that_was_asked_for(path, wish, words):
    needs_engine()
    translator = Translator.from_folder(path, "cpu", **wish)
    with pytest.raises(TranslationError, match=f"the engine's search has no sampling. {words}"):
        translator.translate(["the cat"], decoding=Decoding(sampling=Sampling()))
    # What a placeholder that was lost is sought by is only a second try: there are others, without phrases.
    assert not translator.leads_to_phrases
    (marked,) = translate_marked(translator, ["the {name} sat"])
    assert marked.notes or marked.problems or "{name}" in marked.text


def test_where_torch_is_not_installed_what_it_would_do_is_refused_with_the_remedy(path, no_torch):
    needs_engine()
    translator = Translator.from_folder(path)
    assert translator.translate(["the cat"])[0].text
    assert not translator.leads_to_phrases
    with pytest.raises(MissingExtraError, match=r"no sampling, and torch, .* not installed\. Run: pip install 'head"):
        translator.translate(["the cat"], decoding=Decoding(sampling=Sampling()))


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (Compute(), Choice("native", "int8")),
        (Compute(device="cpu"), Choice("native", "int8")),
        (Compute(precision="float32"), Choice("native", "float32")),
        (Compute(engine="native", precision="float32"), Choice("native", "float32")),
        (Compute(engine="torch"), Choice("torch", "float32")),
        (Compute(device="cuda"), Choice("torch", "float32")),
        (Compute(device="mps", precision="float32"), Choice("torch", "float32")),
    ],
)
@pytest.mark.usefixtures("with_engine")
def test_the_engine_computes_on_a_cpu_and_torch_where_it_is_asked_for(path, compute, expected):
    assert chosen(path, compute) == expected


@pytest.mark.usefixtures("with_engine")
def test_torch_computes_where_there_is_a_gpu_unless_the_cpu_or_the_engine_is_asked_for(path, monkeypatch):
    monkeypatch.setattr(backend, "has_gpu", lambda: True)
    assert chosen(path, Compute()) == Choice("torch", "float32")
    assert chosen(path, Compute(device="cpu")).engine == "native"
    assert chosen(path, Compute(engine="native")).engine == "native"
    with pytest.raises(TranslationError, match=r"a GPU, .* torch computes; or add --device cpu\.$"):
        chosen(path, Compute(precision="int8"))


@pytest.mark.usefixtures("with_engine")
def test_why_torch_computes_is_told_by_name(path, tmp_path, notices, monkeypatch):
    strange = folder(tmp_path, positions="t5", attention_window=7)
    assert chosen(strange, Compute()).reason == "the engine does not run positions t5 and attention_window 7"
    assert chosen(path, Compute(), count=2).reason == "the engine does not join several models"
    Translator.from_folder(strange, on_notice=notices.append).translate(SENTENCES[:2])
    assert notices == ["the engine does not run positions t5 and attention_window 7: torch computes"]
    monkeypatch.setattr(backend, "is_installed", lambda: False)
    assert chosen(path, Compute()).reason == "headway-native, the engine for CPUs, is not installed"
    assert chosen(path, Compute(engine="torch")).reason == ""


@pytest.mark.parametrize(
    ("wish", "model", "words"),
    [
        (
            {"engine": "native"},
            {"positions": "t5"},
            "asked for, but the engine does not run positions t5. Leave --engine",
        ),
        ({"engine": "native", "device": "cuda"}, {}, "asked for, but the device cuda was asked for. Leave --engine"),
        (
            {"precision": "int8"},
            {"positions": "t5"},
            "int8 is .* but the engine does not run positions t5. Leave --prec",
        ),
        ({"precision": "int8", "engine": "torch"}, {}, "int8 is a precision of the native engine, but torch was asked"),
        ({"engine": "numpy"}, {}, "engine is 'numpy'; wanted one of auto, native, torch"),
        ({"precision": "bf16"}, {}, "precision is 'bf16'; wanted one of auto, int8, float32"),
        ({"device": "tpu"}, {}, "device is 'tpu'; wanted one of auto, cpu, cuda, mps"),
        ({"threads": 0}, {}, "threads are 0; wanted 1 or more"),
    ],
)
@pytest.mark.usefixtures("with_engine")
def test_a_wish_that_cannot_be_met_is_an_error_with_the_remedy(tmp_path, wish, model, words):
    with pytest.raises(TranslationError, match=words) as error:
        Translator.from_folder(folder(tmp_path, **model), **wish)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("no_torch")
def test_where_neither_is_installed_both_are_named(path, monkeypatch):
    monkeypatch.setattr(backend, "is_installed", lambda: False)
    with pytest.raises(
        MissingExtraError, match=r"headway-native, .* is not installed, and torch, .* not installed"
    ) as told:
        Translator.from_folder(path)
    assert "Run: pip install 'headway[train]'; or run: pip install headway-native" in str(told.value)


@pytest.mark.parametrize("visible", ["", "-1"])
def test_a_gpu_that_is_hidden_is_no_gpu(monkeypatch, visible):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setitem(sys.modules, "torch", None)  # would raise if it were imported
    assert not backend.has_gpu()


def test_torch_is_asked_for_a_gpu_only_where_a_driver_left_a_sign(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(backend, "GPU_SIGNS", (str(tmp_path / "nvidia0"),))
    monkeypatch.setattr(backend, "find_spec", lambda name: object())
    monkeypatch.delitem(sys.modules, "torch")
    asked = []
    fake = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: asked.append(True) is None))
    monkeypatch.setattr("builtins.__import__", lambda name, *rest: fake if name == "torch" else pytest.fail(name))
    assert not backend.has_gpu()
    assert not asked
    (tmp_path / "nvidia0").touch()
    assert backend.has_gpu()
    assert asked


def test_the_wishes_name_every_precision_that_the_engine_packs():
    assert ("auto", *ENGINE_PRECISIONS) == PRECISIONS


def test_an_evaluation_by_the_engine_is_that_by_torch(native, other):
    one, two = (evaluate(which, SENTENCES[:4], SENTENCES[:4], target_language="de") for which in (native, other))
    assert one.translations == two.translations
    assert one.scores.to_dict() == two.scores.to_dict()
    assert one.perplexity == pytest.approx(two.perplexity, rel=1e-4)


def test_a_model_that_gives_no_number_is_told(tmp_path):
    needs_engine()
    from headway.folder.weights import read_weights, write_weights

    folder(tmp_path)
    weights = {name: array.copy() for name, array in read_weights(tmp_path / "model.safetensors").items()}
    weights["decoder.layers.0.feed_forward.inner.weight"][:] = 3e38
    write_weights(tmp_path / "model.safetensors", weights)
    translator = Translator.from_folder(tmp_path, precision="float32")
    with pytest.raises(HeadwayError, match="no output has a finite log-probability"):
        translator.translate(["the cat"])


@pytest.mark.parametrize(("threads", "told"), [(None, 0), (32, 0), (33, 1)])
def test_threads_of_which_some_rest_while_few_lines_are_translated_are_told(path, notices, threads, told):
    needs_engine()
    translator = Translator.from_folder(path, "cpu", threads=threads, on_notice=notices.append)
    assert translator.translate(["the cat"])[0].text
    assert notices == [f"of {threads} threads 32 at most work together on few lines; many lines take all"] * told
