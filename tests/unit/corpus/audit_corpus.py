"""Clean parallel text made by rule, as like real text as the audit's findings need: no two pairs alike."""

from random import Random

NOUNS = {
    "dog": "Hund", "teacher": "Lehrer", "garden": "Garten", "engine": "Motor", "doctor": "Arzt", "baker": "Bäcker",
    "river": "Fluss", "table": "Tisch", "village": "Ort", "forest": "Wald", "captain": "Kapitän", "letter": "Brief",
    "apple": "Apfel", "train": "Zug", "neighbour": "Nachbar", "key": "Schlüssel", "mountain": "Berg",
}  # fmt: skip
VERBS = {
    "sees": "sieht", "finds": "findet", "paints": "malt", "hears": "hört", "loses": "verliert", "buys": "kauft",
    "sells": "verkauft", "follows": "verfolgt", "remembers": "kennt",
}  # fmt: skip
PLACES = {
    "near the old bridge": "bei der alten Brücke", "in Hamburg": "in Hamburg", "at night": "nachts",
    "behind the station where nobody goes": "hinter dem Bahnhof, wohin niemand geht", "today": "heute",
    "with Maria and her brother": "mit Maria und ihrem Bruder", "every single morning": "jeden Morgen",
}  # fmt: skip
ENDS = {".": ".", "?": "?", "!": "!", " in 1984.": " im Jahr 1984.", ", {name}.": ", {name}."}


def clean_pairs(number, seed=1):
    """So many different pairs of English and German; no source or target occurs twice."""
    rng = Random(seed)
    sources, targets, pairs = set(), set(), []
    while len(pairs) < number:
        one, other, verb, place, end = (
            rng.choice(sorted(words.items())) for words in (NOUNS, NOUNS, VERBS, PLACES, ENDS)
        )
        source = f"The {one[0]} {verb[0]} the {other[0]} {place[0]}{end[0]}"
        target = f"Der {one[1]} {verb[1]} den {other[1]} {place[1]}{end[1]}"
        if source not in sources and target not in targets:
            sources.add(source)
            targets.add(target)
            pairs.append((source, target))
    return pairs
