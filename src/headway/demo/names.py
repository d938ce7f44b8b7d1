"""Which countries, languages, currencies and units the demo speaks of, by their CLDR codes.

Each list is short enough for every name to occur dozens of times in 40,000 pairs: what is unseen in the test is the
combination, never the word.
"""


def _listed(codes: str) -> tuple[str, ...]:
    return tuple(codes.split())


TERRITORIES = _listed(
    """
    AF AL DZ AO AR AM AU AT AZ BD BY BE BJ BO BW BR BG KH CM CA TD CL CN CO CR HR CU CY CZ DK DO EC EG SV EE ET FJ FI FR
    GE DE GH GR GT GN HT HN HU IS IN ID IR IQ IE IL IT JM JP JO KZ KE KW KG LA LV LB LY LT LU MG MY ML MT MX MD MN ME MA
    MZ NA NP NL NZ NI NE NG NO OM PK PA PY PE PH PL PT QA RO RU RW SN RS SG SK SI SO ZA KR ES LK SD SE CH SY TJ TZ TH TN
    TR UG UA AE GB US UY UZ VE VN YE ZM ZW
    """
)

LANGUAGES = _listed(
    """
    af am ar az be bg bn bo bs ca cs cy da de el en eo es et eu fa fi fr ga gl gu he hi hr hu hy id is it ja jv ka kk km
    kn ko ku ky la lb lo lt lv mg mk ml mn mr ms mt my ne nl pl ps pt ro ru sa si sk sl so sq sr sv sw ta te tg th tk tr
    uk ur uz vi yi yo zh zu
    """
)

CURRENCIES = _listed(
    """
    USD EUR GBP JPY CHF CNY AUD CAD NZD SEK NOK DKK PLN CZK HUF TRY UAH INR PKR IDR THB VND KRW TWD HKD SGD MYR PHP SAR
    EGP ILS NGN KES MAD BRL MXN ARS CLP COP ISK
    """
)

UNITS = _listed(
    """
    length-kilometer length-meter length-centimeter length-millimeter length-mile length-yard length-foot length-inch
    length-nautical-mile length-light-year area-square-kilometer area-square-meter area-hectare area-acre
    area-square-mile mass-kilogram mass-gram mass-milligram mass-tonne mass-pound mass-ounce mass-carat volume-liter
    volume-milliliter volume-cubic-meter volume-gallon volume-pint volume-cup volume-tablespoon volume-teaspoon
    volume-barrel digital-byte digital-kilobyte digital-megabyte digital-gigabyte digital-terabyte digital-megabit
    speed-kilometer-per-hour speed-meter-per-second speed-mile-per-hour speed-knot temperature-celsius
    temperature-fahrenheit energy-joule energy-kilojoule energy-kilowatt-hour energy-calorie power-watt power-kilowatt
    power-megawatt power-horsepower electric-volt electric-ampere electric-ohm frequency-hertz frequency-kilohertz
    frequency-megahertz pressure-bar pressure-hectopascal angle-degree graphics-pixel graphics-megapixel
    concentr-percent consumption-liter-per-100-kilometer
    """
)
