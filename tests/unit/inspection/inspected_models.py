"""Small models in memory and in folders, to be looked into."""

import torch

from headway.config.model_config import ModelConfig
from headway.folder.contents import FolderConfig, write_folder
from headway.inspection.subject import Subject
from headway.model.build import build_transformer, export_weights
from headway.text.bpe import learn_bpe
from headway.translate.backend import model_backend
from headway.translate.translator import Translator, longest_output

TEXTS = [f"the {animal} sat on {number} mats" for animal in ("cat", "dog", "cow") for number in range(9)]
TEXTS += [f"auf {number} matten sitzt ein {animal}" for animal in ("kater", "hund", "rind") for number in range(9)]
TOKENIZER = learn_bpe(TEXTS, vocab_size=300)
CPU = torch.device("cpu")
SIZES = {
    "vocab_size": TOKENIZER.vocab_size,
    "d_model": 14,
    "d_ff": 11,
    "num_heads": 4,
    "d_k": 6,
    "d_v": 5,
    "num_encoder_layers": 3,
    "num_decoder_layers": 2,
}


def scrambled(seed=1, **parts):
    """A model whose every number is random."""
    model = build_transformer(ModelConfig(**SIZES | parts), seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
    return model.eval()


def subject_of(model, *, tokenizer=TOKENIZER, max_source_tokens=61, max_positions=None, tags=()):
    translator = Translator(
        model_backend(model, CPU),
        tokenizer,
        tokenizer,
        max_source_tokens=max_source_tokens,
        source_language="en",
        target_language="de",
        max_output_tokens=max_positions,
        tags=tags,
    )
    return Subject(model, CPU, translator, max_source_tokens)


def small_subject(seed=1, *, max_source_tokens=61, **parts):
    config = ModelConfig(**SIZES | parts)
    return subject_of(
        scrambled(seed, **parts), max_source_tokens=max_source_tokens, max_positions=longest_output(config)
    )


def small_folder(path, **parts):
    config = ModelConfig(**SIZES | parts)
    return write_folder(
        path,
        config=FolderConfig(model=config, max_source_tokens=61, source_language="en", target_language="de"),
        weights=export_weights(scrambled(**parts)),
        source_tokenizer=TOKENIZER,
        target_tokenizer=TOKENIZER,
        card="",
    )
