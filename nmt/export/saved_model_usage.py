"""How to use a SavedModel: signatures, a script with TensorFlow alone, a request to TensorFlow Serving."""

import json
from importlib.metadata import version

from nmt.config.schema import Config
from nmt.export.base import TrainedModel
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, PAD, UNK
from nmt.tokenizers.subword import SubwordTokenizer
from nmt.tokenizers.word import WordTokenizer

NORMALIZE = {
    "none": 'return " ".join(text.split())',
    "nfkc": 'return " ".join(unicodedata.normalize("NFKC", text).split())',
    "ascii-words": (
        'text = unicodedata.normalize("NFD", " ".join(text.split()))\n'
        '    text = re.sub("[^a-z0-9 ]", "", text.encode("ascii", "ignore").decode("ascii").lower())\n'
        '    return " ".join(word for word in text.split() if word.isalpha())'
    ),
}
"""Body of a Python function that normalizes a text, by the name of the normalization."""

_TEXT_SCRIPT = """\
import sys

import tensorflow as tf

translate = tf.saved_model.load("1").signatures["translate"]
sentences = [line.rstrip("\\n") for line in sys.stdin]
found = translate(source_texts=tf.constant(sentences, tf.string))
for text in found["target_texts"].numpy():
    print(text.decode("utf-8"))
"""
_IDS_SCRIPT = """\
{imports}


def normalize(text):
    {normalize}


{tokenizers}


translate = tf.saved_model.load("1").signatures["greedy"]
sentences = [line.rstrip("\\n") for line in sys.stdin]
rows = tf.ragged.constant([encode(normalize(text)) for text in sentences], tf.int32, ragged_rank=1)
found = translate(source_ids=rows.to_tensor())
for ids, length in zip(found["target_ids"].numpy().tolist(), found["target_lengths"].numpy()):
    print(decode(ids[:length]))
"""
_SUBWORDS = """\
source = sentencepiece.SentencePieceProcessor(model_file="source.model")
target = sentencepiece.SentencePieceProcessor(model_file="target.model")


def encode(text):
    return source.encode(text.replace("\\u2581", "_"))


def decode(ids):
    return target.decode(ids)"""
_WORDS = """\
def words_of(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["words"]


source_ids = {{word: id_ for id_, word in enumerate(words_of("source.json"), start={first})}}
target_words = ["", "<unk>", "", "", *words_of("target.json")]


def encode(text):
    return [source_ids.get(word, {unk}) for word in {split}]


def decode(ids):
    return "{separator}".join(target_words[id_] for id_ in ids)"""


def usage(model: TrainedModel, beams: int, *, text: bool) -> str:
    """Return the signatures, a script and a request, in Markdown.

    Args:
        model: exported model.
        beams: K of beam search.
        text: whether signatures from text to text exist.
    """
    subwords = isinstance(model.source, SubwordTokenizer)
    packages = "tensorflow sentencepiece" if subwords else "tensorflow"
    return "\n\n".join([
        "The folder `1` holds a TensorFlow SavedModel in float32, version 1 for TensorFlow Serving. TensorFlow loads "
        f"it without nmt. TensorFlow {version('tensorflow')} wrote it; later versions 2.x read it too. A warning of "
        "unsaved custom gradients while loading concerns training alone.",
        _signatures(model.config, beams, text=text),
        _notes(model.config),
        f"A script translates the lines of its standard input. It runs in this folder and needs the "
        f"{'packages' if subwords else 'package'} of `pip install {packages}`.",
        f"```python\n{_TEXT_SCRIPT if text else _ids_script(model)}```",
        "TensorFlow Serving takes this folder as the base path of the model:",
        f"```console\n{_serving(model.run.name, text=text)}\n```",
        "The answer is a JSON object; its key `outputs` holds the outputs of the signature by name.",
    ])  # fmt: skip


def _signatures(config: Config, beams: int, *, text: bool) -> str:
    kind = f"beam search, {beams} beams, length penalty {config.decoding.length_penalty:g}"
    if config.decoding.coverage_penalty:
        kind += f", coverage penalty {config.decoding.coverage_penalty:g}"
    ids, texts = "`source_ids` int32 [B, S]", "`source_texts` string [B]"
    rows = [("`greedy`, `serving_default`", "greedy search", ids, _outputs("B")), ("`beam`", kind, ids, _outputs("BK"))]
    if text:
        outputs = "`target_texts` string [{0}], `scores` float32 [{0}]"
        rows += [
            ("`translate`", "greedy search", texts, outputs.format("B")),
            ("`translate_beam`", kind, texts, outputs.format("B, K")),
        ]
    lines = ["| signature | search | input | outputs |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _outputs(shape: str) -> str:
    size = ", ".join(shape)
    return f"`target_ids` int32 [{size}, T], `target_lengths` int32 [{size}], `scores` float32 [{size}]"


def _notes(config: Config) -> str:
    settings, limits = config.decoding, config.model.limits
    read = "bos and eos included" if config.model.reads_bos else "eos included"
    notes = [
        "B sentences, S and T ids of the longest, K beams. Any B and S work, B = 0 and empty sentences too.",
        f"Source ids are those of the tokenizer, padded with {PAD}. They may include bos ({BOS}) and eos ({EOS}).",
        f"Target ids end with eos ({EOS}) where the model ended the translation, rather than the limit on its length; "
        f"{PAD} fills the rest. Target lengths count the ids before eos.",
        f"A translation has at most {settings.max_length_ratio:g} x source ids ({read}) + {settings.max_length_extra} "
        f"ids{'' if limits.target is None else f', and at most {limits.target}'}.",
        "Scores are natural log-probabilities, eos included. Beam search returns the K best hypotheses, the best "
        "first, with penalties in the scores (Wu et al. 2016, equation 14). A place without a hypothesis has the score "
        "-infinity.",
    ]
    if limits.source is not None:
        most = limits.source - 1 - int(config.model.reads_bos)
        notes.append(
            f"A sentence of more than {most} ids is an error; the model reads at most {limits.source}, {read}."
        )
    return "\n".join(f"- {note}" for note in notes)


def _ids_script(model: TrainedModel) -> str:
    source, target = model.source, model.target
    if isinstance(source, WordTokenizer) and isinstance(target, WordTokenizer):
        standard, packages = {"json", "sys"}, {"tensorflow as tf"}
        split = "text.split()" if source.separator else "text"
        tokenizers = _WORDS.format(first=FIRST_WORD, unk=UNK, split=split, separator=target.separator)
        normalization = source.normalization
    elif isinstance(source, SubwordTokenizer) and isinstance(target, SubwordTokenizer):
        standard, packages = {"sys"}, {"sentencepiece", "tensorflow as tf"}
        tokenizers, normalization = _SUBWORDS, source.normalization
    else:
        raise TypeError(f"tokenizers {type(source).__name__} and {type(target).__name__} of one model")
    normalize = NORMALIZE[normalization]
    standard |= {module for module in ("re", "unicodedata") if f"{module}." in normalize}
    imports = "\n\n".join("\n".join(f"import {name}" for name in sorted(names)) for names in (standard, packages))
    return _IDS_SCRIPT.format(imports=imports, normalize=normalize, tokenizers=tokenizers)


def _serving(name: str, *, text: bool) -> str:
    inputs = {"source_texts": ["first sentence", "second"]} if text else {"source_ids": [[6, 5, 4], [4, 0, 0]]}
    request = json.dumps({"signature_name": "translate" if text else "greedy", "inputs": inputs})
    return (
        f'docker run --rm -p 8501:8501 -v "$PWD:/models/{name}" -e MODEL_NAME={name} tensorflow/serving\n'
        f"curl http://localhost:8501/v1/models/{name}:predict -d '{request}'"
    )
