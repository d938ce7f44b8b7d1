"""What attention could look at: what may be seen from where, how far away it is, and which places have names.

Shapes: T queries, S keys; the same letters for tokens and for words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headway.inspection.axis import Axis
from headway.nn.masks import causal_mask, local_mask

PLACES = {
    "previous": "the previous word",
    "next": "the next word",
    "same": "the same word",
    "end": "the end",
    "first": "the beginning",
}


@dataclass(frozen=True, slots=True)
class Ground:
    """Who may be seen from where, how far apart they are, and which of the keys that a query may see are in a place.

    ``places`` are some of PLACES; a query may have no key there, or several.
    """

    visible_TS: np.ndarray
    distance_TS: np.ndarray
    places: Mapping[str, np.ndarray]


def grounds(kind: str, queries: Axis, keys: Axis, *, window: int | None) -> tuple[Ground, Ground]:
    """The ground of a kind of attention: for tokens, and for words.

    A word may see another where one of its tokens may see one of the other's. In self-attention the previous, next and
    same word are those by position. Over the source the same word is one that is written the same, and distances are
    from the diagonal: how far the key is from where the query would be if the target were as long as the source.
    """
    visible_TS = _visible(kind, len(queries.tokens), len(keys.tokens), window)
    texts = [token.strip() for token in queries.tokens], [token.strip() for token in keys.tokens]
    controls = queries.control_tokens, keys.control_tokens
    tokens = _ground(kind, visible_TS, texts, controls)
    starts = [[word.first for word in axis.words] for axis in (queries, keys)]
    visible_TS = np.logical_or.reduceat(np.logical_or.reduceat(visible_TS, starts[0], axis=0), starts[1], axis=1)
    texts = [word.text for word in queries.words], [word.text for word in keys.words]
    controls = [word.is_control for word in queries.words], [word.is_control for word in keys.words]
    return tokens, _ground(kind, visible_TS, texts, controls)


def _visible(kind: str, num_queries: int, num_keys: int, window: int | None) -> np.ndarray:
    """The masks of the model, for one sentence without padding."""
    if kind == "decoder":
        return causal_mask(num_queries, window=window).numpy()
    if kind == "encoder" and window is not None:
        return local_mask(num_queries, window=window).numpy()
    return np.ones((num_queries, num_keys), dtype=bool)


def _ground(
    kind: str,
    visible_TS: np.ndarray,
    texts: tuple[Sequence[str], Sequence[str]],
    controls: tuple[Sequence[bool], Sequence[bool]],
) -> Ground:
    num_queries, num_keys = visible_TS.shape
    query_T1, key_S = np.arange(num_queries)[:, None], np.arange(num_keys)
    places: dict[str, np.ndarray] = {}
    if kind == "cross":
        query_T1 = (query_T1 + 0.5) * num_keys / num_queries - 0.5
        texts_TS = np.array(texts[0], dtype=object)[:, None] == np.array(texts[1], dtype=object)
        is_text_TS = ~np.array(controls[0])[:, None] & ~np.array(controls[1])
        has_text_S = np.array([bool(text) for text in texts[1]])
        places["same"] = texts_TS & is_text_TS & has_text_S
    else:
        places |= {name: key_S - query_T1 == step for name, step in (("previous", -1), ("next", 1), ("same", 0))}
    if kind != "decoder":  # which never reads its own end
        places["end"] = np.broadcast_to(key_S == num_keys - 1, visible_TS.shape)
    places["first"] = np.broadcast_to(key_S == 0, visible_TS.shape)
    visible_places = {name: places[name] & visible_TS for name in PLACES if name in places}
    return Ground(visible_TS, np.abs(key_S - query_T1), visible_places)
