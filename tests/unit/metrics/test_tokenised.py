"""Tokenised text is recognised, plain text of many languages is left in peace."""

import pytest

from headway.metrics.tokenised import looks_tokenised


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("It &apos;s 5 @-@ 6 .", "escaped characters"),
        ("5 @-@ 6", "hyphens"),
        ("new@@ er words", "subwords joined by @@"),
        ("▁new er ▁words", "subwords begun by ▁"),
        ("a man sits on a bench .", "spaces before full stops"),
        ("a man , a bench", "spaces before full stops or commas (1 of 1 lines)"),
        ("they do n't know", "n't apart"),
        ("我们 走 吧", "spaces between Chinese characters"),
        ("他来了 。", "spaces before full stops"),
    ],
)
def test_a_tokenizers_traces_are_named(line, reason):
    assert reason in looks_tokenised([line])


@pytest.mark.parametrize(
    "line",
    [
        "It's 5-6.",
        "Comment ça va ? Très bien ! Voici : « un mot » ; fin.",
        "Het is 's avonds koud.",
        "Write to me@example.org, R&D is fine & well.",
        "我们走吧。他来了，我也来。",
        "これは猫です。",
        "version .5 and ... a pause",
        "",
    ],
)
def test_plain_text_is_not_taken_for_tokenised(line):
    assert looks_tokenised([line]) == ""


def test_a_few_odd_lines_in_many_are_no_sign():
    lines = ["Plain text, as people write it."] * 1000
    assert looks_tokenised([*lines, "one &apos; mark", "a word ."]) == ""
    assert "(11 of 1,011 lines)" in looks_tokenised([*lines, *["one &apos; mark"] * 11])
    assert "(113 of 1,113 lines)" in looks_tokenised([*lines, *["a word ."] * 113])


def test_no_lines_look_like_nothing():
    assert looks_tokenised([]) == ""
