"""A configuration file and what the command line overrides in it, read once; each problem in words, with its place."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from nmt.config.decoding import DecodingConfig
from nmt.config.schema import Config
from nmt.config.yaml_io import Loader
from nmt.errors import ConfigError
from nmt.storage.names import did_you_mean, find_file
from nmt.storage.text import CONVERT

PACKAGE_CONFIGS = Path(__file__).parent.parent / "configs"  # where a wheel carries them
CHECKOUT_CONFIGS = Path(__file__).parent.parent.parent / "configs"
MAX_BYTES = 2**17  # of a configuration; base.yaml has 6,000
START_ANEW = "Start from one of the files in configs/."
MAX_PROBLEMS = 10  # told at a time


def find_config(name: str) -> Path:
    """Return the path of a configuration: as said, else in ``configs/``, else among those that travel with nmt.

    Raises:
        NotFoundError: naming every place that was looked in.
    """
    return find_file(name, [Path("configs"), PACKAGE_CONFIGS, CHECKOUT_CONFIGS], "configuration")


def load_config(path: Path, overrides: list[str] | None = None) -> Config:
    """Read a configuration file and apply overrides of the form ``section.key=value``.

    Raises:
        ConfigError: naming file, line, key and value for whatever breaks the schema.
    """
    values, lines = _read_yaml(path)
    for override in overrides or []:
        _override(values, lines, override)
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        problems = error.errors()
        said = [_in_words(one, path, lines) for one in problems[:MAX_PROBLEMS]]
        if len(problems) > MAX_PROBLEMS:
            said.append(f"{path}: {len(problems) - MAX_PROBLEMS:,} more problems.")
        raise ConfigError("\n".join(said)) from None


# PyYAML's constructors let out whatever a text that is not of its tag makes of them: "!!int ''", "!!bool x".
_NOT_YAML = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, OverflowError)
Lines = dict[tuple[str, ...], str]  # where each key was said: "line 3" or "--set ..."


def _read_yaml(path: Path) -> tuple[dict[str, Any], Lines]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. Check its permissions and its disk.") from None
    if len(content) > MAX_BYTES:
        raise ConfigError(f"A configuration has at most {MAX_BYTES:,} bytes; {path} has more. {START_ANEW}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, byte = content.count(b"\n", 0, error.start) + 1, content[error.start]
        raise ConfigError(
            f"A configuration is UTF-8 text; {path}, line {line} holds the byte 0x{byte:02x}. {CONVERT}."
        ) from None
    lines: Lines = {}
    try:
        root = yaml.compose(text, Loader=Loader)
        if root is not None:
            _collect_lines(root, (), lines, path)
        values = yaml.load(text, Loader=Loader)
    except RecursionError:
        raise ConfigError(f"A configuration is four flat sections; {path} is nested deeper. {START_ANEW}") from None
    except _NOT_YAML as error:
        place, problem = _in_yaml(error)
        raise ConfigError(
            f"A configuration is YAML; {path}{place} is not: {problem}. Mend it, or quote text."
        ) from None
    values = {} if values is None else values
    if not isinstance(values, dict):
        raise ConfigError(
            f"A configuration holds the sections {', '.join(Config.model_fields)}; {path} holds none, but a "
            f"{type(values).__name__}. {START_ANEW}"
        )
    return {key: {} if value is None else value for key, value in values.items()}, lines


def _in_yaml(error: Exception) -> tuple[str, str]:
    """Where a text ceases to be YAML, as ", line 3, column 7" if that is known, and what is wrong there."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem and error.problem_mark:
        mark = error.problem_mark
        return f", line {mark.line + 1}, column {mark.column + 1}", error.problem[:200]
    if isinstance(error, yaml.YAMLError | ValueError):
        return "", " ".join(str(error).split())[:200]
    return "", "a value is not what its tag says"


def _collect_lines(node: yaml.Node, key_path: tuple[str, ...], lines: Lines, path: Path) -> None:
    if not isinstance(node, yaml.MappingNode) or len(key_path) > len(("section", "key")):
        return
    for key, value in node.value:
        here = (*key_path, str(key.value))
        if here in lines:
            raise ConfigError(
                f"A key is set once; {path}, line {key.start_mark.line + 1} sets {'.'.join(here)} again. Remove one of "
                "the two."
            )
        lines[here] = f"line {key.start_mark.line + 1}"
        _collect_lines(value, here, lines, path)


def change_decoding(decoding: DecodingConfig, options: dict[str, Any]) -> DecodingConfig:
    """Return the section with the values of options of the command line, None where one was not given.

    Raises:
        ConfigError: naming option and value for whatever breaks the schema.
    """
    given = {key: value for key, value in options.items() if value is not None}
    try:
        return DecodingConfig.model_validate({**decoding.model_dump(), **given})
    except ValidationError as error:
        problem = error.errors()[0]
        option = "--" + str(problem["loc"][0]).replace("_", "-").replace("beam-size", "beam")
        message = problem["msg"].replace("Input should be", "must be")
        raise ConfigError(f"{option} {message}; received {problem['input']!r}. Remedy: change the value.") from None


def _override(values: dict[str, Any], lines: Lines, override: str) -> None:
    key_path, equals, text = override.partition("=")
    section, dot, key = key_path.strip().partition(".")
    if not (equals and dot and key):
        raise ConfigError(f"--set takes section.key=value, as in --set training.epochs=5; received {override!r}.")
    try:
        value = yaml.load(text, Loader=Loader)
    except (*_NOT_YAML, RecursionError):
        raise ConfigError(f"The value in --set is read as YAML; received {override!r}. Quote it.") from None
    owner = values.setdefault(section, {})
    if isinstance(owner, dict):
        owner[key] = value
    lines.setdefault((section,), f"--set {override}")
    lines[section, key] = f"--set {override}"


def _in_words(error: Any, path: Path, lines: Lines) -> str:
    """One problem of a configuration as: where, the key, the rule, what was received, the remedy."""
    key_path = tuple(str(part) for part in error["loc"])
    said = lines.get(key_path[:2])
    place = f"{path}, {said}" if said and not said.startswith("--set") else said or str(path)
    name = ".".join(part[:60] for part in key_path)
    if error["type"] == "extra_forbidden":
        return f"{place}: unknown key {name!r}{_nearest_key(key_path)}."
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "value_error":  # about several keys of a section
        options = [option for keys, option in lines.items() if keys[:1] == key_path and option.startswith("--set")]
        if options and place not in options:
            place = f"{place}, with {' '.join(dict.fromkeys(options))}"
        return f"{place}: {name}: {message}."
    if error["type"] == "string_type":
        message += ", in quotes where it looks like something else"
    if error["type"] in {"model_type", "model_attributes_type"}:
        message = "must be a section of keys"
    message = message.replace("Input should be", "must be")
    return (
        f"{place}: {name} {message}; received {_start(error['input'])}. Remedy: change the value or leave the key out."
    )


def _start(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _nearest_key(key_path: tuple[str, ...]) -> str:
    sections = {name: list(getattr(Config(), name).__class__.model_fields) for name in Config.model_fields}
    *sections_said, key = key_path
    if sections_said:
        known = sections[sections_said[0]]
        elsewhere = [f"{section}.{key}" for section, keys in sections.items() if key in keys]
        if elsewhere:
            return f" (it belongs to another section: {elsewhere[0]!r})"
        return did_you_mean(key, known) or f" (known in {sections_said[0]}: {', '.join(known)})"
    inside = [f"{section}.{key}" for section, keys in sections.items() if key in keys]
    if inside:
        return f" (it belongs in a section: {inside[0]!r})"
    return did_you_mean(key, sections) or f" (known: {', '.join(sections)})"
