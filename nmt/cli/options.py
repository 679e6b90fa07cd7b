"""Options that several commands take, and what of them contradicts itself."""

from typing import Annotated, Any

import typer

from nmt.errors import NmtError

ConfigOption = Annotated[
    str, typer.Option("--config", "-c", help="YAML file: as said, else in configs/, else one that comes with nmt.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a key: section.key=value. Can be repeated.", metavar="KEY=VALUE"),
]

# Of searching for translations: what is not given is as in the section decoding of the run's configuration.
EpochOption = Annotated[
    str | None,
    typer.Option(help="A number, best, last or average; by default the average, where there is one."),
]
BeamOption = Annotated[int | None, typer.Option(help="Beginnings kept at each step; 1 is greedy search.")]
LengthPenaltyOption = Annotated[
    float | None, typer.Option(help="Of beam search: divide log-probabilities by ((5 + tokens) / 6)^this.")
]
CoveragePenaltyOption = Annotated[
    float | None, typer.Option(help="Of beam search: weight of source words that no word looked at.")
]
BatchSizeOption = Annotated[int | None, typer.Option(help="Sentences at a time.")]
PrecisionOption = Annotated[
    str | None, typer.Option(help="What is computed in: auto, float32, or bfloat16, which may be faster.")
]

BEAM = ("beam_size", "length_penalty", "coverage_penalty")


def option_name(key: str) -> str:
    """Return the option that sets a key of the section decoding."""
    return "--beam" if key == "beam_size" else "--" + key.replace("_", "-")


def refuse_idle_beam_options(figures: dict[str, Any]) -> None:
    """Refuse options of beam search beside a beam of one.

    Raises:
        NmtError: naming the first of them.
    """
    other = next((option_name(key) for key in BEAM[1:] if figures[key] is not None), None)
    if figures["beam_size"] == 1 and other:
        raise NmtError(f"{other} is about beam search; received it with --beam 1. Give a wider beam or leave it out.")
