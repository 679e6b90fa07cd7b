"""Options that several commands share: declarations and checks of contradictions."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from nmt.config.decoding import BEAM, KEYS, SAMPLING
from nmt.errors import ConfigError, NmtError
from nmt.message import OWN_OPTION, option_of

SEARCH = "Search; default: section decoding of the run's configuration"
_CONFIG = typer.Option("--config", "-c", metavar="FILE", help="YAML file: a path, or a name in configs/ or in nmt.")
ConfigOption = Annotated[str, _CONFIG]
NoConfigOption = Annotated[str | None, _CONFIG]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, such as training.epochs=5. Repeatable."),
]
RunOption = Annotated[str | None, typer.Option(help="Run in checkpoints/. Default: the run trained last.")]
DatasetOption = Annotated[str | None, typer.Option(help="Dataset in data/. Default: data.dataset, else the newest.")]
EpochOption = Annotated[
    str | None, typer.Option(help="Weights: N, best, last or average. Default: average, else best.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def _decoding(key: str) -> Any:
    return typer.Option(
        option_of(key),
        metavar="CODE" if key.endswith("_language") else None,
        help=KEYS[key].help,
        rich_help_panel=SEARCH,
    )


BeamOption = Annotated[int | None, _decoding("beam_size")]
MbrOption = Annotated[int | None, _decoding("mbr_candidates")]
TemperatureOption = Annotated[float | None, _decoding("temperature")]
OrdinaryTextOption = Annotated[str | None, _decoding("ordinary_text")]
BatchSizeOption = Annotated[int | None, _decoding("batch_size")]
ToOption = Annotated[str | None, _decoding("target_language")]
FromOption = Annotated[str | None, _decoding("source_language")]
DecodingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", rich_help_panel=SEARCH,
        help="Another key of section decoding, such as decoding.length_penalty=1. Repeatable.",
    ),
]  # fmt: skip


def decoding_of(overrides: list[str] | None, **options: Any) -> dict[str, Any]:
    """Return the keys of section decoding that a command line sets, with their values.

    Args:
        overrides: values of ``--set``.
        options: keys with the values of their own options; None for an option that was not given.

    Raises:
        ConfigError: if section decoding does not have a key.
        NmtError: if a key is set twice.
    """
    from nmt.config.loading import read_overrides
    from nmt.storage.names import did_you_mean

    decoding = {key: value for key, value in options.items() if value is not None}
    for path, value in read_overrides(overrides or []).items():
        section, _, key = path.partition(".")
        if section != "decoding":
            raise ConfigError(
                f"--set {path} is not about search. A trained run translates with its own model, so this command "
                "changes only keys of section decoding. Leave it out."
            )
        if key not in KEYS and key != "tag":
            raise ConfigError(f"--set {path}: section decoding has no key {key!r}{did_you_mean(key, KEYS)}.")
        if key in decoding:
            raise NmtError(f"{option_of(key)} and --set {path} set the same key. Leave one of them out.")
        decoding[key] = value
    return decoding


def check_decoding(
    decoding: Mapping[str, Any], *, sample: bool | None = None, score: bool = False, **others: Any
) -> None:
    """Refuse options of a command that contradict each other.

    Args:
        decoding: keys of section decoding that the command line sets.
        sample: whether words are drawn; None for a command that never draws words.
        score: whether given translations are scored.
        others: further options that need a search.
    """
    searches = {key: KEYS[key].searches if key in KEYS else () for key in decoding}
    of_beam = [key for key in decoding if searches[key] == (BEAM,)]
    of_sampling = [key for key in decoding if searches[key] == (SAMPLING,)]
    of_search = [key for key in decoding if searches[key]]
    searched = [option_of(name) for name, value in others.items() if value not in (None, False, "")]
    if score:
        conflicts = ["--sample"] * bool(sample) + searched + [_setting(key) for key in of_search]
        if conflicts:
            raise NmtError(
                f"--score scores given translations without a search; received {conflicts[0]} too. Leave one of them "
                "out."
            )
    if sample:
        conflicts = [option for option in ("--n-best", "--glossary") if option in searched]
        conflicts += [_setting(key) for key in of_beam]
        if conflicts:
            raise NmtError(
                f"--sample draws words instead of searching; received {conflicts[0]} too. Leave one of them out."
            )
    if of_sampling and not sample and not decoding.get("mbr_sampled"):
        setting = _setting(of_sampling[0])
        if sample is None:
            raise NmtError(f"{setting} is for sampling, and this command searches. Leave it out.")
        raise NmtError(f"{setting} is for sampling; received it without --sample. Add --sample, or leave it out.")
    if decoding.get("beam_size") == 1 and len(of_beam) > 1:
        setting = next(_setting(key) for key in of_beam if key != "beam_size")
        raise NmtError(
            f"{setting} needs beam search; received it with --beam 1. Give a wider beam, or leave {setting} out."
        )


def _setting(key: str) -> str:
    """Return the option that sets a key of section decoding, without a value."""
    return option_of(key) if key in OWN_OPTION else f"--set decoding.{key}"
