"""Opening of teachers by their descriptions. A library or model is loaded when a teacher needs it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue

from nmt.config.decoding import KEYS
from nmt.config.loading import change_decoding
from nmt.config.schema import DecodingConfig
from nmt.config.teacher import SERVERS, Kind, TeacherConfig
from nmt.data.encoding import corpus_median
from nmt.decoding.exported import CTRANSLATE2, DESCRIPTION, EXPORTS, find_exports, is_of_weights
from nmt.errors import NmtError
from nmt.evaluation.systems import find_system
from nmt.message import Argument, Message, Report, Settings
from nmt.runs.directory import Run, find_run
from nmt.runs.weights import choose_epoch
from nmt.storage.atomic import sha256
from nmt.teachers.choice import CONFIDENCE
from nmt.teachers.model_teachers import TranslatorTeacher, open_marian
from nmt.teachers.teacher import Teacher

FASTEST = "int8"  # number format of the fastest exports


class Asking(NamedTuple):
    """How teachers are asked; the same for all."""

    decoding: Mapping[str, JsonValue]
    """Values for keys of section decoding."""
    sampled: bool = False
    """Whether words are drawn by their probabilities."""
    candidates: int = 1
    """Translations of a line."""
    choose: str | None = None
    """Way to choose among candidates."""

    @property
    def languages(self) -> tuple[str | None, str | None]:
        """Codes of the source and the target language of the translations; None if the user has given none."""
        source, target = (self.decoding.get(f"{side}_language") for side in ("source", "target"))
        return None if source is None else str(source), None if target is None else str(target)


def open_run(
    name: str | None, epoch: str | None, export: str | None, asking: Asking, note: Report
) -> TranslatorTeacher:  # fmt: skip
    """Return a run, an ensemble or an export as a teacher.

    Args:
        name: RUN, or RUN+RUN for an ensemble; None for the run that trained last.
        epoch: weights.
        export: name of an export; "none": TensorFlow translates; None: an int8 export, made if there is none.
        asking: how it is asked. The default of beam_size is the number of candidates.
        note: called with a message when the run is exported.

    Raises: the errors of ``nmt.load``, and of ``read_calibration`` if confidence decides.
    """
    export = export or ("none" if "+" in (name or "") else _fast_export(find_run(name), epoch, note))
    beams = 1 if asking.sampled else asking.candidates
    system = find_system(name, epoch, {"beam_size": beams, **asking.decoding}, None if export == "none" else export)
    if system.exported:
        models = [system.exported.folder / DESCRIPTION]
    else:
        models = [member.weights_path(choose_epoch(member, chosen)) for member, chosen in system.members]
    identity: dict[str, Any] = {"run": system.name, "model": [*map(sha256, models)], **system.decoding.model_dump()}
    translator = system.open()
    is_confident = asking.choose == CONFIDENCE
    if is_confident:
        translator.calibration  # noqa: B018 - a run without one is refused before it translates
    median = translator.direction.median_length_ratio or corpus_median(system.manifest)
    return TranslatorTeacher(
        system.name, translator, identity, sampled=asking.sampled, candidates=asking.candidates,
        confident=is_confident, median=median,
    )  # fmt: skip


def open_teacher(config: TeacherConfig, asking: Asking, note: Report) -> Teacher:
    """Return the teacher that a description names.

    Raises:
        NotFoundError: if a model, a file or a library is missing.
        DataError: if a model is damaged.
        ConfigError: for a value that section decoding does not allow.
    """
    if config.kind == "run":
        return open_run(config.where, None, None, asking, note)
    _refuse_idle_settings(config.kind, asking)
    decoding = change_decoding(DecodingConfig(), asking.decoding)
    if config.kind == "marian":
        return open_marian(
            Path(config.where), decoding, asking.languages, sampled=asking.sampled, candidates=asking.candidates
        )
    if config.kind == "ctranslate2":
        from nmt.teachers.ctranslate2_folder import FolderTeacher  # noqa: PLC0415 - an extra

        return FolderTeacher(config, decoding, asking.languages, asking.candidates, asking.sampled)
    if config.kind == "chat":
        from nmt.teachers.chat import ChatTeacher  # noqa: PLC0415 - only for servers

        return ChatTeacher(config, asking.languages, asking.candidates)
    from nmt.teachers.libretranslate import LibreTranslateTeacher  # noqa: PLC0415 - only for servers

    return LibreTranslateTeacher(config, asking.languages, asking.candidates)


def _refuse_idle_settings(kind: Kind, asking: Asking) -> None:
    """Raise NmtError for a setting of the search that a teacher of this kind cannot follow."""
    is_server = kind in SERVERS
    if is_server and asking.sampled:
        raise NmtError(Argument("sample", True), f" cannot be followed by a teacher of kind {kind}. Leave it out.")
    followed = {"source_language", "target_language"}
    if kind == "ctranslate2":
        followed |= {"batch_size", "max_length_ratio", "max_length_extra", "seed"}
        followed |= {name for name, key in KEYS.items() if CTRANSLATE2 in key.names}
    for name, value in asking.decoding.items():
        if name not in followed and (is_server or kind == "ctranslate2"):
            raise NmtError(
                Settings({f"decoding.{name}": value}),
                f" cannot be followed by a teacher of kind {kind}. Leave it out.",
            )


def _fast_export(run: Run, epoch: str | None, note: Report) -> str:
    """Return the name of an int8 export of a run's weights. It is made if there is none; "none" if that fails."""
    weights = choose_epoch(run, epoch)
    for folder, description in find_exports(run, CTRANSLATE2).items():
        if description.quantization == FASTEST and is_of_weights(description, run, weights):
            return folder.name
    from nmt.export.export import export_run, find_exporter  # noqa: PLC0415 - loads TensorFlow

    folder = run.folder / EXPORTS / f"{CTRANSLATE2}-{FASTEST}-{weights}"
    note(f"exporting run {run.name} to {folder}, which translates several times as fast")
    try:
        export_run(run, find_exporter(CTRANSLATE2, FASTEST), epoch=epoch, output=folder, overwrite=True)
    except NmtError as error:
        note(Message("TensorFlow translates, since the run is not exported: ", error))
        return "none"
    return folder.name
