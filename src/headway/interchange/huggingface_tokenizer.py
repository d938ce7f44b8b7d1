"""Headway's tokenizers as files that Hugging Face's AutoTokenizer loads, ids unchanged.

A tokenizer that was learnt here becomes a tokenizer.json. It differs in one thing that cannot be otherwise there: a
text that spells a control token or a tag yields it.
"""

import json
from collections.abc import Mapping
from typing import Any

from headway.text.reserved import BOS_ID, CONTROL_TOKENS, EOS_ID, PAD_ID, UNK_ID
from headway.text.tokenizer import Tokenizer

TOKENIZER_FILE, CONFIG_FILE = "tokenizer.json", "tokenizer_config.json"


def tokenizer_files(tokenizer: Tokenizer, *, longest: int) -> Mapping[str, str]:
    """File name -> its text. ``longest`` is the most tokens of a source."""
    values: dict[str, Any] = json.loads(tokenizer.to_json())
    special = sorted([*range(len(CONTROL_TOKENS)), *tokenizer.tags.values()])
    eos = CONTROL_TOKENS[EOS_ID]
    values["added_tokens"] = [_added(token_id, tokenizer.names[token_id]) for token_id in special]
    values["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [_sequence("A"), _control(eos)],
        "pair": [_sequence("A"), _control(eos), _sequence("B"), _control(eos)],
        "special_tokens": {eos: {"id": eos, "ids": [EOS_ID], "tokens": [eos]}},
    }
    to_text: dict[str, object] = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    steps: list[dict[str, object]] = [to_text if tokenizer.byte_fallback else {"type": "Fuse"}]
    if values.get("normalizer") is not None:  # the space that stands before a text
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    values["decoder"] = {"type": "Sequence", "decoders": steps}
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": longest,
        "pad_token": CONTROL_TOKENS[PAD_ID],
        "unk_token": CONTROL_TOKENS[UNK_ID],
        "bos_token": CONTROL_TOKENS[BOS_ID],
        "eos_token": eos,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
    }
    return {TOKENIZER_FILE: json.dumps(values, ensure_ascii=False), CONFIG_FILE: json.dumps(config, indent=2) + "\n"}


def read_tokenizer(values: Mapping[str, object]) -> Tokenizer:
    """The tokenizer of a tokenizer.json that ``tokenizer_files`` wrote.

    Raises TextError for one that is not Headway's: only what was put around its vocabulary is taken away.
    """
    return Tokenizer.from_json(json.dumps({**values, "added_tokens": [], "post_processor": None}))


def _added(token_id: int, name: str) -> dict[str, object]:
    return {
        "id": token_id,
        "content": name,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


def _sequence(name: str) -> dict[str, object]:
    return {"Sequence": {"id": name, "type_id": 0}}


def _control(name: str) -> dict[str, object]:
    return {"SpecialToken": {"id": name, "type_id": 0}}
