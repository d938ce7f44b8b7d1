"""The attention of one sentence as one SVG page: all heads as small maps, and some of them as lines between words."""

from collections.abc import Iterable, Iterator, Sequence

from headway.errors import InspectionError
from headway.inspection import heat_map, line_drawing
from headway.inspection.attention_layer import KINDS, TITLES
from headway.inspection.ground import PLACES
from headway.inspection.heat_map import SHADES
from headway.inspection.look import Look, Share
from headway.inspection.record import AXES, AttentionRecord, Head
from headway.inspection.svg import LINE_HEIGHT, Figure, lines_of, shown, text_line

MARGIN = 24.0
NARROWEST = 960.0  # pixels of a page
LABEL = 64.0  # pixels before a row of maps: the layer's name
BETWEEN = 16.0
SECTIONS = {
    "encoder": "rows: words of the source that look; columns: words of the source that they look at",
    "decoder": "rows: words of the target as they are read; columns: those that were read before, and they themselves",
    "cross": "rows: words of the target as they are written; columns: words of the source that they look at",
}
_STYLE = (
    "text{font:13px sans-serif;fill:#1c2330} .title{font-weight:bold;font-size:18px} .head{font-weight:bold} "
    ".small{font-size:11px;fill:#505a6b} .labelled{font-size:11px;fill:#0b4f9e;font-weight:bold}"
)


def draw(record: AttentionRecord, names: Sequence[str] = ()) -> str:
    """The page, an SVG document. ``names`` are the heads to draw as lines; none: those of ``telling_heads``.

    Words are drawn, not tokens. Raises InspectionError for a head that the model has not.
    """
    chosen = find_heads(record, names) if names else telling_heads(record)
    maps = [_section(record, kind) for kind in KINDS]
    drawings = [_drawing(record, head) for head in chosen]
    width = max(NARROWEST, *(figure.width for figure in (*maps, *drawings)))
    parts = [_heading(record, width), *maps, _caption(is_given=bool(names)), *_flow(drawings, width)]
    body, y = list[str](), MARGIN
    for figure in parts:
        body.append(figure.at(MARGIN, y))
        y += figure.height + MARGIN
    title = f"<title>Where the model looks: {shown(record.source)}</title>"
    rules = f"<style>{_STYLE} {heat_map.style()} {line_drawing.style()}</style>"
    size = f'width="{width + 2 * MARGIN:.0f}" height="{y:.0f}"'
    view = f'viewBox="0 0 {width + 2 * MARGIN:.0f} {y:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} role="img">'
    ground = '<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([head, title, rules, ground, *body, "</svg>", ""])


def find_heads(record: AttentionRecord, names: Iterable[str]) -> list[Head]:
    """The heads of these names, in this order. Raises InspectionError for a name that no head has."""
    known = {head.name: head for head in record.heads}
    for name in names:
        if name not in known:
            layers = {kind: max(head.layer for head in record.heads if head.kind == kind) for kind in KINDS}
            each = ", ".join(
                f"{kind}.1.1 to {kind}.{layer}.{_heads_of(record, kind)}" for kind, layer in layers.items()
            )
            raise InspectionError(f"inspection/page: no head is named {name!r}; wanted one of {each} (--head).")
    return [known[name] for name in names]


def telling_heads(record: AttentionRecord) -> list[Head]:
    """Of each kind the clearest head of each label, and of the heads without a label the one of lowest entropy."""
    chosen: list[Head] = []
    for kind in KINDS:
        heads = [head for head in record.heads if head.kind == kind]
        for place in PLACES:
            labelled = [head for head in heads if head.words.looks_at == place]
            chosen += sorted(labelled, key=lambda head: -head.words.shares[place].value)[:1]
        others = [head for head in heads if head.words.looks_at is None]
        chosen += sorted(others, key=lambda head: _entropy(head.words))[:1]
    return chosen


def _heads_of(record: AttentionRecord, kind: str) -> int:
    return max(head.head for head in record.heads if head.kind == kind)


def _entropy(look: Look) -> float:
    return look.entropy.value if look.entropy is not None else 0.0


def _heading(record: AttentionRecord, width: float) -> Figure:
    """Both texts, how probable the target is, and what the shades mean."""
    chosen = "given" if record.is_given else "chosen by the model's search"
    texts = {"source": record.source, f"target, {chosen}": record.target}
    parts, y = [text_line("Where the model looks", 0, LINE_HEIGHT, kind="title")], 2.0 * LINE_HEIGHT
    for name, text in texts.items():
        y += LINE_HEIGHT
        parts.append(text_line(name, 0, y, kind="small"))
        for line in lines_of(text, width):
            y += LINE_HEIGHT
            parts.append(text_line(line, 0, y))
    tokens = f"{len(record.log_probs):,} tokens, the end counted"
    y += 1.5 * LINE_HEIGHT
    parts.append(text_line(f"log-probability of the target {record.log_prob:.3f} ({tokens})", 0, y, kind="small"))
    y += LINE_HEIGHT
    parts += _legend(y)
    return Figure(width, y, "\n".join(parts))


def _legend(y: float) -> Iterator[str]:
    """A box a shade, from a weight of 0 to one of 1."""
    yield text_line("weight 0", 0, y, kind="small")
    for level, colour in enumerate(("#fff", *SHADES)):
        where = f'x="{56 + 16 * level}" y="{y - 11:.1f}" width="16" height="12"'
        yield f'<rect class="frame" style="fill:{colour}" {where}/>'
    yield text_line("1, by square roots; point at a map or a line for its numbers", 208, y, kind="small")


def _section(record: AttentionRecord, kind: str) -> Figure:
    """All heads of a kind, a row a layer."""
    heads = [head for head in record.heads if head.kind == kind]
    figures = {head.name: _map(head) for head in heads}
    step_x = max(figure.width for figure in figures.values()) + BETWEEN
    step_y = max(figure.height for figure in figures.values()) + BETWEEN
    top = 2.2 * LINE_HEIGHT
    parts = [text_line(TITLES[kind], 0, 14, kind="head"), text_line(SECTIONS[kind], 0, 30, kind="small")]
    for head in heads:
        x, y = LABEL + (head.head - 1) * step_x, top + (head.layer - 1) * step_y
        if head.head == 1:
            parts.append(text_line(f"layer {head.layer}", 0, y + 14))
        parts.append(figures[head.name].at(x, y))
    layers, most = max(head.layer for head in heads), max(head.head for head in heads)
    return Figure(LABEL + most * step_x, top + layers * step_y, "\n".join(parts))


def _caption(*, is_given: bool) -> Figure:
    """What the drawings below are."""
    which = (
        "Heads by name"
        if is_given
        else "Of each kind the clearest head of each label, and the most focused of the others"
    )
    lines = [text_line(which, 0, 14, kind="head")]
    lines.append(
        text_line("the lower row looks, the upper row is looked at; point at a word below", 0, 30, kind="small")
    )
    return Figure(NARROWEST, 34, "\n".join(lines))


def _map(head: Head) -> Figure:
    """A head's map over its name, with all its numbers in the tooltip."""
    figure = heat_map.heat_map(head.words.weights_TS)
    label = head.words.looks_at
    name = f"{head.head} {label}" if label else f"{head.head}"
    text = text_line(name, 0, figure.height + 13, kind="labelled" if label else "small")
    title = "\n".join(map(shown, (head.name, *_numbers(head.words))))
    width = max(figure.width, 96.0)  # so that the longest label fits
    return Figure(width, figure.height + LINE_HEIGHT, f"<title>{title}</title>{figure.body}{text}")


def _drawing(record: AttentionRecord, head: Head) -> Figure:
    """A head's lines under its name and what it mostly does."""
    queries, keys = ([word.text for word in record.axes[name].words] for name in AXES[head.kind])
    figure = line_drawing.line_drawing(head.words.weights_TS, queries, keys)
    label = head.words.looks_at
    does = f": mostly looks at {PLACES[label]}" if label else ""
    numbers = [f"{line_drawing.drawn_share(head.words.weights_TS):.0%} of the weight has lines"]
    numbers += [_share_line(label, head.words.shares[label])] if label else []
    numbers += [_numbers(head.words)[0]]
    parts = [text_line(f"{head.name}{does}", 0, 14, kind="head")]
    parts += [text_line(line, 0, 30 + 14 * row, kind="small") for row, line in enumerate(numbers)]
    top = 30.0 + 14 * len(numbers) + 4
    width = max(figure.width, 300.0)
    return Figure(width, top + figure.height, "\n".join([*parts, figure.at(0, top)]))


def _numbers(look: Look) -> list[str]:
    """What is known of a head, a line each."""
    if look.entropy is None or look.distance is None:
        return ["no word has a choice"]
    return [
        f"entropy {look.entropy.value:.2f} nats, of equal attention {look.entropy.chance:.2f}",
        f"mean distance {look.distance.value:.2f} words, of equal attention {look.distance.chance:.2f}",
        *(_share_line(name, share) for name, share in look.shares.items()),
    ]


def _share_line(place: str, share: Share) -> str:
    return f"{PLACES[place]}: {share.value:.2f} of the weight, by chance {share.chance:.2f}"


def _flow(figures: Sequence[Figure], width: float) -> Iterator[Figure]:
    """Figures side by side as long as they fit, then in a new row."""
    row: list[Figure] = []
    for figure in figures:
        if row and sum(other.width + 2 * MARGIN for other in row) + figure.width > width:
            yield _side_by_side(row)
            row = []
        row.append(figure)
    if row:
        yield _side_by_side(row)


def _side_by_side(row: Sequence[Figure]) -> Figure:
    parts, x = list[str](), 0.0
    for figure in row:
        parts.append(figure.at(x, 0))
        x += figure.width + 2 * MARGIN
    return Figure(x - 2 * MARGIN, max(figure.height for figure in row), "\n".join(parts))
