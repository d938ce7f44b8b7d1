"""The drawing: well-formed, whole, escaped, and its numbers those of the record."""

import html
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from inspected_models import small_subject

from headway.errors import InspectionError
from headway.inspection.explanation import explain
from headway.inspection.heat_map import MOST_CELLS, SHADES, heat_map, shade
from headway.inspection.line_drawing import LEAST, drawn_share, line_drawing
from headway.inspection.page import draw, telling_heads
from headway.inspection.record import AXES
from headway.inspection.svg import lines_of, shown, width_of

SVG = "{http://www.w3.org/2000/svg}"
SENTENCE, TARGET = "the cat sat on 7 mats", "auf 7 matten sitzt ein kater ."


@pytest.fixture(scope="module")
def record():
    return explain(small_subject(), SENTENCE, target=TARGET)


def parse(text):
    return ElementTree.fromstring(text)


def fragment(body):
    return parse(f'<svg xmlns="http://www.w3.org/2000/svg">{body}</svg>')


def cells_of(body, num_rows, num_columns):
    """What a reader sees of a map: the shade of every cell, from its strokes."""
    found = np.zeros((num_rows, num_columns), dtype=int)
    for path in fragment(body).iter(f"{SVG}path"):
        for column, row, length in re.findall(r"M(\d+) (\d+)\.5h(\d+)", path.get("d")):
            found[int(row), int(column) : int(column) + int(length)] = int(path.get("class")[1:])
    return found


def test_a_map_shows_every_weight_in_its_cell_by_its_shade():
    weights = np.random.default_rng(3).dirichlet(np.full(7, 0.4), size=5)
    figure = heat_map(weights)
    assert (cells_of(figure.body, 5, 7) == np.vectorize(shade)(weights)).all()
    assert figure.width == pytest.approx(112.0)
    assert figure.height == pytest.approx(112.0 * 5 / 7)


def test_shades_go_from_none_to_the_darkest_and_never_back():
    shades = [shade(step / 1000) for step in range(1001)]
    assert shades == sorted(shades)
    assert set(shades) == set(range(len(SHADES) + 1))
    assert (shade(-1e-9), shade(1.0 + 1e-6)) == (0, len(SHADES))


def test_words_that_share_a_cell_are_merged_as_tokens_are():
    size = 2 * MOST_CELLS
    weights = np.random.default_rng(3).dirichlet(np.full(size, 0.02), size=size)
    merged = weights.reshape(MOST_CELLS, 2, MOST_CELLS, 2).sum(axis=3).mean(axis=1)
    figure = heat_map(weights)
    assert (cells_of(figure.body, MOST_CELLS, MOST_CELLS) == np.vectorize(shade)(merged)).all()
    assert figure.width == pytest.approx(240.0)
    assert heat_map(np.full((251, 251), 1 / 251)).width <= 240.0  # three by three, the last ones fewer


def test_a_line_for_each_weight_that_counts_and_for_the_heaviest_of_each_word():
    weights = np.array([[0.9, 0.06, 0.04], [0.04, 0.03, 0.93], [0.049, 0.048, 0.047]])
    root = fragment(line_drawing(weights, ["x", "y", "z"], ["a", "b", "c"]).body)
    titles = [line.find(f"{SVG}title").text for line in root.iter(f"{SVG}line")]
    wanted = ["x looks at a: 0.900", "x looks at b: 0.060", "y looks at c: 0.930", "z looks at a: 0.049"]
    assert titles == wanted
    assert weights[2].max() < LEAST
    assert drawn_share(weights) == pytest.approx((0.96 + 0.93 + 0.049) / 3)


def test_lines_end_at_the_words_that_they_join():
    weights = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    figure = line_drawing(weights, ["x", "y"], ["a", "b", "c", "d"])
    root = fragment(figure.body)
    places = {text.text: float(text.get("x")) for text in root.iter(f"{SVG}text")}
    for line, (query, key) in zip(root.iter(f"{SVG}line"), (("x", "b"), ("y", "d")), strict=True):
        assert float(line.get("x1")) == places[key]
        assert float(line.get("x2")) == places[query]
        assert 0.0 < float(line.get("y1")) < float(line.get("y2")) < figure.height
        assert float(line.get("stroke-opacity")) == 1.0


@pytest.mark.parametrize(("count", "upright"), [(5, False), (60, True)])
def test_words_lie_where_there_are_few_and_stand_where_there_are_many_and_never_overlap(count, upright):
    figure = line_drawing(np.full((count, count), 1 / count), ["word"] * count, ["other"] * count)
    texts = list(fragment(figure.body).iter(f"{SVG}text"))
    assert len(texts) == 2 * count
    assert all(("rotate" in (text.get("transform") or "")) == upright for text in texts)
    step = figure.width / count
    assert step >= (18 if upright else width_of("other"))


def test_the_page_has_every_head_with_its_numbers_and_the_drawings_of_the_telling_ones(record):
    root = parse(draw(record))
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert titles[0] == f"Where the model looks: {SENTENCE}"
    for head in record.heads:
        (title,) = [title for title in titles if title.startswith(f"{head.name}\n")]
        assert f"entropy {head.words.entropy.value:.2f} nats" in title
        assert f"the beginning: {head.words.shares['first'].value:.2f} of the weight" in title
    texts = [text.text for text in root.iter(f"{SVG}text")]
    for name in ("Encoder self-attention", "Decoder self-attention", "Attention of the decoder over the source"):
        assert name in texts
    chosen = telling_heads(record)
    assert {head.kind for head in chosen} == set(AXES)
    drawn = [text.partition(":")[0] for text in texts if re.match(r"(encoder|decoder|cross)\.\d", text)]
    assert drawn == [head.name for head in chosen]
    width, height = (float(root.get(name)) for name in ("width", "height"))
    assert root.get("viewBox") == f"0 0 {width:.0f} {height:.0f}"


def test_heads_can_be_named_and_a_name_that_none_has_is_refused_with_those_there_are(record):
    texts = [text.text for text in parse(draw(record, ["cross.2.4", "encoder.1.1"])).iter(f"{SVG}text")]
    assert [text for text in texts if re.match(r"(encoder|decoder|cross)\.\d", text)] == ["cross.2.4", "encoder.1.1"]
    with pytest.raises(InspectionError, match=r"named 'cross.3.1'; wanted one of encoder.1.1 to encoder.3.4, decoder"):
        draw(record, ["cross.3.1"])


def test_the_page_needs_nothing_else_and_runs_nothing(record):
    page = draw(record)
    assert set(re.findall(r"[a-z]+://[^\s\"<]+", page)) == {"http://www.w3.org/2000/svg"}
    for foreign in ("<script", "href", "@import", "url(", "<image", "onload"):
        assert foreign not in page


STRANGE = [
    "<b>&\"'</b>",
    "a\x00\x07\x1b[31m",
    "שלום עולם!",
    "\u202e abc \u2066",
    "x\ufffe\x0by",
    "東京 é 😀",
    "</title>",
]


@pytest.mark.parametrize("sentence", STRANGE)
def test_any_text_is_shown_as_text_in_a_page_that_is_xml(sentence):
    root = parse(draw(explain(small_subject(num_heads=1, d_k=4), sentence, target=sentence)))
    texts = "".join(text.text or "" for text in root.iter(f"{SVG}text"))
    for word in sentence.split():
        assert html.unescape(shown(word)).strip("\u2068\u2069") in texts
    assert not list(root.iter(f"{SVG}b"))


def test_what_does_not_print_is_an_escape_and_foreign_directions_are_kept_apart():
    assert shown("a\x07\u202eb") == r"a\x07\u202eb"
    assert shown("<&>\"'") == "&lt;&amp;&gt;&quot;&#x27;"
    assert shown("עולם") == "\u2068עולם\u2069"
    assert shown("\ud800") == r"\ud800"
    assert shown("क\u094d\u200dष a\u00a0b") == "क\u094d\u200dष a\u00a0b"


def test_lines_fit_and_lose_nothing():
    text = "aaa bb  東京東京東京 " + "x" * 50
    lines = lines_of(text, 60.0)
    assert all(width_of(line) <= 60.0 for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert lines_of("", 60.0) == [""]


@pytest.mark.parametrize("words", [5, 60, 300])
def test_pages_stay_small_enough_to_open(words):
    sentence = " ".join(["the cat sat on 7"] * (words // 5))
    page = draw(explain(small_subject(max_source_tokens=900), sentence, target=sentence))
    parse(page)
    assert len(page) < {5: 100_000, 60: 1_000_000, 300: 3_000_000}[words]
