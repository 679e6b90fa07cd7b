"""Description of a teacher, as a YAML file or as KIND:WHERE on the command line. Loads no teacher."""

from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, ValidationError

from nmt.config.loading import read_yaml
from nmt.config.record import DocumentedRecord
from nmt.errors import ConfigError, NotFoundError
from nmt.message import Argument
from nmt.storage.names import did_you_mean

Kind = Literal["run", "ctranslate2", "marian", "libretranslate", "chat"]
SERVERS: tuple[Kind, ...] = ("libretranslate", "chat")
"""Kinds of teachers that are servers. They search as they do, and give no scores."""


class TeacherConfig(DocumentedRecord):
    """A teacher: where it is, and how it is asked.

    The keys about requests are for servers: LibreTranslate and chat.
    """

    kind: Kind
    """``run``: a run or an ensemble. ``ctranslate2``: a folder with a converted model (NLLB, M2M-100, MADLAD, OPUS-MT).
    ``marian``: a folder with a Marian model. ``libretranslate``: a LibreTranslate server, or ``nmt serve``. ``chat``: a
    language model behind OpenAI's chat interface."""
    where: str
    """Name of the run (RUN+RUN for an ensemble), path of the folder, or address of the server."""
    source_token: str | None = None
    """``ctranslate2``: token of the source language, such as eng_Latn; null: found by its code."""
    target_token: str | None = None
    """``ctranslate2``: token of the target language; null: found by its code."""
    compute_type: str = "default"
    """``ctranslate2``: number format of the computation, such as int8; default: as the model is stored."""
    model: str | None = None
    """``chat``: name of the model on the server."""
    prompt: Path | None = None
    """``chat``: file with the instruction, with ``{source}`` where a JSON list of sentences stands, and perhaps
    ``{source_language}``, ``{target_language}`` and ``{count}``; null: a short instruction in English."""
    examples: Path | None = None
    """``chat``: file of pairs, source TAB target, that the model is shown as examples; null: none."""
    temperature: float = Field(0.0, ge=0, le=2)
    """``chat``: temperature of sampling; 0: the most probable answer."""
    sentences: int = Field(20, ge=1, le=1000)
    """Sentences in a request."""
    parallel: int = Field(4, ge=1, le=256)
    """Requests at the same time."""
    requests_per_minute: float | None = Field(None, gt=0)
    """Most requests a minute; null: no limit."""
    timeout: float = Field(120.0, gt=0, le=3600)
    """Seconds after which a request without an answer is sent again."""
    key_variable: str | None = None
    """Environment variable with the key of the server; null: the server needs none. The key is never written."""
    input_price: float = Field(0.0, ge=0)
    """``chat``: price of a million input tokens, in any currency."""
    output_price: float = Field(0.0, ge=0)
    """``chat``: price of a million output tokens."""


def read_teacher(text: str) -> TeacherConfig:
    """Return the teacher that KIND:WHERE, or the path of a YAML file, describes.

    Raises:
        NotFoundError: if there is no such kind and no such file.
        ConfigError: if a value breaks the schema; names file, line, key and value.
    """
    kind, colon, where = text.partition(":")
    if colon and kind in get_args(Kind):
        return _validated({"kind": kind, "where": where}, {}, text)
    path = Path(text)
    if not path.is_file():
        kinds = ", ".join(get_args(Kind))
        raise NotFoundError(
            Argument("teacher", text),
            f" is neither a file nor KIND:WHERE{did_you_mean(kind, get_args(Kind))}. Kinds: {kinds}. Give one, such as "
            "libretranslate:http://localhost:5000.",
        )
    values, places = read_yaml(path.read_bytes(), text)
    for key in ("prompt", "examples"):  # beside the file that names them
        if isinstance(values.get(key), str):
            values[key] = path.parent / values[key]
    return _validated(values, {keys[0]: place for keys, place in places.items()}, text)


def _validated(values: dict[str, Any], places: dict[str, Any], origin: str) -> TeacherConfig:
    """Return the teacher with these values; raises ConfigError for the first one that breaks a rule."""
    try:
        return TeacherConfig.model_validate(values)
    except ValidationError as error:
        # A misspelt key is reported before the key that seems to be missing.
        problem = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
        key = str(problem["loc"][0])
        place = places.get(key, origin)
        if problem["type"] == "extra_forbidden":
            nearest = did_you_mean(key, TeacherConfig.model_fields)
            raise ConfigError(f"{place}: a teacher has no key {key!r}{nearest}. Correct it, or leave it out.") from None
        if problem["type"] == "missing":
            raise ConfigError(f"{place}: {key} is missing. A teacher needs its kind and where it is. Add it.") from None
        rule = problem["msg"].replace("Input should be", "must be")
        raise ConfigError(f"{place}: {key} is {problem['input']!r}, but {rule}. Change the value.") from None
