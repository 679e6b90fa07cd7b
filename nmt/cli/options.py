"""Options that several commands share: declarations, help sections, and checks of contradictions."""

from typing import Annotated, Any

import typer

from nmt.errors import NmtError

# Help sections, in which the options of a long command are grouped.
CONFIGURATION = "Configuration"
RUN = "Run and weights"
DATA = "Data"
OUTPUT = "Input and output"
SEARCH = "Search"
SAMPLING = "Sampling"
SPEED = "Speed"

ConfigOption = Annotated[
    str,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="YAML file. A bare name is also looked for in configs/ and among the configurations of nmt.",
        rich_help_panel=CONFIGURATION,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the configuration, such as training.epochs=5. Repeatable.",
        rich_help_panel=CONFIGURATION,
    ),
]
RunOption = Annotated[
    str | None,
    typer.Option(
        "--run", metavar="RUN", help="Run in checkpoints/. Default: the run trained last.", rich_help_panel=RUN
    ),
]
DatasetOption = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="NAME",
        help="Dataset in data/. Default: data.dataset of the configuration, else the dataset prepared last.",
        rich_help_panel=DATA,
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON and nothing else on standard output.", rich_help_panel=OUTPUT)
]

# Search options. An option that is left out keeps the value of the run's configuration, section decoding.
EpochOption = Annotated[
    str | None,
    typer.Option(
        "--epoch",
        metavar="EPOCH",
        help="Weights: an epoch number, best, last or average. Default: the average if there is one, else best.",
        rich_help_panel=RUN,
    ),
]
BeamOption = Annotated[
    int | None,
    typer.Option(
        "--beam",
        metavar="N",
        help="Beam size: partial translations kept at each step. 1 is greedy search.",
        rich_help_panel=SEARCH,
    ),
]
LengthPenaltyOption = Annotated[
    float | None,
    typer.Option(
        "--length-penalty",
        metavar="X",
        help="Divide log-probabilities by ((5 + tokens) / 6)^X.",
        rich_help_panel=SEARCH,
    ),
]
CoveragePenaltyOption = Annotated[
    float | None,
    typer.Option(
        "--coverage-penalty",
        metavar="X",
        help="Weight of the penalty for source words that receive little attention.",
        rich_help_panel=SEARCH,
    ),
]
BatchSizeOption = Annotated[
    int | None,
    typer.Option("--batch-size", metavar="N", help="Sentences translated at a time.", rich_help_panel=SPEED),
]
PrecisionOption = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="TYPE",
        help="Number format: float32, bfloat16 (may be faster) or auto.",
        rich_help_panel=SPEED,
    ),
]

BackendOption = Annotated[
    str | None,
    typer.Option(
        "--backend",
        metavar="NAME",
        help="tensorflow, or ctranslate2: an export of the run, which starts at once. Default: tensorflow.",
        rich_help_panel=SPEED,
    ),
]
ExportOption = Annotated[
    str | None,
    typer.Option(
        "--export",
        metavar="NAME",
        help="Export to translate with: its name in the run, or a folder. Default with --backend ctranslate2: the one "
        "written last.",
        rich_help_panel=RUN,
    ),
]

BEAM_KEYS = ("beam_size", "length_penalty", "coverage_penalty")
SAMPLING_KEYS = ("temperature", "top_k", "top_p", "seed")


def option_name(key: str) -> str:
    """Return the option that sets a key of the section decoding."""
    return "--beam" if key == "beam_size" else "--" + key.replace("_", "-")


def translates_with_export(backend: str | None, export: str | None, precision: str | None) -> bool:
    """Return whether an export translates, and refuse options that contradict it.

    Raises:
        NmtError: naming the contradiction.
    """
    from nmt.decoding.exported import CTRANSLATE2, check_backend

    if backend is not None:
        check_backend(backend)
    if export is not None and backend not in (None, CTRANSLATE2):
        raise NmtError(
            f"--export {export} is for CTranslate2; received it with --backend {backend}. Leave one of them out."
        )
    exported = backend == CTRANSLATE2 or export is not None
    if exported and precision is not None:
        raise NmtError(
            f"--precision {precision} is for TensorFlow. An export has the number format that it was written in. Leave "
            "it out, or export with another --quantization."
        )
    return exported


def refuse_idle_beam_options(settings: dict[str, Any]) -> None:
    """Refuse options of beam search beside ``--beam 1``.

    Args:
        settings: keys of the section decoding with the values of their options, None for an option left out.

    Raises:
        NmtError: naming the first such option.
    """
    idle = next((option_name(key) for key in BEAM_KEYS[1:] if settings[key] is not None), None)
    if settings["beam_size"] == 1 and idle:
        raise NmtError(f"{idle} needs beam search; received it with --beam 1. Give a wider beam, or leave {idle} out.")
