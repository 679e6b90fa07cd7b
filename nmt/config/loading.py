"""Loader of configurations: YAML file, overrides ``section.key=value``, and messages with the place of each problem."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from nmt.config.data import CorpusConfig
from nmt.config.decoding import KEYS
from nmt.config.record import RENAMED, RETIRED, renamed
from nmt.config.schema import DEFAULT_ARCHITECTURE, MODEL_CONFIGS, Config, DecodingConfig
from nmt.config.training import StageConfig
from nmt.config.yaml_io import Loader
from nmt.errors import ConfigError, counted
from nmt.message import Argument, Part, Settings
from nmt.storage.json_file import check_format
from nmt.storage.names import did_you_mean, find_file
from nmt.storage.text import not_utf8

PACKAGE_CONFIGS = Path(__file__).parent.parent / "configs"  # in an installed wheel
CHECKOUT_CONFIGS = Path(__file__).parent.parent.parent / "configs"
MAX_BYTES = 2**17  # base.yaml has 6,000
MAX_PROBLEMS = 10  # in one message
MAX_KEY, MAX_VALUE = 60, 200  # characters of a key and of a value in a message
START_FROM_CONFIGS = "Start from one of the files in configs/."

FORMAT = "format"  # key of the format number, beside the sections
CURRENT_FORMAT = 2
FIRST_FORMAT = 1  # its files hold no number

# PyYAML's constructors raise these for text that does not fit its tag: "!!int ''", "!!bool x".
_NOT_YAML = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, OverflowError)
NESTED: dict[str, Any] = {"corpora": CorpusConfig, "stages": StageConfig}
"""Keys whose values hold keys of their own, and the record of these."""
Places = dict[tuple[str, ...], str | Settings]
"""Place of each section, key, and name in a map: file and line, or the override that sets it."""


def find_config(name: str) -> Path:
    """Return the path of a configuration: ``name`` itself, else in ``configs/``, else among those that come with nmt.

    Raises:
        NotFoundError: if it is in none of these places; names them.
    """
    return find_file(name, [Path("configs"), PACKAGE_CONFIGS, CHECKOUT_CONFIGS], "configuration", (".yaml", ".yml"))


def load_config(path: Path, overrides: Sequence[str] | None = None) -> Config:
    """Read a configuration file and apply overrides of the form ``section.key=value``.

    Raises:
        ConfigError: if a value breaks the schema; names file, line, key and value.
        DataError: if the file has an unknown format.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. Check its permissions and its disk.") from None
    values, places = _read_yaml(content, str(path))
    check_format(values.pop(FORMAT, FIRST_FORMAT), [FIRST_FORMAT, CURRENT_FORMAT], str(path))
    return config_of(values, str(path), overrides or (), places)


def config_of(
    values: Mapping[str, Any], origin: str, overrides: Sequence[str] = (), places: Places | None = None
) -> Config:
    """Return the configuration of sections of keys, with overrides.

    Args:
        values: keys with their values, by section.
        origin: name of the values in messages.
        overrides: settings ``section.key=value``. The last of a key counts.
        places: places of the values; None: their sections.

    Raises:
        ConfigError: if a value breaks the schema.
    """
    values = {section: _by_todays_names(section, keys) for section, keys in values.items()}
    places = {(section,): f"{origin}, section {section}" for section in values} if places is None else places
    for override in overrides:
        section, key, value = _parsed(override)
        keys = values.setdefault(section, {})
        key, dot, name = key.partition(".")  # of a map
        if isinstance(keys, dict):
            before = keys.get(key)
            keys[key] = {**(before if isinstance(before, dict) else {}), name: value} if dot else value
        typed = Settings({override.partition("=")[0].strip(): yaml.load(override.partition("=")[2], Loader=Loader)})
        places.setdefault((section,), typed)
        places[section, key] = typed
        for inner in [name] if dot else value if isinstance(value, dict) else ():
            places[section, key, str(inner)] = typed
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(*_in_words(error, origin, places, values)) from None


def _by_todays_names(section: str, keys: Any) -> Any:
    """Return the keys of a section by their names of today; a key that is there by two names is left to its record."""
    today = dict(renamed(section, *item) for item in keys.items()) if isinstance(keys, dict) else keys
    return today if isinstance(keys, dict) and len(today) == len(keys) else keys


def read_overrides(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the values of overrides by "section.key", with today's names of the keys and without retired ones.

    The values are not checked.

    Raises:
        ConfigError: for an override that is not ``section.key=value``.
    """
    parsed = [_parsed(override) for override in overrides]
    return {f"{section}.{key}": value for section, key, value in parsed if key not in RETIRED.get(section, ())}


def _parsed(override: str) -> tuple[str, str, Any]:
    """Return section, key and value of an override, by the names of today."""
    key_path, equals, text = override.partition("=")
    section, dot, key = key_path.strip().partition(".")
    if not (equals and dot and key):
        raise ConfigError(
            Argument("set"),
            f" {override!r} has no section, key and value. Write section.key=value, as in training.epochs=5.",
        )
    try:
        return section, *renamed(section, key, yaml.load(text, Loader=Loader))
    except (*_NOT_YAML, RecursionError):
        raise ConfigError(
            Argument("set"), f" {override!r} has a value that is not valid YAML. Put the value in quotes."
        ) from None


def change_decoding(decoding: DecodingConfig, options: Mapping[str, Any], *, exported: bool = False) -> DecodingConfig:
    """Return the decoding section with options of the command line; an option that is None changes nothing.

    Raises:
        ConfigError: if a value breaks the schema, or if an export is to translate, which cannot follow it; names
            option and value.
    """
    changes = {key: value for key, value in options.items() if value is not None}
    for key in changes.keys() & KEYS.keys():
        if exported and KEYS[key].not_exported:
            raise ConfigError(
                Settings({f"decoding.{key}": changes[key]}), f" is for TensorFlow. {KEYS[key].not_exported}"
            )
    try:
        return DecodingConfig.model_validate({**decoding.model_dump(), **changes})
    except ValidationError as error:
        problem = error.errors()[0]
        key = f"decoding.{problem['loc'][0]}"
        received = Settings({key: problem["input"]})
        raise ConfigError(received, f": {key} {_rule(problem)}. Change the value.") from None


# --- YAML


def _read_yaml(content: bytes, path: str) -> tuple[dict[str, Any], Places]:
    """Return sections of keys, an empty one where a section is null, and their places."""
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path} is too long. A configuration has at most {MAX_BYTES:,} bytes. {START_FROM_CONFIGS}")
    places: Places = {}
    try:
        loader = Loader(content.decode("utf-8-sig"))
        root = loader.get_single_node()
        _collect_places(root, (), places, path)
        values = None if root is None else loader.construct_document(root)
    except UnicodeDecodeError as error:
        raise ConfigError(not_utf8(path, error)) from None
    except (*_NOT_YAML, RecursionError) as error:
        place, problem = "", "a value does not fit its tag"
        if isinstance(error, yaml.MarkedYAMLError) and error.problem and error.problem_mark:
            problem = error.problem
            place = f", line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}"
        elif isinstance(error, RecursionError):
            problem = "it is nested too deeply. A configuration is four flat sections"
        elif isinstance(error, yaml.YAMLError | ValueError):
            problem = " ".join(str(error).split())
        raise ConfigError(
            f"{path}{place} is not valid YAML: {problem[:MAX_VALUE]}. Correct it, or put text in quotes."
        ) from None
    if not isinstance(values, dict | None):
        sections = f"A configuration holds the sections {', '.join(Config.model_fields)}. {START_FROM_CONFIGS}"
        raise ConfigError(f"{path} holds no sections, but a {type(values).__name__}. {sections}")
    return {key: {} if value is None and key != FORMAT else value for key, value in (values or {}).items()}, places


def _collect_places(node: yaml.Node | None, key_path: tuple[str, ...], places: Places, path: str) -> None:
    if not isinstance(node, yaml.MappingNode) or len(key_path) == len(("section", "key", "name")):
        return
    for key, value in node.value:
        inner, line = (*key_path, str(key.value)), f"{path}, line {key.start_mark.line + 1}"
        if inner in places:
            raise ConfigError(f"{line} sets {'.'.join(inner)} again. A key is set once. Remove one of the two lines.")
        places[inner] = line
        _collect_places(value, inner, places, path)


# --- problems in words


def _in_words(error: ValidationError, origin: str, places: Places, values: dict[str, Any]) -> list[Part]:
    """Return the problems that pydantic reports as parts of a message, a line each: place, key, value, rule, remedy."""
    problems: dict[tuple[str, ...], list[Any]] = {}
    for problem in error.errors():  # one for each type that a value may have
        keys = tuple(map(str, problem["loc"]))  # of a value with several types, also the type
        is_nested = keys[1:2] and keys[1] in NESTED
        problems.setdefault(keys if is_nested else keys[: 3 if keys[:3] in places else 2], []).append(problem)
    parts: list[Part] = []
    for key_path, alternatives in islice(problems.items(), MAX_PROBLEMS):
        parts += ["\n"] if parts else []
        parts += _line(key_path, alternatives, origin, places, values)
    if len(problems) > MAX_PROBLEMS:
        parts.append(f"\n{origin}: {counted(len(problems) - MAX_PROBLEMS, 'more problem')}.")
    return parts


def _line(
    key_path: tuple[str, ...], found: list[Any], origin: str, places: Places, values: dict[str, Any]
) -> list[Part]:
    section, key, kind = key_path[0], key_path[:2][-1], found[0]["type"]
    name = ".".join(part[:MAX_KEY] for part in key_path)
    older = [old for old, today in RENAMED.get(section, {}).items() if today.key == key and (section, old) in places]
    written = key_path[:2] if key_path[:2] in places or not older else (section, older[0])
    place: list[Part] = [places.get(key_path, places.get(written, origin))]
    if kind in {"extra_forbidden", "invalid_key"}:
        return [*place, f": unknown key {name!r}{_nearest_key(key_path, values)}."]
    if kind == "value_error":  # perhaps about several keys of a section
        overrides = [item for keys, item in places.items() if keys[:1] == key_path and isinstance(item, Settings)]
        if overrides and place[0] not in overrides:
            place += [", with ", Settings.joined(overrides)]
        return [*place, f": {name}: {found[0]['msg'].removeprefix('Value error, ')}."]
    if written != key_path[:2]:
        name = f"{'.'.join(written)}, now called {name},"
    value = repr(found[0]["input"])
    value = value if len(value) <= MAX_VALUE else f"{value[:MAX_VALUE]}..."
    rule = ", or ".join(map(_rule, found))
    return [*place, f": {name} is {value}, but {rule}. Change the value, or leave the key out."]


def _rule(problem: Any) -> str:
    if problem["type"] in {"model_type", "model_attributes_type"}:
        return "must be a section of keys"
    if problem["type"] == "dict_type":
        return "must be a map, as {name: value}"
    quotes = ", in quotes where it looks like another type" if problem["type"] == "string_type" else ""
    return problem["msg"].replace("Input should be", "must be") + quotes


def known_keys(section: str, values: Any = None) -> list[str]:
    """Return the keys of a section in their order; of a model by the architecture among its values."""
    record: Any = type(getattr(Config(), section))
    if section == "model" and isinstance(values, dict):
        record = MODEL_CONFIGS.get(str(values.get("architecture")), MODEL_CONFIGS[DEFAULT_ARCHITECTURE])
    return list(record.model_fields)


def _nearest_key(key_path: tuple[str, ...], values: dict[str, Any]) -> str:
    """Return in words where an unknown key belongs, what it is like, or what is known."""
    keys_by_section = {section: known_keys(section, values.get(section)) for section in Config.model_fields}
    *sections, key = key_path
    if len(sections) > 1:
        known = list(NESTED[sections[1]].model_fields)
        return did_you_mean(key, known) or f" (known: {', '.join(known)})"
    for section, keys in keys_by_section.items():
        if key in keys:
            return f" (it belongs {'to another' if sections else 'in a'} section: '{section}.{key}')"
    known = keys_by_section[sections[0]] if sections else [*keys_by_section]
    return did_you_mean(key, known) or f" (known{f' in {sections[0]}' if sections else ''}: {', '.join(known)})"
