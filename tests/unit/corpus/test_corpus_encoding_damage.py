"""Damage of encoding is seen where it was done, and not in text of many languages that was left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.corpus.encoding_damage import damage_of, is_mojibake

HEALTHY = [
    "Der Zug ist groß“, sagte er – für 5 €…", "L'été à Paris : « Âge d'or » ; passé…»", "NÃO É ASSIM, São João",
    "España: ¡Ñandú!",
    "Łódź, Kraków, źdźbło", "İstanbul'da güneş", "Привет, мир", "你好，世界。", "AT&T and R&B & co; a &b; c",
    "Ä“, Ö“ und Ü“?",
    "20 °C ± 2 µm", "€ 5 ‰", "نص عربي\u200cفارسی", "हिन्दी में", "naïve café", "\tTab",
]  # fmt: skip


@pytest.mark.parametrize("text", HEALTHY)
def test_healthy_text_has_no_damage(text):
    assert damage_of(text) == []


@pytest.mark.parametrize("text", ["schön", "Größe für", "L’été", "“quoted”", "Привет", "你好世界", "łódź", "20 °C"])
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_utf8_read_as_another_encoding_is_seen(text, encoding):
    damaged = text.encode().decode(encoding, "replace").replace("\ufffd", "\x81")
    assert is_mojibake(damaged)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [("a\ufffd", ["replacement"]), ("a\x00b", ["control"]), ("a\ud800", ["surrogate"]),
     ("a\u2028b", ["line-separator"]),
     ("a\x85b", ["control", "line-separator"]), ("a\u200bb", ["invisible"]), ("\ufeffa", ["invisible"]),
     ("a &amp; b", ["entity"]), ("&#8217;", ["entity"]), ("&amp;amp;", ["double-escaped"]),
     ("&amp;#39;", ["double-escaped"])],
)  # fmt: skip
def test_each_kind_of_damage_has_its_name(text, kinds):
    assert damage_of(text) == kinds


@given(st.text(alphabet=st.characters(max_codepoint=0x7E, min_codepoint=0x20)))
def test_plain_ascii_has_entities_at_most(text):
    assert set(damage_of(text)) <= {"entity", "double-escaped"}
