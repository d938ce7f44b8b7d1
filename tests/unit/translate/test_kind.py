"""Each kind of model is used by one command, and every other command says which."""

import pytest

from headway.config.model_config import ModelConfig
from headway.config.schema import ParsingConfig
from headway.errors import TranslationError
from headway.folder.contents import FolderConfig, ModelFolder, write_folder
from headway.text.bpe import learn_bpe
from headway.translate.kind import KINDS, check_kind, kind_of

# the command that is named -> a model that it uses
MODELS = {
    "headway translate": ({"architecture": "transformer"}, {}),
    "headway parse": ({"architecture": "transformer"}, {"parsing": ParsingConfig()}),
    "headway generate": ({"architecture": "decoder_only"}, {}),
    "headway classify": ({"architecture": "encoder_only"}, {"labels": ("good", "bad")}),
    "headway train classify --init": ({"architecture": "encoder_only"}, {}),
}


def folder_of(path, model, more):
    tokenizer = learn_bpe(["a house"], vocab_size=270)
    sizes = {"vocab_size": tokenizer.vocab_size, "d_model": 14, "d_ff": 11, "num_heads": 7}
    config = FolderConfig(model=ModelConfig(**sizes, **model), max_source_tokens=53, **more)
    both = {"source_tokenizer": tokenizer, "target_tokenizer": tokenizer}
    write_folder(path, config=config, weights={}, **both, card="A card.")
    return ModelFolder.open(path)


@pytest.mark.parametrize("named", MODELS)
def test_a_model_serves_one_command_and_the_others_name_it(tmp_path, named):
    folder = folder_of(tmp_path / "model", *MODELS[named])
    own = named.replace("train ", "").split()[1]
    check_kind(folder, own)
    for command in KINDS.keys() - {own}:
        with pytest.raises(TranslationError) as told:
            check_kind(folder, command)
        assert f"model is {kind_of(folder)} (" in str(told.value)
        assert f"wanted {KINDS[command]}. Use it with `{named}" in str(told.value)


@pytest.mark.parametrize("architecture", ["recurrent", "convolutional"])
def test_other_encoder_decoders_are_translators(tmp_path, architecture):
    tokenizer = learn_bpe(["a house"], vocab_size=270)
    model = ModelConfig(architecture=architecture, vocab_size=tokenizer.vocab_size, d_model=14)
    both = {"source_tokenizer": tokenizer, "target_tokenizer": tokenizer}
    config = FolderConfig(model=model, max_source_tokens=53)
    write_folder(tmp_path / "model", config=config, weights={}, **both, card="A card.")
    check_kind(ModelFolder.open(tmp_path / "model"), "translate")
