"""Loader of configurations: YAML file, overrides of the command line, and messages with the place of each problem."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from nmt.config.decoding import KEYS, option_of
from nmt.config.record import Section
from nmt.config.schema import DEFAULT_ARCHITECTURE, MODEL_CONFIGS, Config, DecodingConfig
from nmt.config.yaml_io import Loader
from nmt.errors import ConfigError
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
Places = dict[tuple[str, ...], str]
"""Place of each section and key: "line 3", or "--set ..."."""


def find_config(name: str) -> Path:
    """Return the path of a configuration: ``name`` itself, else in ``configs/``, else among those that come with nmt.

    Raises:
        NotFoundError: if it is in none of these places; names them.
    """
    return find_file(name, [Path("configs"), PACKAGE_CONFIGS, CHECKOUT_CONFIGS], "configuration", (".yaml", ".yml"))


def load_config(path: Path, overrides: list[str] | None = None) -> Config:
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
    return _checked(values, places, str(path), overrides)


def config_of(values: dict[str, dict[str, Any]], origin: str, overrides: list[str]) -> Config:
    """Return the configuration of sections of keys, with overrides.

    Args:
        values: keys with their values, by section.
        origin: name of the values in messages.
        overrides: settings ``section.key=value``.

    Raises:
        ConfigError: if a value breaks the schema.
    """
    places: Places = {(section,): f"section {section}" for section in values}
    return _checked({section: {**keys} for section, keys in values.items()}, places, origin, overrides)


def _checked(values: dict[str, Any], places: Places, path: str, overrides: list[str] | None) -> Config:
    for override in overrides or []:
        _override(values, places, override)
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        problems = error.errors()
        messages = [_in_words(problem, path, places, values) for problem in problems[:MAX_PROBLEMS]]
        if len(problems) > MAX_PROBLEMS:
            messages.append(f"{path}: {len(problems) - MAX_PROBLEMS:,} more problems.")
        raise ConfigError("\n".join(messages)) from None


def read_overrides(overrides: list[str]) -> dict[str, Any]:
    """Return the values of overrides by "section.key", with today's names of the keys and without retired ones.

    The values are not checked.

    Raises:
        ConfigError: for an override that is not ``section.key=value``.
    """
    values: dict[str, Any] = {}
    for override in overrides:
        _override(values, {}, override)
    for section in values.keys() & Config.model_fields.keys():
        values[section], _ = _section_type(section, values[section]).of_today(values[section])
    return {f"{section}.{key}": value for section, keys in values.items() for key, value in keys.items()}


def change_decoding(decoding: DecodingConfig, options: Mapping[str, Any], *, exported: bool = False) -> DecodingConfig:
    """Return the decoding section with options of the command line; an option that is None changes nothing.

    Raises:
        ConfigError: if a value breaks the schema, or if an export is to translate, which cannot follow it; names
            option and value.
    """
    changes = {key: value for key, value in options.items() if value is not None}
    for key in changes.keys() & KEYS.keys():
        if exported and KEYS[key].not_exported:
            raise ConfigError(f"{option_of(key)} {changes[key]} is for TensorFlow. {KEYS[key].not_exported}")
    try:
        return DecodingConfig.model_validate({**decoding.model_dump(), **changes})
    except ValidationError as error:
        problem = error.errors()[0]
        option = option_of(str(problem["loc"][0]))
        raise ConfigError(f"{option} is {problem['input']!r}, but {_rule(problem)}. Change the value.") from None


# --- YAML


def _read_yaml(content: bytes, path: str) -> tuple[dict[str, Any], Places]:
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{path} is too long. A configuration has at most {MAX_BYTES:,} bytes. {START_FROM_CONFIGS}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(not_utf8(path, error)) from None
    places: Places = {}
    try:
        root = yaml.compose(text, Loader=Loader)
        if root is not None:
            _collect_lines(root, (), places, path)
        values = yaml.load(text, Loader=Loader)
    except RecursionError:
        raise ConfigError(
            f"{path} is nested too deeply. A configuration is four flat sections. {START_FROM_CONFIGS}"
        ) from None
    except _NOT_YAML as error:
        place, problem = _in_yaml(error)
        raise ConfigError(f"{path}{place} is not valid YAML: {problem}. Correct it, or put text in quotes.") from None
    values = {} if values is None else values
    if not isinstance(values, dict):
        raise ConfigError(
            f"{path} holds no sections, but a {type(values).__name__}. A configuration holds the sections "
            f"{', '.join(Config.model_fields)}. {START_FROM_CONFIGS}"
        )
    return {key: {} if value is None and key != FORMAT else value for key, value in values.items()}, places


def _in_yaml(error: Exception) -> tuple[str, str]:
    """Return the place of a YAML error, as ", line 3, column 7" where PyYAML knows it, and the problem."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem and error.problem_mark:
        mark = error.problem_mark
        return f", line {mark.line + 1}, column {mark.column + 1}", error.problem[:MAX_VALUE]
    if isinstance(error, yaml.YAMLError | ValueError):
        return "", " ".join(str(error).split())[:MAX_VALUE]
    return "", "a value does not fit its tag"


def _collect_lines(node: yaml.Node, key_path: tuple[str, ...], places: Places, path: str) -> None:
    if not isinstance(node, yaml.MappingNode) or len(key_path) > len(("section", "key")):
        return
    for key, value in node.value:
        inner_path = (*key_path, str(key.value))
        if inner_path in places:
            raise ConfigError(
                f"{path}, line {key.start_mark.line + 1} sets {'.'.join(inner_path)} again. A key is set once. Remove "
                "one of the two lines."
            )
        places[inner_path] = f"line {key.start_mark.line + 1}"
        _collect_lines(value, inner_path, places, path)


def _override(values: dict[str, Any], places: Places, override: str) -> None:
    key_path, equals, text = override.partition("=")
    section, dot, key = key_path.strip().partition(".")
    if not (equals and dot and key):
        raise ConfigError(
            f"--set {override!r} has no section, key and value. Write --set section.key=value, as in --set "
            "training.epochs=5."
        )
    try:
        value = yaml.load(text, Loader=Loader)
    except (*_NOT_YAML, RecursionError):
        raise ConfigError(f"--set {override!r} has a value that is not valid YAML. Put the value in quotes.") from None
    keys = values.setdefault(section, {})
    if isinstance(keys, dict):
        for name in _names_of_key(section, key):  # an override replaces the key of the file, whatever its age
            keys.pop(name, None)
            places.pop((section, name), None)
        keys[key] = value
    places.setdefault((section,), f"--set {override}")
    places[section, key] = f"--set {override}"


# --- problems in words


def _in_words(problem: Any, path: str, places: Places, values: dict[str, Any]) -> str:
    """Return a problem that pydantic found as: place, key, value, rule, remedy."""
    key_path = _key_path(problem, values)
    written, place = _place(key_path, path, places)
    name = ".".join(part[:MAX_KEY] for part in key_path)
    if problem["type"] == "extra_forbidden":
        return f"{place}: unknown key {name!r}{_nearest_key(key_path, values)}."
    if problem["type"] == "value_error":  # about several keys of a section
        set_options = [option for keys, option in places.items() if keys[:1] == key_path and option.startswith("--set")]
        if set_options and place not in set_options:
            place = f"{place}, with {' '.join(dict.fromkeys(set_options))}"
        return f"{place}: {name}: {problem['msg'].removeprefix('Value error, ')}."
    if written != key_path[:2]:
        name = f"{'.'.join(written)}, now called {name},"
    return (
        f"{place}: {name} is {_shortened(problem['input'])}, but {_rule(problem)}. Change the value, or leave the key "
        "out."
    )


def _key_path(problem: Any, values: dict[str, Any]) -> tuple[str, ...]:
    """Return section, key and what pydantic adds below them, without the tag of a section of several types."""
    section, *rest = (str(part) for part in problem["loc"])
    if rest and section in Config.model_fields:
        is_unknown_key = problem["type"] == "extra_forbidden" and len(rest) == 1
        if rest[0] not in known_keys(section, values.get(section)) and not is_unknown_key:
            rest = rest[1:]
    return section, *rest


def _place(key_path: tuple[str, ...], path: str, places: Places) -> tuple[tuple[str, ...], str]:
    """Return section and key as they were written, perhaps by an older name, and the line or option that set them."""
    written = key_path[:2]
    if len(written) > 1 and written not in places:
        section, key = written
        written = next(((section, name) for name in _names_of_key(section, key) if (section, name) in places), written)
    place = places.get(written)
    if place is None:
        return written, path
    return written, place if place.startswith("--set") else f"{path}, {place}"


def _rule(problem: Any) -> str:
    if problem["type"] in {"model_type", "model_attributes_type"}:
        return "must be a section of keys"
    rule = str(problem["msg"]).replace("Input should be", "must be")
    if problem["type"] == "string_type":
        rule += ", in quotes where it looks like another type"
    return rule


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}..."


def _section_type(section: str, values: Any) -> type[Section]:
    """Return the record of a section, given the values of the section."""
    if section == "model" and isinstance(values, dict):
        name = values.get("architecture") or DEFAULT_ARCHITECTURE
        return MODEL_CONFIGS.get(name, MODEL_CONFIGS[DEFAULT_ARCHITECTURE])
    return type(getattr(Config(), section))


def known_keys(section: str, values: Any = None) -> list[str]:
    """Return the keys of a section in their order.

    Args:
        section: Name of the section.
        values: Values of the section as read, on which its keys may depend; None: the default keys.
    """
    return list(_section_type(section, values).model_fields)


def _names_of_key(section: str, key: str, values: Any = None) -> list[str]:
    """Return all names of a key, today's and older ones, in no particular order."""
    if section not in Config.model_fields:
        return [key]
    renamed = _section_type(section, values).renamed
    today = renamed.get(key, key)
    return [today, *(old for old, new in renamed.items() if new == today)]


def _nearest_key(key_path: tuple[str, ...], values: dict[str, Any]) -> str:
    keys_by_section = {section: known_keys(section, values.get(section)) for section in Config.model_fields}
    *sections, key = key_path
    for section, keys in keys_by_section.items():
        if key in keys:
            return f" (it belongs {'to another' if sections else 'in a'} section: '{section}.{key}')"
    known = keys_by_section[sections[0]] if sections else [*keys_by_section]
    return did_you_mean(key, known) or f" (known{f' in {sections[0]}' if sections else ''}: {', '.join(known)})"
