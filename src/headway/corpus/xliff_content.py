"""What stands in a source or target of XLIFF: text, with inline elements and, in some of these, native code."""

import re
from collections.abc import Sequence

from headway.corpus.inline import Kind, Piece, Tag, plain, render_pair

NATIVE = frozenset({"bpt", "ept", "ph", "it"})  # inline elements whose content is native code, not text
# Tags of one pair that are elements of their own, and the attributes that name the pair, the first that there is.
_HALVES: dict[str, tuple[Kind, tuple[str, ...]]] = {
    "bpt": ("open", ("rid", "id")),
    "ept": ("close", ("rid", "id")),
    "bx": ("open", ("rid", "id")),
    "ex": ("close", ("rid", "id")),
    "sc": ("open", ("id",)),
    "ec": ("close", ("startRef", "id")),
    "sm": ("open", ("id",)),
    "em": ("close", ("startRef", "id")),
}
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_LAYOUT = re.compile(r"(?<![ \t])[ \t]*+(?:\r?\n[ \t]++)+")  # line breaks, with the indentation of what follows
_ATTRIBUTE = re.compile(r"""\s([^\s=/>]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_TOKEN = re.compile(
    r"""<!--.*?-->|<\?.*?\?>|<!\[CDATA\[(?P<cdata>.*?)\]\]>|&(?P<reference>[^;]+);"""
    r"""|<(?P<close>/?)(?P<name>[^\s/>]+)(?:[^>"']|"[^"]*"|'[^']*')*?(?P<empty>/?)>""",
    re.DOTALL,
)


def text_of(content: str) -> str:
    """The text of raw content in one line, without inline elements and the native codes inside them."""
    return _in_one_line(plain(_pieces(content, keep=False)))


def tagged_texts_of(source: str, target: str) -> tuple[str, str]:
    """The texts of both sides, each in one line, with their tags in the form of ``inline``."""
    texts = render_pair(_pieces(source, keep=True), _pieces(target, keep=True))
    return _in_one_line(texts[0]), _in_one_line(texts[1])


def without_layout(content: str) -> str:
    """Raw content without the line breaks that only lay it out; tags, and native codes inside them, as they are."""
    if "\n" not in content:
        return content
    pieces: list[str] = []
    start = depth = 0

    def add(end: int) -> None:
        def space(layout: re.Match[str]) -> str:
            is_edge = start + layout.start() == 0 or start + layout.end() == len(content)
            return "" if is_edge else " "

        text = content[start:end]
        pieces.append(text if depth else _LAYOUT.sub(space, text))

    for token in _TOKEN.finditer(content):
        add(token.start())
        pieces.append(token[0])
        start = token.end()
        depth += _native_step(token) if token["name"] else 0
    add(len(content))
    return "".join(pieces)


def _in_one_line(text: str) -> str:
    return _LAYOUT.sub(" ", text.replace("\r\n", "\n")).strip()


def _pieces(content: str, *, keep: bool) -> Sequence[Piece]:
    """Raw content as texts and tags, of which nothing more is known unless ``keep``; it has been found well-formed."""
    pieces: list[Piece] = []
    text: list[str] = []  # since the last tag
    tag: Tag | None = None  # whose native code is being read
    start = depth = 0  # depth: elements of native code that are open

    def add(part: str) -> None:
        (tag.code if depth and tag else text).append(part)

    def end_text() -> None:
        if any(text):
            pieces.append("".join(text))
        text.clear()

    for token in _TOKEN.finditer(content):
        add(content[start : token.start()])
        start = token.end()
        if not token["name"]:
            add(token["cdata"] or _character(token["reference"] or ""))
            continue
        step = _native_step(token)
        if not depth and not _ends_native(token):
            end_text()
            tag = _tag(token) if keep else Tag("alone")
            pieces.append(tag)
        depth += step
    add(content[start:])
    end_text()
    return pieces


def _tag(token: re.Match[str]) -> Tag:
    """A tag as its format has it; it stands for itself in the other language by its id."""
    name = token["name"].rpartition(":")[2]
    attributes = {key: one or other for key, one, other in _ATTRIBUTE.findall(token[0])}
    number = attributes.get("id", "")
    if name in _HALVES:
        kind, keys = _HALVES[name]
        pair = next((attributes[key] for key in keys if attributes.get(key)), "")
        return Tag(kind, pair, number)
    if token["empty"] or name in NATIVE:
        return Tag("alone", "", number)
    return Tag(
        "close" if token["close"] else "open", f"<{token['name']}", attributes.get("id", attributes.get("mid", ""))
    )


def _native_step(tag: re.Match[str]) -> int:
    """By how much a tag changes the depth inside native code."""
    if tag["empty"] or tag["name"].rpartition(":")[2] not in NATIVE:
        return 0
    return -1 if tag["close"] else 1


def _ends_native(tag: re.Match[str]) -> bool:
    """Whether a tag ends native code."""
    return _native_step(tag) < 0


def _character(reference: str) -> str:
    """What a reference such as ``amp`` or ``#xe4`` stands for; the file has been found well-formed."""
    if reference.startswith("#x"):
        return chr(int(reference[2:], 16))
    if reference.startswith("#"):
        return chr(int(reference[1:]))
    return _ENTITIES.get(reference, "")
