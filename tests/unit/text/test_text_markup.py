"""What counts as markup, what a model sees of a text, and the comparison of an output with its source."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headway.text.comparison import Difference, difference, find_marks
from headway.text.escape import Escaper
from headway.text.markup import parse, render
from headway.text.tag import SYNTAXES

# Everything that markup is made of, so that random texts come near to it.
PIECES = st.sampled_from(
    [
        *"<>/{}%$&;#@\"'=![]-?.: \n\ta1sx漢ä\u00a0",
        *["<b>", "</b>", "<i>", "</i>", "<br/>", "<g id='1'>", "</g>", "{x}", "{{", "&amp;", "&#160;", "&lt;", "%1$s"],
        *["https://a.b/c", "<ph>", "</ph>", "<!--", "-->", "]]>", "<![CDATA[", "a@b.cd"],
    ]
)
TEXTS = st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=30)


def raws(text, **options):
    return [mark.raw for mark in parse(text, **options).marks]


PLACEHOLDERS = [
    *["%s", "%d", "%i", "%@", "%1$s", "%2$d", "%1$-5.2f", "%-5.2f", "%.1f", "%05d", "%ld", "%lld", "%%", "%(name)s"],
    *["%(count)d", "%(a.b)5.1f", "%{count}", "%n", "%1", "%L2", "%PATH%", "%Y"],
    *["{x}", "{0}", "{}", "{x:format}", "{x!r:>8}", "{user.name}", "{items[0]}", "{d:%d %B %Y}", "{n, number}"],
    *["{{x}}", "{{ x | upper }}", "{{{x}}}", "{% if a %}", "${x}", "${a + b}", "$name", "$API_KEY", "$HOME", "$t(key)"],
    "{n, plural, one {# file in {folder}} other {# files}}",
]


@pytest.mark.parametrize("placeholder", PLACEHOLDERS)
def test_a_placeholder_is_one_unit_that_stays_in_the_text(placeholder):
    text = f"Show {placeholder} now"
    (mark,) = parse(text).marks
    assert (mark.raw, mark.kind, mark.what, mark.offset) == (placeholder, "inline", "placeholder", 5)
    assert parse(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        *[
            "a < b and c > d",
            "if a <b and c> d",
            "x<y",
            "<3",
            "a <- b -> c",
            "<",
            ">",
            "<>",
            "< b >",
            "<a b>",
            "<?",
            "<!",
            "1<2",
        ],
        *["5 % s", "100 % der", "50%off", "5%d", "100%", "90 % das", "a%20b", "%", "rate of 5%."],
        *["{", "}", "{note see below}", "set {1, 2, 3}", "{a: b}", '{"a": 1}', "{{", "}{"],
        *["$5", "US$ 5", "$US 500", "($bn)", "$m", "A$AP", "$", "5 $"],
        *["AT&T", "R&D;", "&unknown;", "it &apos;s &quot;x&quot; &amp; na&iuml;ve", "&#65;", "&"],
        *["me @ home", "@name", "a@b", "http://", "and/or", "http", "www.", "mailto:"],
    ],
)
def test_plain_text_with_signs_of_markup_has_no_marks(text):
    assert raws(text) == []
    assert parse(text).text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://a.example/b?c=d&e=f#g.", "https://a.example/b?c=d&e=f#g"),
        ("(https://a.example/b_(c))", "https://a.example/b_(c)"),
        ("[here](http://a.example).", "http://a.example"),
        ("<https://a.example>", "https://a.example"),
        ("see www.a.example, or", "www.a.example"),
        ("请访问https://a.example/b。然后", "https://a.example/b"),
        ("“https://a.example/ö”", "https://a.example/ö"),
        ("at https://{host}/a?b=%s now", "https://{host}/a?b=%s"),
        ("smb://server/share!", "smb://server/share"),
        ("write to a.b+c@d-e.co.uk.", "a.b+c@d-e.co.uk"),
        ("mail <info@müller.de>", "info@müller.de"),
        ("联系info@a.cn吧", "info@a.cn"),
        ("10&nbsp;km", "&nbsp;"),
        ("a&#160;b", "&#160;"),
        ("&copy; 2024", "&copy;"),
        ("%ds", "%d"),
        ("%.1fGB", "%.1f"),
        ("%sth", "%s"),
        ("Issue #{number}", "{number}"),
    ],
)
def test_a_mark_ends_where_it_ends(text, expected):
    assert raws(text) == [expected]


def test_neighbouring_placeholders_are_told_apart():
    assert raws("{a}{b}%s%d 100%% %d%%") == ["{a}", "{b}", "%s", "%d", "%%", "%d", "%%"]
    assert raws("%1%2") == ["%1", "%2"]


@pytest.mark.parametrize(
    ("text", "words", "kinds"),
    [
        ("Click <b>here</b> now", "Click here now", "open close"),
        ("<a href=\"u?a=1&b=2\" title='a > b'>x</a>", "x", "open close"),
        ("a<br>b<br/>c <img src=x> d", "a b c d", "standalone standalone standalone"),
        ("un<b>believ</b>able", "unbelievable", "open close"),
        ("a <x id='1'/> b", "a b", "standalone"),
        ("漢<br/>字", "漢字", "standalone"),
        ("(<b>a</b>)", "(a)", "open close"),
        ("a <!-- no <b> --> b", "a b", "standalone"),
        ("a <?php x > y ?> b", "a b", "standalone"),
        ("<0>a</0> <my-tag:b>c", "a c", "open close open"),
        ('<ph id="1">&lt;b&gt;{x}</ph>a<it pos="end" x="1">c</it>', "a", "standalone close"),
        ('<mrk translate="no">Headway</mrk> a', " a", "standalone"),
        ("<ph>a", "a", "open"),
        ("<p>\n  a\n</p>\n", "\n  a\n\n", "open close"),
    ],
)
def test_tags_are_taken_out_and_words_stay_apart(text, words, kinds):
    marked = parse(text)
    assert marked.text == words
    assert " ".join(mark.kind for mark in marked.marks) == kinds


def partners(text, syntax="xml"):
    return [mark.partner for mark in parse(text, syntax=syntax).marks]


def test_tags_pair_by_nesting_and_halves_of_pairs_by_their_number():
    assert partners("<g id='1'>a<g id='2'>b</g></g>") == [3, 2, 1, 0]
    assert partners("<b>a<i>b</b>c</i>") == [2, -1, 0, -1]
    assert partners("</b>a<b>") == [-1, -1]
    assert partners("<bpt i='1'>x</bpt>a<bpt i='2'>y</bpt>b<ept i='1'>x</ept>c<ept i='2'>y</ept>") == [2, 3, 0, 1]
    assert partners("<bx id='1'/>a<ex id='1'/>") == partners("<sc id='1'/>a<ec startRef='1'/>") == [1, 0]
    assert partners("<B>a</b>", "html") == [1, 0]
    assert partners("<B>a</b>") == [-1, -1]


def test_of_crossing_pairs_only_one_nests():
    marks = parse("<bpt i='1'/>a<g>b<ept i='1'/>c</g>", syntax="xml").marks
    assert [mark.nests for mark in marks] == [False, True, False, True]


def test_native_code_is_one_unit_with_its_tag():
    text = '<bpt id="1">&lt;a href="u"&gt;<sub>title</sub></bpt>word<ept id="1">&lt;/a&gt;</ept>'
    assert raws(text, syntax="xml") == [text[: text.index("word")], text[text.index("word") + 4 :]]


def test_html_has_opaque_scripts_and_quoted_angle_brackets():
    text = "<a title='x<y>z'>a</a><script>if (a < b) {c}</script> AT&T"
    assert raws(text, syntax="html") == ["<a title='x<y>z'>", "</a>", "<script>if (a < b) {c}</script>"]
    assert parse(text, syntax="html").text == "a AT&T"


def test_entities_are_decoded_and_what_they_write_is_markup_too():
    marked = parse("&lt;b&gt;A &amp; B&lt;/b&gt; &#8364; {a} &quot;&#x41;&quot;", syntax="xml")
    assert marked.text == 'A & B € {a} "A"'
    assert [mark.raw for mark in marked.marks] == ["&lt;b&gt;", "&lt;/b&gt;", "{a}"]


def test_cdata_becomes_escaped_text():
    assert parse("a <![CDATA[<b> & c]]>", syntax="xml").source == "a &lt;b&gt; &amp; c"


def test_numbers_are_marks_only_on_request_and_are_compared_by_digits():
    text = "1,234.50 in 2024 or 3 000 000, B2B"
    assert raws(text) == []
    assert raws(text, numbers=True) == ["1,234.50", "2024", "3 000 000", "2"]
    marked = parse(text, numbers=True)
    assert difference(marked, "2024: B2B 1.234,50 3.000.000") == Difference()
    assert difference(marked, "2024: B2B 1.234,5 3.000.000") == Difference(("1,234.50",), ("1.234,5",))
    assert find_marks("٣", numbers=True)[0].what == "number"
    assert difference(parse("3", numbers=True), "٣") == Difference()


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.sampled_from(SYNTAXES), st.booleans())
@example("one<br/> <br/>two", "plain", False)
@example("a <b> <i>&#160; c", "xml", False)
@example("<ph>x</ph>\n<b> \n</b>", "xml", True)
def test_parsed_and_rendered_a_text_is_itself(text, syntax, numbers):
    marked = parse(text, syntax=syntax, numbers=numbers)
    assert render(marked) == marked.source
    assert marked.source == text or (syntax == "xml" and "<![CDATA[" in text)
    assert difference(marked, text) == Difference()


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.sampled_from(SYNTAXES))
def test_marks_are_stretches_of_the_source_in_order_and_partners_agree(text, syntax):
    marked = parse(text, syntax=syntax)
    position = 0
    for place, mark in enumerate(marked.marks):
        assert mark.start >= position
        assert marked.source[mark.start : mark.end] == mark.raw
        position = mark.end
        if mark.partner >= 0:
            assert marked.marks[mark.partner].partner == place
            assert {mark.kind, marked.marks[mark.partner].kind} == {"open", "close"}
            assert (mark.kind == "open") == (mark.partner > place)


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ("{a} {b}", "{b} {a}", Difference()),
        ("{a} {a}", "{a}", Difference(("{a}",))),
        ("{a}", "{a} {a} {b}", Difference((), ("{a}", "{b}"))),
        ("{a}", "{{a}}", Difference(("{a}",), ("{{a}}",))),
        ("%s files", "100%s", Difference()),
        ("%s", "%sa%d", Difference((), ("%d",))),
        ("see https://a.example/b", "die https://a.example/b-Seite", Difference()),
        (
            "see https://a.example/b",
            "https://a.example/c",
            Difference(("https://a.example/b",), ("https://a.example/c",)),
        ),
        ("<b>x</b>", "</b>x<b>", Difference(crossed=("</b>",))),
        ("<b>x</b>", "x", Difference(("<b>", "</b>"))),
        ("a < b", "a <b> b", Difference((), ("<b>",))),
    ],
)
def test_an_output_is_compared_as_a_multiset(source, output, expected):
    assert difference(parse(source), output) == expected


@pytest.mark.parametrize(
    ("source", "syntax", "text", "expected"),
    [
        ("&quot;a&quot; &amp; b", "xml", '"b" & <a> "c"', "&quot;b&quot; &amp; &lt;a&gt; &quot;c&quot;"),
        ('"a" &#38; b > c', "xml", '"b" & > ]]>', '"b" &#38; > ]]&gt;'),
        ("a&#160;b\u00a0c", "xml", "x\u00a0y\u00a0z\u00a0.", "x&#160;y\u00a0z\u00a0."),
        ("AT&T", "html", "AT&T & R&D &lt; &amp;", "AT&T & R&D &amp;lt; &amp;amp;"),
        ("a", "xml", "\x01b\ufffe", "\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"),
        ("a &amp; b", "plain", "a & b &amp; <", "a & b &amp; <"),
    ],
)
def test_text_is_escaped_as_the_source_escapes(source, syntax, text, expected):
    assert Escaper(parse(source, syntax=syntax)).write(text) == expected


HOSTILE = [
    *[
        "<",
        "{",
        "{{x",
        "{{{",
        "<a ",
        '<a "',
        "<a x='<a \"' y=\"<a '\" ",
        "<!--",
        "<![CDATA[",
        "<?",
        "<b>",
        "<b>x ",
        "</b>",
        "<ph>",
    ],
    *[
        "%",
        "%(a",
        "%1",
        "$a",
        "&a",
        "&#1",
        "a@",
        "a.",
        "a://",
        "http://(",
        "{a,plural,",
        "{a.",
        "{a[b]",
        "<b> ",
        "(",
        "1,",
        "1 000 ",
    ],
    *["<b><i></b></i>", '<bpt i="1"/>', "www.", "<a b", "<a" + " " * 50, "{x}"],
]


def check_hostile(text):
    for syntax in SYNTAXES:
        marked = parse(text, syntax=syntax, numbers=True)
        assert render(marked) == marked.source
        assert difference(marked, marked.source) == Difference()


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_text_is_parsed_rendered_and_compared(unit):
    check_hostile(unit * (4000 // len(unit)))
    check_hostile(unit * 200 + "x" + "</b>" * 200)


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE)
def test_a_megabyte_of_hostile_text_takes_seconds(unit):
    # In quadratic time it would take hours.
    for syntax in SYNTAXES:
        marked = parse(unit * (1_000_000 // len(unit)), syntax=syntax, numbers=True)
        assert render(marked) == marked.source
