"""Export to Bergamot: an int8 student that Firefox, translateLocally, browsers and fxtranslate run.

Shapes: D model, V vocabulary.
"""

import gzip
import math
import shutil
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import yaml

from nmt.config.transformer import TransformerConfig
from nmt.data.dataset import dataset_of_run
from nmt.data.manifest import SIDES
from nmt.data.token_arrays import Split
from nmt.errors import NmtError, NotFoundError
from nmt.export import process
from nmt.export.base import Exporter, Tags, TrainedModel
from nmt.export.bergamot_activations import ActivationRecorder
from nmt.export.bergamot_format import (
    model_file,
    padded_size,
    quantization_factor,
    shortlist_file,
    vocabulary_file,
    vocabulary_order,
)
from nmt.export.huggingface import EPSILON as EPSILON_OF_TRANSFORMERS
from nmt.export.huggingface import weight_map
from nmt.export.marian import BIAS, EPSILON, marian_names, position_base
from nmt.export.transformer_weights import NEVER, complete_weights, not_a_transformer
from nmt.export.vocabulary import check_joint_vocabulary
from nmt.message import Argument, Command, Settings
from nmt.storage.arrays import Arrays
from nmt.storage.atomic import sha256
from nmt.storage.json_file import write_json
from nmt.tokenizers.subword import SubwordTokenizer
from nmt.version import version

REQUIRED: dict[str, Any] = {
    "decoder": "ssru", "activation": "relu", "attention_scale": "head", "head_size": None,
    "query_key_norm": False, "norm_placement": "post", "layer_norm_epsilon": EPSILON, "share_decoder_norm": False,
    "encoder_residual": True, "encoder_norm": True, "encoder_feed_forward": True, "word_embedding": "trained",
    "scale_embeddings": True, "tie_embeddings": "all", "positions": "sinusoidal", "source_bos": False,
    "target_bos": False,
}  # fmt: skip
"""Values of section model that the format holds."""
WIDTHS = 64
"""``d_model`` and ``d_ff`` are multiples of this, as the kernels for products of int8 need it."""
SENTENCES = 300
"""Most validation pairs on which the inputs of matrices are measured."""
FIRST, BEST = 1_000, 100
"""Numbers of the shortlist: ids that every translation may have, and most further candidates for a source id."""
MOST_PAIRS = 200_000
"""Most training pairs from which the shortlist is made."""
FIREFOX, DEMO = "firefox", "demo"
"""Folder with the packed files, and folder with a page that translates in the browser."""
PAGE = Path(__file__).parent / "page"
"""Files of the page."""
ENGINE = Path("node_modules/@browsermt/bergamot-translator")
"""Package with the engine in WebAssembly, where npm installs it."""
ENGINE_FILES = ("translator.js", *(f"worker/{name}" for name in (
    "translator-worker.js", "bergamot-translator-worker.js", "bergamot-translator-worker.wasm",
)))  # fmt: skip
DECODING = {
    "beam-size": 1, "normalize": 1.0, "word-penalty": 0, "max-length-break": 128, "mini-batch-words": 1024,
    "workspace": 128, "max-length-factor": 2.0, "skip-cost": True, "cpu-threads": 0, "quiet": True,
    "quiet-translation": True, "gemm-precision": "int8shiftAlphaAll", "alignment": "soft",
}  # fmt: skip
"""Settings of Bergamot's translator, as its other models have them."""


class BergamotExporter(Exporter):
    """Files of Bergamot: model, vocabulary, shortlist, and the settings that translateLocally reads."""

    name: ClassVar = "bergamot"
    consumer: ClassVar = "fxtranslate"
    extra: ClassVar = "bergamot"
    modules: ClassVar = ("fxtranslate",)
    quantizations: ClassVar = ("int8",)
    default: ClassVar = "int8"
    settings: ClassVar = "`config.intgemm8bitalpha.yml`"

    def check(self, model: TrainedModel) -> None:
        """Refuse models that the format cannot hold, in terms of section model, vocabulary and language pairs."""
        section = model.config.model
        if not isinstance(section, TransformerConfig):
            raise not_a_transformer(model, self.consumer)
        wrong = {f"model.{key}": value for key, value in REQUIRED.items() if getattr(section, key) != value}
        base = position_base(section.d_model)
        if not math.isclose(section.position_base, base, rel_tol=1e-5):
            wrong["model.position_base"] = round(base, 2)
        if wrong:
            values = {key: getattr(section, key.removeprefix("model.")) for key in wrong}
            received = ", ".join(f"{key}: {str(value).lower()}" for key, value in values.items())
            raise NmtError(
                f"Run {model.run.name!r} has {received}. Bergamot's models have other values. Train a run with ",
                Settings(wrong),
                ", or with ", Argument("config", "student.yaml"), ", which has them.",
            )  # fmt: skip
        for key in ("d_model", "d_ff"):
            width = getattr(section, key)
            if width % WIDTHS:
                raise NmtError(
                    f"Run {model.run.name!r} has model.{key}: {width}. Products of int8 need a multiple of {WIDTHS}. "
                    "Train a run with another width."
                )
        if model.manifest.is_imported:
            raise NmtError(
                f"Run {model.run.name!r} was imported, so it has no sentences on which the inputs of its matrices can "
                "be measured. Train another run from its weights with ",
                Settings({"training.start_from": model.run.name}),
                ", and export that.",
            )
        if len(model.directions) > 1:
            names = [direction.name for direction in model.directions]
            raise NmtError(
                f"Run {model.run.name!r} has {len(names)} language pairs: {', '.join(names)}. A model of Bergamot has "
                "a single one. Train a run on one pair."
            )
        if model.directions[0].languages == SIDES:
            raise NmtError(
                f"The languages of run {model.run.name!r} are unknown, and the names of Bergamot's files have them. "
                "Give them with ",
                Argument("languages", "en-de"),
                ".",
            )
        if self.with_demo and not (ENGINE / ENGINE_FILES[0]).is_file():
            raise NotFoundError(
                f"There is no {ENGINE}, which is the engine of the page in the browser. Install it in this folder with "
                "npm install @browsermt/bergamot-translator, or leave ",
                Argument("demo"),
                " out.",
            )
        check_joint_vocabulary(model, self.consumer)

    def write(self, model: TrainedModel, folder: Path) -> None:
        """Write the files of Bergamot, and the packed files in ``firefox/``."""
        section = cast(TransformerConfig, model.config.model)
        tokenizer = cast(SubwordTokenizer, model.source)
        dataset = dataset_of_run(model.run.name, model.manifest)
        train = dataset.split("train")
        order = vocabulary_order(tokenizer.size, train.target.tokens)
        arrays = marian_arrays(section, model, order)
        factors = _input_factors(arrays, section, order, dataset.split("validation"))
        names = _Names(model)
        files = {
            names.model: model_file(arrays, factors, yaml.safe_dump(marian_options(section, arrays))),
            names.vocabulary: vocabulary_file(tokenizer, order),
            names.shortlist: shortlist_file(_candidates(train, order), min(FIRST, len(order)), BEST),
        }
        (folder / FIREFOX).mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
            (folder / FIREFOX / f"{name}.gz").write_bytes(gzip.compress(content, mtime=0))
        settings = {
            "relative-paths": True, "models": [names.model], "vocabs": [names.vocabulary] * 2,
            "shortlist": [names.shortlist, False], **DECODING,
        }  # fmt: skip
        (folder / "config.intgemm8bitalpha.yml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
        source, target = model.directions[0].languages
        write_json(folder / "model_info.json", {
            "modelName": f"{source}-{target} {model.run.name}", "shortName": f"{source}-{target}-{model.run.name}",
            "type": "tiny", "src": source, "trg": target, "version": 1.0, "API": 1.0,
        })  # fmt: skip
        if self.with_demo:
            _write_demo(folder, dict(zip(("model", "vocab", "lex"), files, strict=True)), source, target)

    def translate(self, model: TrainedModel, folder: Path, texts: list[str], tags: Tags = ()) -> list[str]:
        """Return the translations of fxtranslate, which decodes greedily."""
        return process.call(self, translations_by_fxtranslate, str(folder), texts)

    def usage(self, model: TrainedModel) -> str:
        """Return instructions for nmt, fxtranslate, browsers and translateLocally."""
        names = _Names(model)
        command = Command("translate", Argument("export", "FOLDER"))
        parts = [
            f'With nmt:\n\n```console\n{command} "SENTENCE"\n```',
            "With fxtranslate (`pip install fxtranslate`), which needs no other package:",
            "```python\nfrom pathlib import Path\n\nimport fxtranslate\n\n"
            f'folder = Path("FOLDER")\nmodel = (folder / "{names.model}").read_bytes()\n'
            f'vocabulary = (folder / "{names.vocabulary}").read_bytes()\n'
            "translator = fxtranslate.Translator(model, vocabulary, vocabulary)\n"
            'print(translator.translate("SENTENCE"))\n```',
            "fxtranslate takes one sentence. It writes a character that has no piece as its bytes, such as "
            '"<0xC3><0x9F>", and nmt puts these together.',
            f"Firefox has the files in `{FIREFOX}/`, packed with gzip. `@browsermt/bergamot-translator` is the engine "
            "for web pages. translateLocally reads `model_info.json` and `config.intgemm8bitalpha.yml`.",
        ]
        if self.with_demo:
            parts.append(
                f"The folder `{DEMO}/` is a page that translates in the browser. Put it on any web server; here, "
                f"`cd FOLDER/{DEMO}` and `python -m http.server` show it. After the first visit it works offline."
            )
        return "\n\n".join(parts)


def _write_demo(folder: Path, files: dict[str, str], source: str, target: str) -> None:
    """Write a page that translates in the browser, with its engine.

    Args:
        folder: folder of the export.
        files: names of the model's files, by the names of their kinds in the engine.
        source, target: codes of the languages.
    """
    demo = folder / DEMO
    shutil.copytree(PAGE, demo)
    for name in ENGINE_FILES:
        (demo / "engine" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ENGINE / name, demo / "engine" / name)
    described = {}
    for kind, name in files.items():
        shutil.copyfile(folder / name, demo / name)
        size = (demo / name).stat().st_size
        described[kind] = {"name": name, "size": size, "expectedSha256Hash": sha256(demo / name)}
    write_json(demo / "model.json", {"from": source, "to": target, "files": described})


class _Names:
    """Names of the files of a language pair, such as "ende", as Firefox has them."""

    def __init__(self, model: TrainedModel) -> None:
        """Take the exported model."""
        pair = "".join(model.directions[0].languages)
        self.model = f"model.{pair}.intgemm.alphas.bin"
        self.vocabulary = f"vocab.{pair}.spm"
        self.shortlist = f"lex.{FIRST}.{BEST}.{pair}.s2t.bin"


def marian_arrays(section: TransformerConfig, model: TrainedModel, order: list[int]) -> Arrays:
    """Return the weights by Marian's names, with Marian's channels: matrices [inputs, outputs], vectors [1, N].

    Ids that only bring the vocabulary to its size have zeros and are never generated.

    Args:
        section: section model.
        model: the exported model.
        order: our id of each id of Marian.
    """
    weights = complete_weights(section, model, 0)
    weights["embedding/matrix"] = weights["source_embedding/matrix"]
    names, width = marian_names(section), section.d_model
    stream = [*range(0, width, 2), *range(1, width, 2)]
    # With the epsilon of transformers the map scales no array.
    unscaled = section.model_copy(update={"layer_norm_epsilon": EPSILON_OF_TRANSFORMERS})
    arrays = Arrays()
    for row in weight_map(unscaled):
        if "positions" in row.name:
            continue
        array = weights[row.name]
        for axis, kind in enumerate(row.axes):
            array = array.take(stream, axis) if kind == "stream" else array
        arrays[names[row.hf_name]] = np.ascontiguousarray(array if array.ndim == 2 else array[np.newaxis])
    missing = padded_size(len(order)) - len(order)
    arrays["Wemb"] = np.pad(arrays["Wemb"][order], ((0, missing), (0, 0)))
    bias = np.pad(weights["output_layer/bias"][order], (0, missing), constant_values=NEVER)
    arrays[names[BIAS]] = bias[np.newaxis].astype(np.float32)
    return arrays


def marian_options(section: TransformerConfig, arrays: Arrays) -> dict[str, Any]:
    """Return Marian's options for a model, which its files hold."""
    size = len(arrays["Wemb"])
    return {
        "type": "transformer", "version": f"nmt {version()}", "dim-vocabs": [size, size], "dim-emb": section.d_model,
        "enc-depth": section.encoder_layers, "dec-depth": section.decoder_layers, "dec-cell": "ssru",
        "dec-cell-base-depth": 2, "dec-cell-high-depth": 1, "transformer-decoder-autoreg": "rnn",
        "transformer-dim-ffn": section.d_ff, "transformer-ffn-depth": 2, "transformer-ffn-activation": "relu",
        "transformer-heads": section.heads, "transformer-no-projection": False, "transformer-rnn-projection": False,
        "transformer-preprocess": "", "transformer-postprocess": "dan", "transformer-postprocess-emb": "d",
        "transformer-postprocess-top": "", "transformer-tied-layers": [], "transformer-pool": False,
        "transformer-train-position-embeddings": False, "transformer-guided-alignment-layer": "last",
        "tied-embeddings": False, "tied-embeddings-src": False, "tied-embeddings-all": True, "input-types": [],
        "layer-normalization": False, "right-left": False, "skip": False, "ulr": False, "lemma-dim-emb": 0,
        "output-omit-bias": False, "factors-combine": "sum", "factors-dim-emb": 0, "bert-train-type-embeddings": True,
        "bert-type-vocab-size": 2, "enc-type": "bidirectional", "enc-cell": "gru", "enc-cell-depth": 1,
        "dim-rnn": 1024,
    }  # fmt: skip


def _input_factors(
    arrays: Arrays, section: TransformerConfig, order: list[int], validation: Split
) -> dict[str, np.float32]:
    """Return the factor to int8 of each matrix's inputs, measured on validation pairs."""
    recorder = ActivationRecorder(arrays, section.heads)
    marian_ids = {ours: theirs for theirs, ours in enumerate(order)}
    for index in range(min(SENTENCES, len(validation))):
        source, target = (
            [*(marian_ids[id_] for id_ in side[index].tolist()), 0] for side in (validation.source, validation.target)
        )
        recorder.logits(source, target)
    return {name: quantization_factor(largest) for name, largest in recorder.largest().items()}


def _candidates(train: Split, order: list[int]) -> list[list[int]]:
    """Return the target ids that each source id may be translated by, besides the first ones, in Marian's ids.

    They occur together in training pairs. A target id comes before another if it is more similar to the source id, by
    the cosine of their occurrences in pairs.
    """
    marian_ids = {ours: theirs for theirs, ours in enumerate(order)}
    together: defaultdict[int, Counter[int]] = defaultdict(Counter)
    of_target = Counter[int]()
    for index in range(min(MOST_PAIRS, len(train))):
        source, target = ({marian_ids[id_] for id_ in side[index].tolist()} for side in (train.source, train.target))
        of_target.update(target)
        for id_ in source:
            together[id_].update(target)
    candidates: list[list[int]] = [[] for _ in range(padded_size(len(order)))]
    for source_id, counts in together.items():
        rare = [id_ for id_ in counts if id_ >= FIRST]
        rare.sort(key=lambda id_: (-(counts[id_] ** 2) / of_target[id_], id_))
        candidates[source_id] = rare[:BEST]
    return candidates


def translations_by_fxtranslate(folder: str, texts: Sequence[str]) -> list[str]:
    """Return translations by the files of an export."""
    from nmt.decoding.bergamot_engine import load_translator  # noqa: PLC0415 - an extra

    translate = load_translator(Path(folder))
    return [translate(text) if text.strip() else "" for text in texts]
