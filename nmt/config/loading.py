"""Loader of configurations from YAML and overrides ``section.key=value``; its messages name file and line."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from nmt.config.data import CorpusConfig
from nmt.config.decoding import KEYS
from nmt.config.record import RENAMED, RETIRED, current_key
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
FIRST_FORMAT = 1  # of files without a format number

# PyYAML's constructors raise these for text that does not fit its tag: "!!int ''", "!!bool x".
_NOT_YAML = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, OverflowError)
NESTED: dict[str, Any] = {"corpora": CorpusConfig, "stages": StageConfig}
"""Keys whose values have keys of their own, with the class of these values."""
Places = dict[tuple[str, ...], str | Settings]
"""Where each section, key, and name in a map was set, such as "own.yaml, line 3", or the override that sets it."""


def find_config(name: str) -> Path:
    """Return the path of a configuration: ``name`` itself, else in ``configs/``, else among nmt's own configurations.

    Raises:
        NotFoundError: if none of these exists; names the folders.
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
    values, places = read_yaml(content, str(path))
    check_format(values.pop(FORMAT, FIRST_FORMAT), [FIRST_FORMAT, CURRENT_FORMAT], str(path))
    return config_of(values, str(path), overrides or (), places)


def config_of(
    values: Mapping[str, Any], origin: str, overrides: Sequence[str] = (), places: Places | None = None
) -> Config:
    """Return the configuration with given values and overrides.

    Args:
        values: keys with their values, by section.
        origin: name of the values in messages.
        overrides: settings ``section.key=value``. The last setting of a key counts.
        places: where the values were set; None: messages name their section.

    Raises:
        ConfigError: if a value breaks the schema.
    """
    values = {section: _with_current_names(section, keys) for section, keys in values.items()}
    places = {(section,): f"{origin}, section {section}" for section in values} if places is None else places
    for override in overrides:
        section, key, value = _parse_override(override)
        keys = values.setdefault(section, {})
        key, dot, name = key.partition(".")  # name in a map, as in training.augment.typos
        if isinstance(keys, dict):
            previous = keys.get(key)
            keys[key] = {**(previous if isinstance(previous, dict) else {}), name: value} if dot else value
        path, _, text = override.partition("=")
        place = Settings({path.strip(): yaml.load(text, Loader=Loader)})
        places.setdefault((section,), place)
        places[section, key] = place
        for inner in [name] if dot else value if isinstance(value, dict) else ():
            places[section, key, str(inner)] = place
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(*_describe_problems(error, origin, places, values)) from None


def _with_current_names(section: str, keys: Any) -> Any:
    """Return the keys of a section by their current names; unchanged if one is set by two names (validation fails)."""
    if not isinstance(keys, dict):
        return keys
    current = dict(current_key(section, key, value) for key, value in keys.items())
    return current if len(current) == len(keys) else keys


def read_overrides(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the values of overrides by "section.key", with current names of keys and without retired keys.

    The values are not checked.

    Raises:
        ConfigError: for an override that is not ``section.key=value``.
    """
    parsed = [_parse_override(override) for override in overrides]
    return {f"{section}.{key}": value for section, key, value in parsed if key not in RETIRED.get(section, ())}


def _parse_override(override: str) -> tuple[str, str, Any]:
    """Return section, key and value of an override, by the current name of the key."""
    key_path, equals, text = override.partition("=")
    section, dot, key = key_path.strip().partition(".")
    if not (equals and dot and key):
        raise ConfigError(
            Argument("set"),
            f" {override!r} has no section, key and value. Write section.key=value, as in training.epochs=5.",
        )
    try:
        return section, *current_key(section, key, yaml.load(text, Loader=Loader))
    except (*_NOT_YAML, RecursionError):
        raise ConfigError(
            Argument("set"), f" {override!r} has a value that is not valid YAML. Put the value in quotes."
        ) from None


def change_decoding(decoding: DecodingConfig, options: Mapping[str, Any], *, exported: bool = False) -> DecodingConfig:
    """Return the decoding section with changes by command-line options; an option that is None changes nothing.

    Args:
        decoding: section to change.
        options: values by key.
        exported: whether an export translates, which cannot follow all keys.

    Raises:
        ConfigError: if a value breaks the schema, or an export cannot follow it; names option and value.
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


def read_yaml(content: bytes, path: str) -> tuple[dict[str, Any], Places]:
    """Return the values of a file by section, and where they were set. A section that is null becomes empty."""
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


# --- messages


def _describe_problems(error: ValidationError, origin: str, places: Places, values: dict[str, Any]) -> list[Part]:
    """Return the parts of a message: a line for each problem that pydantic found, with place, key, value and rule."""
    problems: dict[tuple[str, ...], list[Any]] = {}
    for problem in error.errors():  # a key has a problem for each type that its value may have
        path = tuple(map(str, problem["loc"]))  # ends with the type if the value may have several
        is_nested = path[1:2] and path[1] in NESTED
        key_path = path if is_nested else path[: 3 if path[:3] in places else 2]
        problems.setdefault(key_path, []).append(problem)
    parts: list[Part] = []
    for key_path, key_problems in islice(problems.items(), MAX_PROBLEMS):
        parts += ["\n"] if parts else []
        parts += _describe_key(key_path, key_problems, origin, places, values)
    if len(problems) > MAX_PROBLEMS:
        parts.append(f"\n{origin}: {counted(len(problems) - MAX_PROBLEMS, 'more problem')}.")
    return parts


def _describe_key(
    key_path: tuple[str, ...], problems: list[Any], origin: str, places: Places, values: dict[str, Any]
) -> list[Part]:
    """Return a line about the problems of a key, in parts."""
    section, key, kind = key_path[0], key_path[:2][-1], problems[0]["type"]
    name = ".".join(part[:MAX_KEY] for part in key_path)
    renames = RENAMED.get(section, {}).items()
    older = [old for old, current in renames if current.key == key and (section, old) in places]
    written = key_path[:2] if key_path[:2] in places or not older else (section, older[0])
    place: list[Part] = [places.get(key_path, places.get(written, origin))]
    if kind in {"extra_forbidden", "invalid_key"}:
        return [*place, f": unknown key {name!r}{_nearest_key(key_path, values)}."]
    if kind == "value_error":  # perhaps about several keys of a section
        overrides = [item for keys, item in places.items() if keys[:1] == key_path and isinstance(item, Settings)]
        if overrides and place[0] not in overrides:
            place += [", with ", Settings.join(overrides)]
        return [*place, f": {name}: {problems[0]['msg'].removeprefix('Value error, ')}."]
    if written != key_path[:2]:
        name = f"{'.'.join(written)}, now called {name},"
    value = repr(problems[0]["input"])
    value = value if len(value) <= MAX_VALUE else f"{value[:MAX_VALUE]}..."
    rule = ", or ".join(map(_rule, problems))
    return [*place, f": {name} is {value}, but {rule}. Change the value, or leave the key out."]


def _rule(problem: Any) -> str:
    if problem["type"] in {"model_type", "model_attributes_type"}:
        return "must be a section of keys"
    if problem["type"] == "dict_type":
        return "must be a map, as {name: value}"
    quotes = ", in quotes where it looks like another type" if problem["type"] == "string_type" else ""
    return problem["msg"].replace("Input should be", "must be") + quotes


def known_keys(section: str, values: Any = None) -> list[str]:
    """Return the keys of a section in their order. ``values`` of section model name the architecture."""
    record: Any = type(getattr(Config(), section))
    if section == "model" and isinstance(values, dict):
        record = MODEL_CONFIGS.get(str(values.get("architecture")), MODEL_CONFIGS[DEFAULT_ARCHITECTURE])
    return list(record.model_fields)


def _nearest_key(key_path: tuple[str, ...], values: dict[str, Any]) -> str:
    """Return a hint about an unknown key in words: its section, else a similar key, else the known keys."""
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
