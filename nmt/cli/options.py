"""Options that several commands share: declarations, help sections, and checks of contradictions."""

from typing import Annotated, Any

import typer

from nmt.errors import NmtError

SEARCH = "Search"

_CONFIG = typer.Option(
    "--config",
    "-c",
    metavar="FILE",
    help="YAML file. A bare name is also looked for in configs/ and among the configurations of nmt.",
)
ConfigOption = Annotated[str, _CONFIG]
NoConfigOption = Annotated[str | None, _CONFIG]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a key of the configuration, such as training.epochs=5. Repeatable."
    ),
]
RunOption = Annotated[str | None, typer.Option(help="Run in checkpoints/. Default: the run trained last.")]
DatasetOption = Annotated[
    str | None,
    typer.Option(help="Dataset in data/. Default: data.dataset of the configuration, else the dataset prepared last."),
]
EpochOption = Annotated[
    str | None,
    typer.Option(
        help="Weights: an epoch number, best, last or average. Default: the average if there is one, else best."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on standard output.")]

# Search options. An option that is left out keeps the value of the run's configuration, section decoding.
BeamOption = Annotated[
    int | None,
    typer.Option(help="Beam size: partial translations kept at each step. 1 is greedy search.", rich_help_panel=SEARCH),
]
LengthPenaltyOption = Annotated[
    float | None,
    typer.Option(help="Divide log-probabilities by ((5 + tokens) / 6)^X.", rich_help_panel=SEARCH),
]
BatchSizeOption = Annotated[int | None, typer.Option(help="Sentences translated at a time.", rich_help_panel=SEARCH)]
PrecisionOption = Annotated[
    str | None,
    typer.Option(help="Number format: float32, bfloat16 (may be faster) or auto.", rich_help_panel=SEARCH),
]
BackendOption = Annotated[
    str,
    typer.Option(
        help="tensorflow, or ctranslate2: the export of the run that was written last, which starts at once.",
        rich_help_panel=SEARCH,
    ),
]

BEAM_KEYS = ("beam_size", "length_penalty")
SAMPLING_KEYS = ("temperature", "top_k", "top_p", "seed")


def option_name(key: str) -> str:
    """Return the option that sets a key of the section decoding."""
    return "--beam" if key == "beam_size" else "--" + key.replace("_", "-")


def check_search(settings: dict[str, Any], *, exported: bool) -> None:
    """Refuse options of search that contradict each other.

    Args:
        settings: keys of the section decoding with the values of their options, None for an option left out.
        exported: whether an export translates.

    Raises:
        NmtError: naming the first contradiction.
    """
    if settings["beam_size"] == 1 and settings["length_penalty"] is not None:
        raise NmtError(
            "--length-penalty needs beam search; received it with --beam 1. Give a wider beam, or leave "
            "--length-penalty out."
        )
    if exported and settings["precision"] is not None:
        raise NmtError(
            f"--precision {settings['precision']} is for TensorFlow. An export has the number format that it was "
            "written in. Leave it out, or export with another --quantization."
        )
