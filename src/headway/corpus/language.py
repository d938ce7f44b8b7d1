"""Language codes in any case, with ``-`` or ``_``: their one way of writing, which text serves which wish, and errors.

A code is a language (two or three letters, ISO 639), then, as far as needed, a script (four letters, ISO 15924), a
region (two letters or three digits, ISO 3166 and UN M.49) and variants, after BCP 47 (RFC 5646).
"""

import difflib
import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from headway.errors import CorpusError

# ISO 639-1: code, ISO 639-2 codes (terminological, bibliographic where it differs), English name.
_LANGUAGES = """
aa aar Afar|ab abk Abkhazian|ae ave Avestan|af afr Afrikaans|ak aka Akan|am amh Amharic|an arg Aragonese|ar ara Arabic
as asm Assamese|av ava Avaric|ay aym Aymara|az aze Azerbaijani|ba bak Bashkir|be bel Belarusian|bg bul Bulgarian
bh bih Bihari|bi bis Bislama|bm bam Bambara|bn ben Bangla|bo bod,tib Tibetan|br bre Breton|bs bos Bosnian
ca cat Catalan|ce che Chechen|ch cha Chamorro|co cos Corsican|cr cre Cree|cs ces,cze Czech|cu chu Church Slavic
cv chv Chuvash|cy cym,wel Welsh|da dan Danish|de deu,ger German|dv div Divehi|dz dzo Dzongkha|ee ewe Ewe
el ell,gre Greek|en eng English|eo epo Esperanto|es spa Spanish|et est Estonian|eu eus,baq Basque|fa fas,per Persian
ff ful Fula|fi fin Finnish|fj fij Fijian|fo fao Faroese|fr fra,fre French|fy fry Western Frisian|ga gle Irish
gd gla Scottish Gaelic|gl glg Galician|gn grn Guarani|gu guj Gujarati|gv glv Manx|ha hau Hausa|he heb Hebrew
hi hin Hindi|ho hmo Hiri Motu|hr hrv Croatian|ht hat Haitian Creole|hu hun Hungarian|hy hye,arm Armenian|hz her Herero
ia ina Interlingua|id ind Indonesian|ie ile Interlingue|ig ibo Igbo|ii iii Sichuan Yi|ik ipk Inupiaq|io ido Ido
is isl,ice Icelandic|it ita Italian|iu iku Inuktitut|ja jpn Japanese|jv jav Javanese|ka kat,geo Georgian|kg kon Kongo
ki kik Kikuyu|kj kua Kuanyama|kk kaz Kazakh|kl kal Kalaallisut|km khm Khmer|kn kan Kannada|ko kor Korean|kr kau Kanuri
ks kas Kashmiri|ku kur Kurdish|kv kom Komi|kw cor Cornish|ky kir Kyrgyz|la lat Latin|lb ltz Luxembourgish|lg lug Ganda
li lim Limburgish|ln lin Lingala|lo lao Lao|lt lit Lithuanian|lu lub Luba-Katanga|lv lav Latvian|mg mlg Malagasy
mh mah Marshallese|mi mri,mao Māori|mk mkd,mac Macedonian|ml mal Malayalam|mn mon Mongolian|mr mar Marathi
ms msa,may Malay|mt mlt Maltese|my mya,bur Burmese|na nau Nauru|nb nob Norwegian Bokmål|nd nde North Ndebele
ne nep Nepali|ng ndo Ndonga|nl nld,dut Dutch|nn nno Norwegian Nynorsk|no nor Norwegian|nr nbl South Ndebele
nv nav Navajo|ny nya Nyanja|oc oci Occitan|oj oji Ojibwa|om orm Oromo|or ori Odia|os oss Ossetic|pa pan Punjabi
pi pli Pali|pl pol Polish|ps pus Pashto|pt por Portuguese|qu que Quechua|rm roh Romansh|rn run Rundi
ro ron,rum Romanian|ru rus Russian|rw kin Kinyarwanda|sa san Sanskrit|sc srd Sardinian|sd snd Sindhi
se sme Northern Sami|sg sag Sango|sh hbs Serbo-Croatian|si sin Sinhala|sk slk,slo Slovak|sl slv Slovenian
sm smo Samoan|sn sna Shona|so som Somali|sq sqi,alb Albanian|sr srp Serbian|ss ssw Swati|st sot Southern Sotho
su sun Sundanese|sv swe Swedish|sw swa Swahili|ta tam Tamil|te tel Telugu|tg tgk Tajik|th tha Thai|ti tir Tigrinya
tk tuk Turkmen|tl tgl Tagalog|tn tsn Tswana|to ton Tongan|tr tur Turkish|ts tso Tsonga|tt tat Tatar|tw twi Twi
ty tah Tahitian|ug uig Uyghur|uk ukr Ukrainian|ur urd Urdu|uz uzb Uzbek|ve ven Venda|vi vie Vietnamese|vo vol Volapük
wa wln Walloon|wo wol Wolof|xh xho Xhosa|yi yid Yiddish|yo yor Yoruba|za zha Zhuang|zh zho,chi Chinese|zu zul Zulu
"""
# Codes that were, or that stand for another: what they are written as today.
_SAME = {"iw": "he", "in": "id", "ji": "yi", "jw": "jv", "mo": "ro", "cmn": "zh", "fil": "tl", "no": "nb", "ekk": "et"}
# What people write instead of a code, besides English names.
_NAMES = {
    "deutsch": "de", "français": "fr", "francais": "fr", "español": "es", "espanol": "es", "italiano": "it",
    "português": "pt", "portugues": "pt", "nederlands": "nl", "svenska": "sv", "dansk": "da", "norsk": "nb",
    "suomi": "fi", "polski": "pl", "čeština": "cs", "magyar": "hu", "türkçe": "tr", "русский": "ru", "українська": "uk",
    "中文": "zh", "汉语": "zh", "日本語": "ja", "한국어": "ko", "العربية": "ar", "עברית": "he", "हिन्दी": "hi",
    "mandarin": "zh", "cantonese": "yue", "farsi": "fa", "bengali": "bn", "flemish": "nl", "castilian": "es",
    "brazilian": "pt-BR", "simplified": "zh-Hans", "traditional": "zh-Hant", "maori": "mi", "gaelic": "gd",
    "filipino": "tl", "slovene": "sl", "uighur": "ug", "oriya": "or", "valencian": "ca", "moldovan": "ro",
}  # fmt: skip
# Codes of countries where a language was meant; those that are languages too (se, br, ar ...) are not here.
_COUNTRIES = {
    "jp": "ja", "cz": "cs", "dk": "da", "gr": "el", "cn": "zh", "ua": "uk", "vn": "vi", "us": "en",
    "gb": "en", "at": "de", "tw": "zh-TW", "rs": "sr", "ir": "fa", "il": "he", "eg": "ar", "mx": "es", "pk": "ur",
    "by": "be", "al": "sq", "ph": "tl",
}  # fmt: skip

# The script of a language that is written in several: in a region, and everywhere else ("").
_SCRIPTS = {
    "zh": {"": "Hans", "TW": "Hant", "HK": "Hant", "MO": "Hant"},
    "yue": {"": "Hant", "CN": "Hans"},
    "sr": {"": "Cyrl", "ME": "Latn"},
    "az": {"": "Latn", "IR": "Arab"},
    "bs": {"": "Latn"},
    "uz": {"": "Latn", "AF": "Arab"},
    "pa": {"": "Guru", "PK": "Arab"},
    "mn": {"": "Cyrl", "CN": "Mong"},
    "ku": {"": "Latn", "IQ": "Arab", "IR": "Arab"},
    "kk": {"": "Cyrl", "CN": "Arab"},
    "ms": {"": "Latn"},
}
# Regions whose way of writing is one: where a region is lacking, another of its own family serves best.
_FAMILIES = {
    "en": ("US PH PR GU VI AS MP UM",),
    "es": ("ES GQ EA IC",),
    "pt": ("BR",),
    "fr": ("CA",),
    "zh": ("HK MO", "CN SG MY"),
    "de": ("CH LI",),
    "nl": ("BE",),
    "ar": ("MA DZ TN LY MR",),
}

_CODE = re.compile(r"([a-z]{2,3})(?:-([a-z]{4}))?(?:-([a-z]{2}|\d{3}))?((?:-[a-z\d]{1,8})*)")
_POSIX_SCRIPTS = {"latin": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva", "arabic": "Arab"}


class _Code(NamedTuple):
    """A code taken apart, its language as written today; ``script`` and ``region`` are empty where not said."""

    language: str
    script: str
    region: str
    variants: str


def normalise(code: str) -> str:
    """The one way of writing a code: ``EN_us`` becomes ``en-US``, ``ZH-hant`` ``zh-Hant``, ``de_DE.UTF-8`` ``de-DE``.

    The language stays the one that was written (``eng`` is not made ``en``). What is no code comes back in lower case,
    without the white space around it.
    """
    found = _CODE.fullmatch(_plain(code))
    if not found:
        return _plain(code)
    language, script, region, variants = found.groups()
    parts = [language, (script or "").title(), (region or "").upper()]
    return "-".join(part for part in parts if part) + (variants or "")


def is_code(code: str) -> bool:
    """Whether a text is a language code: of ISO 639-1, or three letters; then script, region and variants."""
    found = _CODE.fullmatch(_plain(code))
    return bool(found) and (len(found[1]) == 3 or found[1] in _tables().names or found[1] in _SAME)


def check_language(code: str, *, name: str) -> None:
    """Raise CorpusError when ``code`` is neither empty nor a language code; ``name`` is where it was said."""
    if not code or is_code(code):
        return
    meant = _meant(code)
    remedy = f"Did you mean {meant}?" if meant else "Give a code such as en, de, pt-BR or zh-Hans."
    raise CorpusError(
        f"corpus/language: {name}: found {code[:40]!r}, wanted a language code of ISO 639 (two or three letters, then "
        f"perhaps a script and a region). Remedy: {remedy}"
    )


def matches(wanted: str, found: str) -> bool:
    """Whether text in the language ``found`` serves who wants ``wanted``; see ``distance``."""
    return distance(wanted, found) is not None


def best_of(wanted: str, available: Iterable[str]) -> str | None:
    """The code of ``available`` that serves best, the first of equals; None where none serves."""
    ranked = [(far, code) for code in available if (far := distance(wanted, code)) is not None]
    return min(ranked, key=lambda entry: entry[0])[1] if ranked else None


def distance(wanted: str, found: str) -> int | None:
    """How far ``found`` is from ``wanted``: 0 the same code, larger is worse, None another language or script.

    1: the same written another way (``eng`` for ``en``, ``zh-Hans-CN`` for ``zh-CN``), or with other variants.
    2: no region where one is wanted (``en`` for ``en-GB``), or the other way round. 3: another region of the same
    family (``en-AU`` for ``en-GB``). 4: any other region (``en-US`` for ``en-GB``). 5: the less common script where
    the wish names neither script nor region (``zh-TW`` for ``zh``).

    A code without a script has its language's common one, or that of its region: ``zh-TW`` is ``zh-Hant``, and
    ``zh-CN`` does not serve for it, nor ``zh``.
    """
    if normalise(wanted) == normalise(found):
        return 0
    one, other = _parse(wanted), _parse(found)
    if one is None or other is None or one.language != other.language:
        return None
    if _script(one) != _script(other) and "" not in (_script(one), _script(other)):
        return None if one.script or one.region else 5
    if one.region == other.region:
        return 1
    if not one.region or not other.region:
        return 2
    return 3 if _family(one) == _family(other) else 4


def _plain(code: str) -> str:
    """Lower case, ``-`` between the parts, and without what POSIX adds to a locale (``sr_RS.UTF-8@latin``)."""
    locale, _, modifier = code.strip().lower().replace("_", "-").partition("@")
    locale = locale.partition(".")[0]
    script = _POSIX_SCRIPTS.get(modifier)
    if script:
        language, dash, region = locale.partition("-")
        return f"{language}-{script.lower()}{dash}{region}"
    return f"{locale}-{modifier}" if modifier else locale


def _parse(code: str) -> _Code | None:
    found = _CODE.fullmatch(_plain(code))
    if not found:
        return None
    language = _tables().short.get(found[1], found[1])
    return _Code(_SAME.get(language, language), (found[2] or "").title(), (found[3] or "").upper(), found[4] or "")


def _script(code: _Code) -> str:
    """The script that a code says or implies; empty where its language has one only, or is not known here."""
    scripts = _SCRIPTS.get(code.language, {})
    return code.script or scripts.get(code.region, scripts.get("", ""))


def _family(code: _Code) -> int:
    """The number of a region's family within its language; regions in none are a family as well."""
    families = _FAMILIES.get(code.language, ())
    return next((number for number, regions in enumerate(families) if code.region in regions.split()), -1)


class _Tables(NamedTuple):
    """``names``: code -> English name; ``short``: a code of three letters -> the one of two."""

    names: dict[str, str]
    short: dict[str, str]


@cache
def _tables() -> _Tables:
    names: dict[str, str] = {}
    short: dict[str, str] = {}
    for row in re.split(r"[|\n]", _LANGUAGES.strip()):
        code, long, name = row.split(" ", 2)
        names[code] = name
        short.update(dict.fromkeys(long.split(","), code))
    return _Tables(names, short)


def _meant(text: str) -> str | None:
    """The code that someone meant who wrote a name, a country or a misspelt name; None without a good guess."""
    written = _plain(text)
    if _CODE.fullmatch(written):
        language, dash, rest = written.partition("-")
        meant = _COUNTRIES.get(language)
        return normalise(meant + dash + rest) if meant else None
    by_name = {name.lower(): code for code, name in _tables().names.items()} | _NAMES
    words = re.findall(r"\w+", written)
    for candidate in (text.strip().lower(), written.replace("-", " "), *words):
        if candidate in by_name:
            return by_name[candidate]
    near = difflib.get_close_matches(written, by_name, n=1, cutoff=0.8)
    return by_name[near[0]] if near else None
