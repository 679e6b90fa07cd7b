"""Options that several commands share: declarations and checks of contradictions."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from nmt.config.decoding import BEAM, KEYS, SAMPLING, TYPES
from nmt.errors import NmtError
from nmt.message import option_of

SEARCH = "Search; default: section decoding of the run's configuration"
_CONFIG = typer.Option("--config", "-c", metavar="FILE", help="YAML file: a path, or its name in configs/ or in nmt.")
ConfigOption = Annotated[str, _CONFIG]
NoConfigOption = Annotated[str | None, _CONFIG]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, such as training.epochs=5. Repeatable."),
]
RunOption = Annotated[str | None, typer.Option(help="Run in checkpoints/. Default: the run trained last.")]
DatasetOption = Annotated[str | None, typer.Option(help="Dataset in data/. Default: data.dataset, else the latest.")]
EpochOption = Annotated[
    str | None, typer.Option(help="Weights: N, best, last or average. Default: average, else best.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def decoding_options(*searches: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for a command with ``**decoding``: it gets an option for each key of section decoding.

    An option that is left out is None, and the key keeps the value of the run. A key that the command declares itself
    is passed over.

    Args:
        searches: kinds of search of the command, as in ``nmt.config.decoding``.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        names = [
            name for name, key in KEYS.items()
            if (not key.searches or {*key.searches} & {*searches}) and name not in signature.parameters
        ]  # fmt: skip
        options = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(name))
                   for name in names]  # fmt: skip
        command.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
        return command

    return decorate


def _option(name: str) -> Any:
    key, kind = KEYS[name], TYPES[name].__origin__
    option = typer.Option(option_of(name), help=key.help, rich_help_panel=SEARCH)
    return Annotated[(kind if kind in (int, float) else str) | None, option]


def check_decoding(decoding: dict[str, Any], *, sample: bool = False, score: bool = False, **others: Any) -> None:
    """Refuse options of a command that contradict each other, naming two of them.

    Args:
        decoding: keys of section decoding with the values of their options, None for an option left out.
        sample: whether words are drawn.
        score: whether given translations are scored.
        others: further options that need a search.
    """
    given = {name: KEYS[name].searches for name, value in decoding.items() if value is not None}  # 0 is a value
    searched = [name for name, value in others.items() if value not in (None, False, "")]
    of_beam, of_sampling = ([name for name in given if given[name] == (search,)] for search in (BEAM, SAMPLING))
    if score and (conflicts := ["sample"] * sample + searched + [name for name in given if given[name]]):
        raise NmtError(
            f"--score reads translations and searches for none; received {option_of(conflicts[0])} too. Leave one of "
            "them out."
        )
    if sample and (conflicts := [name for name in ("n_best", "glossary") if name in searched] + of_beam):
        raise NmtError(
            f"Words are drawn or searched for; received --sample and {option_of(conflicts[0])}. Leave one of them out."
        )
    if "glossary" in searched and "prefix" in searched:
        raise NmtError("--glossary begins translations itself; received --prefix too. Leave one of them out.")
    if of_sampling and not sample:
        option = option_of(of_sampling[0])
        raise NmtError(f"{option} is for sampling; received it without --sample. Add --sample, or leave it out.")
    if decoding["beam_size"] == 1 and (conflicts := [name for name in of_beam if name != "beam_size"]):
        option = option_of(conflicts[0])
        raise NmtError(
            f"{option} needs beam search; received it with --beam 1. Give a wider beam, or leave {option} out."
        )
