"""docs/recipes.md lists every key and every packaged recipe, with the defaults of the schema."""

import re
import tomllib

from doc_pages import DOCS, table_rows

from headway.config.load import recipe_names
from headway.config.schema import RunConfig
from headway.config.section import Section
from headway.train.run import HORIZON_KEYS

PAGE = DOCS / "recipes.md"


def defaults_of_the_schema():
    found = {}
    for name, info in RunConfig.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, Section):
            fields = info.annotation.model_fields
            found |= {f"{name}.{key}": field.get_default(call_default_factory=True) for key, field in fields.items()}
        else:
            found[name] = info.default
    return found


def documented_keys():
    rows = [cells for _, cells in table_rows(PAGE) if len(cells) == 3 and cells[0].startswith("`")]
    return {key.strip("`"): None if value == "absent" else value.strip("`") for key, value, _ in rows}


def test_every_key_of_the_schema_is_documented_with_its_default_and_no_other():
    written = {
        key: None if value is None else tomllib.loads(f"x = {value}")["x"] for key, value in documented_keys().items()
    }
    assert list(written) == list(defaults_of_the_schema())
    assert written == defaults_of_the_schema()


def test_every_packaged_recipe_is_listed_and_no_other():
    listed = [cells[0].strip("`") for _, cells in table_rows(PAGE) if len(cells) == 2 and cells[0].startswith("`")]
    assert listed == recipe_names()


def test_every_key_that_any_page_names_exists():
    keys, sections = set(defaults_of_the_schema()) | {"model.preset"}, "|".join(RunConfig.model_fields)
    for page in DOCS.glob("*.md"):
        for key in re.findall(rf"`((?:{sections})\.[a-z_0-9]+)(?: = [^`]*)?`", page.read_text(encoding="utf-8")):
            assert key in keys or key.endswith((".toml", ".py", ".safetensors")), f"{page.name}: {key}"


def test_the_keys_that_may_change_when_a_run_goes_on_are_those_of_the_code():
    text = " ".join((DOCS / "train.md").read_text(encoding="utf-8").split())
    sentence = re.search(r"must not change between two sessions; only (.*?) may\.", text)
    assert sentence is not None
    assert set(re.findall(r"`([^`]+)`", sentence[1])) == HORIZON_KEYS
