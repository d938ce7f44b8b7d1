"""A model that was trained with tags is asked by tag."""

from dataclasses import dataclass

import pytest
import torch
from translate_copies import TEXTS, CopyPredictor, diagonal

from headway.errors import TranslationError
from headway.text.bpe import learn_bpe
from headway.text.tokenizer import EOS_ID, PAD_ID
from headway.translate.evaluate import evaluate
from headway.translate.torch_backend import TorchBackend
from headway.translate.translator import Translator


@dataclass
class Heard:
    """What the model was given to translate and to score."""

    sources: list[tuple[int, ...]]
    scored: list[tuple[int, ...]]


class TaggedCopyPredictor(CopyPredictor):
    """Copies what comes after the tags, as a model that was trained with them does."""

    def start(self, source_BS, source_mask_BS):
        super().start(source_BS, source_mask_BS)
        has_tag = (source_BS[:, 0] == 4) | (source_BS[:, 0] == 5)
        rolled = source_BS.roll(-1, dims=1)
        rolled[:, -1] = PAD_ID
        return torch.where(has_tag[:, None], rolled, source_BS), 0


def listening_translator(tags, **options):
    """A translator around the model that copies, and what that model hears; home is tag 4 and law tag 5."""
    tokenizer = learn_bpe(TEXTS, vocab_size=300, tags=("home", "law"))
    backend = TorchBackend(TaggedCopyPredictor(tokenizer.vocab_size), torch.device("cpu"), attention=diagonal)
    heard = Heard([], [])
    search = backend.search
    backend.search = lambda sources, **rest: heard.sources.extend(sources) or search(sources, **rest)

    def score(sources, targets):
        heard.scored.extend(sources)
        return [[-0.5] * len(target) for target in targets]

    backend.score = score
    translator = Translator(backend, tokenizer, tokenizer, max_source_tokens=23, tags=tags, **options)
    return translator, heard


def test_the_tag_stands_before_every_piece_of_a_source_and_leaves_no_trace_in_the_text():
    translator, heard = listening_translator(("home", "law"))
    texts = ["the cat sat", "", "a house.\nthe hill.", "how are you? " * 13 + "sat"]
    for tag, tag_id in (("home", 4), ("law", 5)):
        heard.sources.clear()
        assert [translation.text for translation in translator.tagged(tag).translate(texts)] == texts
        assert len(heard.sources) > 5
        assert all(ids[0] == tag_id and ids[-1] == EOS_ID for ids in heard.sources)
        assert all(not {4, 5} & set(ids[1:]) for ids in heard.sources)
        assert max(len(ids) for ids in heard.sources) <= 23


def test_each_text_may_have_its_own_tag():
    translator, heard = listening_translator(("", "home", "law"))
    translator.translate(["the cat", "a house", "the hill"], tags=["law", "", "home"])
    firsts = {
        tuple(translator.source_tokenizer.encode(text)): first for text, first in (("the cat", 5), ("the hill", 4))
    }
    plain = tuple(translator.source_tokenizer.encode("a house"))
    assert {ids[1:-1]: ids[0] for ids in heard.sources if ids[:-1] != plain} == firsts
    assert (*plain, EOS_ID) in heard.sources


def test_the_source_s_tokens_and_alignment_know_nothing_of_the_tag():
    translator, _ = listening_translator(("home",))
    (translation,) = translator.tagged("home").translate(["the cat"], with_alignment=True)
    plain = translator.source_tokenizer.tokens(translator.source_tokenizer.encode("the cat"))
    assert list(translation.source_tokens) == plain
    # The diagonal gives the first token the tag, in whose place comes the first word; then each the token before it.
    assert translation.alignment == ((0, 0), *((place, place + 1) for place in range(len(plain) - 1)))


def test_scores_are_those_of_the_tagged_source():
    translator, heard = listening_translator(("home", "law"))
    translator.tagged("law").score(["the cat"], ["a house"])
    translator.score(["the hill"], ["a house"], tags=["home"])
    assert [ids[0] for ids in heard.scored] == [5, 4]


def test_an_evaluation_passes_the_tags_on():
    translator, heard = listening_translator(("home", "law"))
    evaluate(translator, ["the cat", "a house"], ["the cat", "a house"], tags=["law", "home"])
    assert sorted(ids[0] for ids in heard.sources) == sorted(ids[0] for ids in heard.scored) == [4, 5]
    evaluate(translator.tagged("law"), ["the cat"], ["the cat"])
    assert [ids[0] for ids in heard.sources[2:] + heard.scored[2:]] == [5, 5]


@pytest.mark.parametrize(
    ("known", "tag", "message"),
    [
        (("home", "law"), "lab", r"found the tag 'lab'; the model's sources had these: home, law\. Name one"),
        (("home", "law"), "", r"found no tag; the model's sources had these: home, law\. Name one"),
        (("", "home"), "law", r"found the tag 'law'; the model's sources had these: none, home\. Name one"),
        ((), "home", r"found the tag 'home'; the model was trained without tags\. Leave --tag out\."),
    ],
)
def test_an_unknown_tag_is_an_error_that_names_those_known(known, tag, message):
    translator, heard = listening_translator(known)
    with pytest.raises(TranslationError, match=message):
        translator.tagged(tag)
    with pytest.raises(TranslationError, match=message):
        translator.translate(["the cat"], tags=[tag])
    if not tag:
        with pytest.raises(TranslationError, match=message):
            translator.translate(["the cat"])
    assert heard.sources == []


def test_a_text_without_a_tag_is_one_where_some_sources_had_none():
    translator, heard = listening_translator(("", "home"))
    translator.translate(["the cat"])
    assert 4 not in heard.sources[0]


def test_tags_must_be_as_many_as_texts():
    translator, _ = listening_translator(("home",))
    with pytest.raises(TranslationError, match=r"1 tags for 2 texts; wanted one each"):
        translator.translate(["the cat", "a house"], tags=["home"])


def test_a_model_that_writes_its_tags_back_is_kept_from_it():
    tokenizer = learn_bpe(TEXTS, vocab_size=300, tags=("home", "law"))
    backend = TorchBackend(CopyPredictor(tokenizer.vocab_size), torch.device("cpu"), attention=diagonal)
    translator = Translator(backend, tokenizer, tokenizer, max_source_tokens=23, tags=("home", "law"))
    (translation,) = translator.tagged("law").translate(["the cat sat"])
    assert not {"⟨tag:home⟩", "⟨tag:law⟩"} & set(translation.tokens)
    assert set(tokenizer.tokens([4, 5])) == {"⟨tag:home⟩", "⟨tag:law⟩"}
