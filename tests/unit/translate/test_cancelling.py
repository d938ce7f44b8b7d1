"""A translator whose calls another thread ends; the model itself goes on."""

import threading

import pytest
from test_translate_folder import SENTENCES, folder

from headway.errors import CancelledError
from headway.search.cancel import Cancel
from headway.search.settings import Sampling
from headway.translate.decoding import Decoding
from headway.translate.lines import translate_lines
from headway.translate.translator import Translator


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(params=["torch", "native"])
def translator(request, path):
    if request.param == "native":
        pytest.importorskip("headway_native", reason="headway-native is not built here")
    return Translator.from_folder(path, device="cpu", engine=request.param, precision="float32", threads=1)


def test_a_cancel_that_nobody_sets_changes_nothing(translator):
    other = translator.cancelled_by(Cancel())
    settings = {"beam_size": 2, "with_alignment": True}
    assert other.translate(SENTENCES[:3], **settings) == translator.translate(SENTENCES[:3], **settings)
    assert other.score(SENTENCES[:3], SENTENCES[:3]) == translator.score(SENTENCES[:3], SENTENCES[:3])


def test_once_it_is_set_every_call_ends_and_those_of_others_go_on(translator):
    cancel = Cancel()
    other = translator.cancelled_by(cancel)
    expected = translator.translate(SENTENCES[:2])
    cancel.set()
    for call in (
        lambda: other.translate(["the cat"]),
        lambda: other.score(["the cat"], ["the mat"]),
        lambda: list(translate_lines(other, SENTENCES)),
        lambda: other.backend.attend([[5, 3]], [[7, 3]]),
    ):
        with pytest.raises(CancelledError, match="the call was cancelled"):
            call()
    assert translator.translate(SENTENCES[:2]) == expected
    assert translator.cancelled_by(Cancel()).translate(SENTENCES[:2]) == expected


def test_a_call_under_way_is_ended_from_another_thread(translator):
    cancel, ended = Cancel(), []
    other = translator.cancelled_by(cancel)

    def translate_for_ever():
        try:
            while True:
                other.translate(SENTENCES)
        except CancelledError:
            ended.append(True)

    caller = threading.Thread(target=translate_for_ever)
    caller.start()
    cancel.set()
    caller.join(60)
    assert ended == [True]


def test_what_torch_computes_for_the_engine_is_loaded_once_and_cancelled_too(path):
    pytest.importorskip("headway_native", reason="headway-native is not built here")
    notices, cancel = [], Cancel()
    translator = Translator.from_folder(path, device="cpu", precision="auto", on_notice=notices.append)
    other, sampled = translator.cancelled_by(cancel), Decoding(sampling=Sampling(seed=3))
    assert other.translate(["the cat"], decoding=sampled) == translator.translate(["the cat"], decoding=sampled)
    assert len(notices) == 1
    cancel.set()
    with pytest.raises(CancelledError):
        other.translate(["the cat"], decoding=sampled)
    assert translator.translate(["the cat"], decoding=sampled)
