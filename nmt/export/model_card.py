"""Model cards (Mitchell et al. 2019): an exported model, its training data, its scores, its use."""

import yaml

from nmt.config.schema import DecodingConfig
from nmt.evaluation.scoring import Scores
from nmt.export.base import Exporter, TrainedModel
from nmt.export.verification import OURS, Comparison
from nmt.models.registry import count_weights
from nmt.version import version

UNKNOWN_LICENCE = "not stated"


def model_card(
    exporter: Exporter, model: TrainedModel, comparison: Comparison, test: Scores | None, licence: str | None
) -> str:
    """Return the card in Markdown, with a header of YAML as model hubs read it.

    Args:
        exporter: the export format.
        model: what was exported.
        comparison: its comparison with our own translations of the validation split.
        test: scores of the export on the test split; None if it was not translated.
        licence: licence of the model; None: not stated.
    """
    languages, manifest = model.manifest.languages, model.manifest
    vocabulary = {"source": model.source.size, "target": model.target.size}
    weights = count_weights(model.config.model, vocabulary)
    epoch = f"epoch {model.epoch}" if isinstance(model.epoch, int) else model.epoch
    most = exporter.positions(model)
    longest = "any" if most is None else f"{most:,} tokens, bos and eos included"
    known = [code for side, code in languages.items() if code != side]
    header = {
        "tags": ["translation"],
        **({"language": known} if known else {}),
        "license": "other" if licence is None else licence,
        "pipeline_tag": "translation",
    }
    parts = [
        f"---\n{yaml.safe_dump(header, sort_keys=False)}---",
        f"# {languages['source']} to {languages['target']}: run {model.run.name}",
        f"A model of nmt {version()}, exported for {exporter.consumer} in {exporter.quantization}.",
        "## Model",
        "\n".join(
            [
                "| what | value |",
                "|---|---|",
                f"| languages | {languages['source']} to {languages['target']} |",
                f"| architecture | {model.config.model.description} |",
                f"| weights | {weights:,}, of {epoch} |",
                f"| ids | {vocabulary['source']:,} source and {vocabulary['target']:,} target {model.source.unit} |",
                f"| normalization of text | {manifest.settings.normalization} |",
                f"| longest sentence | {longest} |",
                f"| licence | {_cell(licence or UNKNOWN_LICENCE)} |",
            ]
        ),
        "## Training data",
        f"{manifest.splits['train'].pairs:,} sentence pairs of dataset {manifest.settings.dataset}, from these files:",
        "\n".join(
            [
                "| file | bytes | for | SHA-256 |",
                "|---|---|---|---|",
                *(
                    f"| {_cell(file.name)} | {file.bytes:,} | {file.role} | `{file.sha256}` |"
                    for file in [manifest.corpus, *manifest.more_files]
                ),
            ]
        ),
        "## Scores",
        "Greedy search. Translations are detokenized, scores are sacrebleu's.",
        _scores(comparison.scores, test, exporter.consumer),
        f"Of the {comparison.sentences:,} validation sentences, {exporter.consumer} translates "
        f"{comparison.sentences - comparison.different:,} to the same text as nmt in float32.",
        "## Use",
        exporter.usage(model),
        settings_of(exporter, model.config.decoding),
    ]
    return "\n\n".join(parts) + "\n"


def settings_of(exporter: Exporter, decoding: DecodingConfig) -> str:
    """Return which keys of section decoding the export has, and which its consumer is not told."""
    carried = exporter.carried(decoding)
    has = [f"{key} as `{name}`" for key, name in carried.items()]
    others = [f"{key} {value}" for key, value in decoding.model_dump().items() if key not in carried]
    return (
        f"Of section decoding of the run, {exporter.settings} has {', '.join(has) or 'nothing'}. {exporter.consumer} "
        f"is not told {', '.join(others)}."
    )


def _scores(validation: Scores, test: Scores | None, consumer: str) -> str:
    rows = ["| split | sentences | translated by | BLEU | chrF |", "|---|---|---|---|---|"]
    splits = [("validation", validation, [OURS, consumer]), *([("test", test, [consumer])] if test else [])]
    for split, scores, systems in splits:
        for system in systems:
            found = scores.systems[system]
            values = " | ".join(f"{found[metric].score:.1f}" for metric in ("BLEU", "chrF2"))
            rows.append(f"| {split} | {scores.sentences:,} | {system} | {values} |")
    signatures = [f"- {name}: `{signature}`" for name, signature in validation.signatures.items()]
    return "\n".join([*rows, "", *signatures])


def _cell(text: str) -> str:
    """Return text for a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())
