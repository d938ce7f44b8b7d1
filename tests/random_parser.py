"""A parser with random weights: it knows nothing, and what surrounds it must give trees all the same."""

import torch

from headway.config.model_config import ModelConfig
from headway.config.positions import write_bits
from headway.config.schema import ParsingConfig, SearchConfig
from headway.data.word_starts import source_word_starts, target_word_starts
from headway.folder.contents import FolderConfig, write_folder
from headway.model.build import build_transformer, export_weights
from headway.text.bpe import learn_bpe
from headway.text.symbols import learn_symbols
from headway.text.tagged_words import token_name
from headway.translate.backend import model_backend
from headway.translate.parser import Parser

TAGS = ["DT", "NN", "VBZ", ".", "``"]
SYMBOLS = ["S NP DT NN /NP VP VBZ /VP . /S", "`` S VBZ /S", "NP NN /NP"]
XX = ["S NP XX /NP VP XX /VP /S"]


def source_tokenizer():
    return learn_bpe(["the dog sleeps ."] * 3, vocab_size=300, tags=[token_name(tag) for tag in TAGS])


def model_config(source, target, **sizes):
    return ModelConfig(
        vocab_size=target.vocab_size,
        source_vocab_size=source.vocab_size,
        d_model=8,
        d_ff=13,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        embedding_sharing="none",
        dropout=0.0,
        **sizes,
        **(word_starts(source, target) if "words" in sizes.values() else {}),
    )


def word_starts(source, target):
    return {
        "source_word_starts": write_bits(source_word_starts(source, ParsingConfig())),
        "target_word_starts": write_bits(target_word_starts(target)),
    }


def parser_of(*, seed=1, symbols=SYMBOLS, extra=70, max_source_tokens=23, **parsing):
    source, target = source_tokenizer(), learn_symbols(symbols, vocab_size=53)
    model = build_transformer(model_config(source, target), seed=seed).eval()
    return Parser(
        model_backend(model, torch.device("cpu")),
        source,
        target,
        parsing=ParsingConfig(**parsing),
        max_source_tokens=max_source_tokens,
        search=SearchConfig(beam_size=2, max_extra_tokens=extra),
    )


def write_parser(path, *, seed=1, parsing=None, **sizes):
    source, target = source_tokenizer(), learn_symbols(SYMBOLS, vocab_size=53)
    config = model_config(source, target, max_positions=31, **sizes)
    write_folder(
        path,
        config=FolderConfig(
            model=config,
            max_source_tokens=23,
            text={"shared_vocabulary": False},
            search=SearchConfig(beam_size=2, max_extra_tokens=70),
            parsing=parsing or ParsingConfig(),
        ),
        weights=export_weights(build_transformer(config, seed=seed)),
        source_tokenizer=source,
        target_tokenizer=target,
        card="A parser.",
    )
    return path
