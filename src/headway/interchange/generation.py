"""How a Hugging Face folder says that outputs are found (generation_config.json), and how Headway does it."""

from collections.abc import Mapping

from headway.config.schema import SearchConfig
from headway.interchange.marian_config import MarianModel
from headway.text.reserved import BOS_ID, EOS_ID, PAD_ID

FILE = "generation_config.json"
LONGEST_OUTPUT = 512  # tokens, where nothing is said: that of most Marian models
# Rules that Headway's search has not, with the values that ask for nothing.
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "do_sample": (False,),
    "num_beam_groups": (1,),
    "early_stopping": (False,),
    "repetition_penalty": (1.0,),
    "encoder_repetition_penalty": (1.0,),
    "encoder_no_repeat_ngram_size": (0,),
    "min_length": (0,),
    "min_new_tokens": (),
    "forced_bos_token_id": (),
    "begin_suppress_tokens": (),
    "sequence_bias": (),
    "exponential_decay_length_penalty": (),
    "renormalize_logits": (False,),
    "max_new_tokens": (),
}


def read_generation(
    config: Mapping[str, object], generation: Mapping[str, object], marian: MarianModel
) -> tuple[SearchConfig, tuple[str, ...]]:
    """Our search settings, and a notice for everything that the original would do otherwise.

    Older folders say it all in config.json; what generation_config.json says counts more.
    """
    values = {key: value for key, value in {**config, **generation}.items() if value is not None}
    notices: list[str] = []
    beam_size = values.get("num_beams", 1)
    if type(beam_size) is not int or beam_size < 1:
        notices.append(f"num_beams {str(beam_size)[:40]} is no beam size; 1 is taken")
        beam_size = 1
    standard = SearchConfig()
    penalty = values.get("length_penalty", 1.0)
    alpha = standard.length_penalty
    if penalty == 0:
        alpha = 0.0
    elif beam_size > 1:
        notices.append(
            f"length_penalty {str(penalty)[:40]} divides by the length to this power there, by ((5 + length) / 6)^a "
            f"here: a is {alpha:g}, as in the paper, and a beam may prefer another output"
        )
    longest = values.get("max_length", LONGEST_OUTPUT)
    if type(longest) is not int or longest < 2:
        notices.append(f"max_length {str(longest)[:40]} is no length; {LONGEST_OUTPUT} is taken")
        longest = LONGEST_OUTPUT
    ngram = values.get("no_repeat_ngram_size", 0)
    if type(ngram) is not int or ngram < 0:
        notices.append(f"no_repeat_ngram_size {str(ngram)[:40]} is no number of tokens; 0 is taken")
        ngram = 0
    for key, neutral in _NEUTRAL.items():
        if key in values and values[key] not in neutral:
            notices.append(f"{key} {str(values[key])[:40]} has no counterpart and is left out")
    notices += _forbidden(values, marian)
    search = SearchConfig(
        beam_size=beam_size,
        length_penalty=alpha,
        max_extra_tokens=max(longest - 1, 1),  # never fewer than there, whatever the source's length
        no_repeat_ngram=ngram,
    )
    return search, tuple(notices)


def write_generation(search: SearchConfig, *, longest: int) -> tuple[dict[str, object], tuple[str, ...]]:
    """What generation_config.json says of one of our models, and what it cannot say."""
    values: dict[str, object] = {
        "num_beams": search.beam_size,
        "length_penalty": search.length_penalty,
        "max_length": longest,
        "no_repeat_ngram_size": search.no_repeat_ngram,
        "suppress_tokens": [PAD_ID, BOS_ID],  # Headway's search never puts them out
        "pad_token_id": PAD_ID,
        "bos_token_id": BOS_ID,
        "decoder_start_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
        "forced_eos_token_id": EOS_ID,
    }
    notices: list[str] = []
    if search.beam_size > 1 and search.length_penalty:
        notices.append(
            f"length penalty {search.length_penalty:g} divides by ((5 + length) / 6)^a here and by length^a there: "
            "a beam may prefer another output"
        )
    notices.append(f"outputs end at {longest} tokens there, at source + {search.max_extra_tokens} here")
    return values, tuple(notices)


def _forbidden(values: Mapping[str, object], marian: MarianModel) -> list[str]:
    """Tokens that may not come out: Headway forbids padding and the start, and nothing else."""
    words = values.get("bad_words_ids", [])
    single = values.get("suppress_tokens", [])
    asked = [list(word) if isinstance(word, list) else [word] for word in words] if isinstance(words, list) else []
    asked += [[token] for token in single] if isinstance(single, list) else []
    notices: list[str] = []
    others = [word for word in asked if word not in ([marian.pad_id], [marian.start_id])]
    if others:
        notices.append(f"{len(others)} forbidden outputs (first: {str(others[0])[:40]}) are not forbidden here")
    if [marian.pad_id] not in asked:
        notices.append("padding may be put out there and never is here")
    return notices
