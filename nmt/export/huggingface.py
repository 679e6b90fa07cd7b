"""Export to transformers of Hugging Face: MarianMTModel for post-norm models, Pegasus for pre-norm models.

Subwords are those of MarianTokenizer, which runs sentencepiece itself. Both classes are the Transformer of Vaswani et
al. 2017 with these differences, each made up for:

    residual stream     Their sinusoids have all sines first, ours alternate sine and cosine. The D channels are put
                        into their order in every matrix, norm and bias that reads or writes the stream.
    layer norm          Their epsilon is 1e-5. norm(x; epsilon) = norm(c x; 1e-5) with c = sqrt(1e-5 / epsilon), so
                        the stream is c times ours: what writes it is multiplied by c, what reads it divided.
    scores              Their divisor is sqrt(head size). Any other is a factor of the query matrix.
    vocabularies        Pegasus has one size for both sides, and so has Marian in transformers 4. The smaller one is
                        filled up with ids that are never generated.

``weight_map`` has a row for each array: both names, what its axes are, and its scale.

Shapes: D model, V vocabulary.
"""

import math
import warnings
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from safetensors.numpy import save_file

from nmt.config.transformer import TransformerConfig
from nmt.data.batch_plan import length_batches
from nmt.decoding.lengths import max_lengths
from nmt.errors import NmtError, counted
from nmt.export import process
from nmt.export.base import Exporter, TrainedModel
from nmt.export.transformer_weights import BLOCKS, NEVER, complete_weights, transformer_section
from nmt.export.vocabulary import check_normalization, unique_pieces, write_sentencepiece
from nmt.message import Argument
from nmt.models.layers.positions import BASE
from nmt.runs.directory import Run
from nmt.storage.arrays import Arrays
from nmt.storage.json_file import write_json
from nmt.tokenizers.base import BOS, EOS, PAD, UNK, Tokenizer

EPSILON = 1e-5
"""Epsilon of layer normalization in Marian and Pegasus, which no configuration changes."""
SINUSOIDS = 1024
"""Positions written for models with sinusoids, as many as Marian has."""
MAX_LENGTH = 512
"""Tokens of the longest translation that transformers generates unless told otherwise."""
SPECIAL_IDS = {
    "pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS,
    "forced_eos_token_id": None,
}  # fmt: skip
MODEL_CLASSES = {"post": "MarianMTModel", "pre": "PegasusForConditionalGeneration"}
MODEL_TYPES = {"post": "marian", "pre": "pegasus"}

_EXAMPLE = """```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

folder = "."  # path of this folder
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSeq2SeqLM.from_pretrained(folder)
inputs = tokenizer(["A first sentence.", "A second sentence."], padding=True, return_tensors="pt")
ids = model.generate(**inputs, num_beams=1, max_new_tokens=100)
translations = tokenizer.batch_decode(ids, skip_special_tokens=True)
print(translations)
```"""


class HuggingFaceExporter(Exporter):
    """A model directory of transformers: safetensors, configuration, tokenizer."""

    name: ClassVar[str] = "huggingface"
    consumer: ClassVar[str] = "transformers"
    extra: ClassVar[str | None] = "huggingface"
    modules: ClassVar[tuple[str, ...]] = ("torch", "transformers")
    settings: ClassVar[str] = "`generation_config.json`"

    def check(self, model: TrainedModel) -> None:
        """Refuse all but Transformers on subwords, heads of another size and rotary positions."""
        config = transformer_section(model, self.consumer)
        if config.heads * config.size_per_head != config.d_model:
            raise NmtError(
                f"Run {model.run.name!r} has {counted(config.heads, 'attention head')} of size {config.size_per_head} "
                f"and d_model {config.d_model:,}. In {self.consumer}, heads x head_size is d_model. Export it with ",
                Argument("to", "ctranslate2"),
                " or saved-model, or train without model.head_size.",
            )
        if config.positions == "rotary":
            raise NmtError(
                f"Run {model.run.name!r} has model.positions: rotary. {self.consumer}'s Marian adds position vectors "
                "to the words. Export it with ",
                Argument("to", "ctranslate2"),
                " or saved-model, or train with model.positions: sinusoidal.",
            )
        for tokenizer in (model.source, model.target):
            check_normalization(tokenizer, self.consumer)

    def positions(self, model: TrainedModel) -> int:
        """Return the most tokens of a sentence that the export reads or writes."""
        config = transformer_section(model, self.consumer)
        return config.max_positions if config.positions == "learned" else SINUSOIDS

    def write(self, model: TrainedModel, folder: Path) -> None:
        """Write model.safetensors, config.json, generation_config.json and the files of the tokenizer."""
        config, positions = transformer_section(model, self.consumer), self.positions(model)
        size = max(model.source.size, model.target.size)
        weights = exported_weights(config, complete_weights(config, model, positions), size)
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        decoding = model.config.decoding
        described = {
            "architectures": [MODEL_CLASSES[config.norm_placement]], "model_type": MODEL_TYPES[config.norm_placement],
            "is_encoder_decoder": True, "dtype": "float32", "d_model": config.d_model,
            "encoder_layers": config.encoder_layers, "decoder_layers": config.decoder_layers,
            "encoder_attention_heads": config.heads, "decoder_attention_heads": config.heads,
            "encoder_ffn_dim": config.d_ff, "decoder_ffn_dim": config.d_ff, "activation_function": config.activation,
            "dropout": config.dropout, "attention_dropout": config.attention_dropout,
            "activation_dropout": config.feed_forward_dropout, "scale_embedding": config.scale_embeddings,
            "max_position_embeddings": positions, "use_cache": True,
        }  # fmt: skip
        write_json(folder / "config.json", described | SPECIAL_IDS | embedding_keys(config, size))
        search = {"suppress_tokens": [PAD, BOS], "do_sample": False, "max_new_tokens": min(MAX_LENGTH, positions)}
        search |= decoding.arguments(self.name, decoding.search())
        write_json(folder / "generation_config.json", SPECIAL_IDS | search)
        write_tokenizer(model.source, model.target, folder, bos=config.reads_bos, max_length=positions)

    def translate(self, model: TrainedModel, folder: Path, texts: list[str]) -> list[str]:
        """Return greedy translations by ``generate`` of transformers."""
        arguments = str(folder), str(model.run.folder), str(model.epoch), texts, self.positions(model)
        return process.call(self, translations_by_transformers, *arguments)

    def usage(self, model: TrainedModel) -> str:
        """Return how to use the export with transformers, and where its translations may differ."""
        config = transformer_section(model, self.consumer)
        lines = [
            "`generate` has one limit for all sentences, `nmt translate` one for each.",
            "Beam search of transformers divides the score of a translation of T tokens by T^`length_penalty`, nmt by "
            "((5 + T) / 6)^`length_penalty`. The best translations of a beam can differ.",
            "`MarianTokenizer` takes `>>` to `<<` at the beginning of a sentence for a language code.",
        ]
        if config.norm_placement == "pre" and config.tie_embeddings != "all":
            lines.append("Transformers 5 is needed: Pegasus of transformers 4 takes one embedding for both sides.")
        else:
            lines.append("`optimum-cli export onnx` of optimum-onnx 0.1, which needs transformers 4, makes it ONNX.")
        if config.norm_placement == "post" and not keeps_positions(config):
            lines.append(
                "`save_pretrained` of `MarianMTModel` leaves out the positions. Copy both `embed_positions.weight` "
                "from `model.safetensors` into a model saved by transformers."
            )
        head = (
            f"A `{MODEL_CLASSES[config.norm_placement]}` of transformers 5 with its tokenizer: "
            "`pip install torch transformers sentencepiece`."
        )
        return "\n\n".join([head, _EXAMPLE, "\n".join(f"- {line}" for line in lines)])


def load(folder: Path) -> tuple[Any, Any]:
    """Return tokenizer and model of an export, as transformers loads them: float32, without dropout.

    Only a process without TensorFlow may call it.
    """
    import torch  # noqa: PLC0415 - an optional extra
    import transformers  # noqa: PLC0415 - an optional extra

    transformers.utils.logging.disable_progress_bar()
    options = {"local_files_only": True, "trust_remote_code": False, "dtype": torch.float32}
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, **options)
    return load_tokenizer(folder), model.eval()


def load_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of an export. Only a process without TensorFlow may call it."""
    import transformers  # noqa: PLC0415 - an optional extra

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*sacremoses")  # which no export needs
        return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def translations_by_transformers(folder: str, run: str, epoch: str, texts: list[str], positions: int) -> list[str]:
    """Return greedy translations by the export of a run in a folder, of at most ``positions`` tokens each."""
    tokenizer, consumer = load(Path(folder))
    return translations_of(tokenizer, consumer, TrainedModel.of(Run(Path(run)), epoch), texts, positions)


def translations_of(tokenizer: Any, consumer: Any, model: TrainedModel, texts: list[str], positions: int) -> list[str]:
    """Return greedy translations by a tokenizer and a model of transformers, of at most ``positions`` tokens each."""
    encoded = [[id_ for id_ in ids if id_ not in (BOS, EOS)] for ids in tokenizer(texts)["input_ids"]]
    translations = [""] * len(texts)
    for batch in length_batches([len(ids) for ids in encoded], model.config.decoding.batch_size):
        inputs = tokenizer([texts[index] for index in batch], padding=True, return_tensors="pt")
        lengths = np.asarray(inputs["attention_mask"]).sum(axis=1)
        limits = np.minimum(max_lengths(model.config, lengths), positions).tolist()
        found = consumer.generate(**inputs, num_beams=1, do_sample=False, max_new_tokens=max(limits))
        for index, row, limit in zip(batch, found.tolist(), limits, strict=True):
            translations[index] = tokenizer.decode(row[1 : 1 + limit], skip_special_tokens=True)
    return translations


def write_tokenizer(source: Tokenizer, target: Tokenizer, folder: Path, *, bos: bool, max_length: int) -> None:
    """Write the files of a MarianTokenizer.

    Args:
        source: tokenizer of the source side, as ``has_sentencepiece`` asks.
        target: tokenizer of the target side.
        folder: folder of the export.
        bos: whether the encoder reads bos before a sentence.
        max_length: tokens of the longest sentence that the model reads, special ids included.
    """
    write_sentencepiece(source, target, folder)
    pieces = unique_pieces(source, target)
    special, ids = pieces[0], [{piece: id_ for id_, piece in enumerate(side)} for side in pieces]
    write_json(folder / "vocab.json", ids[0])
    if ids[0] != ids[1]:
        write_json(folder / "target_vocab.json", ids[1])
    settings = {
        **{f"{name}_token": special[id_] for name, id_ in (("pad", PAD), ("bos", BOS), ("eos", EOS), ("unk", UNK))},
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": ids[0] != ids[1],
        "sp_model_kwargs": {"add_bos": True} if bos else {},  # MarianTokenizer adds eos alone
        "model_max_length": max_length,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # "</s>" in a text is text
    }
    write_json(folder / "tokenizer_config.json", settings)


def keeps_positions(config: TransformerConfig) -> bool:
    """Return whether the positions of the export are the sinusoids that its class computes by itself.

    MarianMTModel reads positions from the file and never saves them again. A copy that transformers saves keeps its
    meaning only with the class's own sinusoids, so these stay as they are where epsilon is small. Words and positions
    then have c = 1, and the first norm of either side differs from ours by a factor of at most 1 + 5e-6 / variance.
    """
    theirs = config.positions == "sinusoidal" and config.position_base == BASE
    return config.norm_placement == "post" and theirs and config.layer_norm_epsilon <= 2 * EPSILON


class Row(NamedTuple):
    """An array of the model, here and there. Kernels of linear layers are transposed there."""

    ours: str
    theirs: str
    axes: tuple[str, ...]
    """What each of our axes is: "stream", channels of the residual stream; "ids"; "", any other, which is the same here
    and there."""
    scale: float
    """Their values by ours."""


def weight_map(config: TransformerConfig) -> list[Row]:
    """Return the rows of all arrays but ``final_logits_bias``."""
    pre, shared = config.norm_placement == "pre", config.tie_embeddings == "all"
    scale = math.sqrt(EPSILON / config.layer_norm_epsilon)  # c of the residual stream
    words = 1.0 if keeps_positions(config) else scale  # c of words and positions
    rows: list[Row] = []

    def linear(ours: str, theirs: str, inner: str, reads: float = 0, writes: float = 0, factor: float = 1) -> None:
        """Add a layer from the stream at a scale to an inner width, or (``writes``) from there to the stream."""
        rows.append(
            Row(f"{ours}/kernel", f"{theirs}.weight", ("stream", inner), factor / reads) if reads
            else Row(f"{ours}/kernel", f"{theirs}.weight", (inner, "stream"), writes)
        )  # fmt: skip
        rows.append(Row(f"{ours}/bias", f"{theirs}.bias", (inner if reads else "stream",), writes or factor))

    def norm(ours: str, theirs: str, scale: float) -> None:
        """Add a norm whose output has a scale."""
        rows.append(Row(f"{ours}/gamma", f"{theirs}.weight", ("stream",), scale))
        rows.append(Row(f"{ours}/beta", f"{theirs}.bias", ("stream",), scale))

    if shared or pre:
        rows.append(Row("source_embedding/matrix", "model.shared.weight", ("ids", "stream"), words))
    for stack, side, layers in (
        ("encoder", "source", config.encoder_layers), ("decoder", "target", config.decoder_layers)
    ):  # fmt: skip
        if not shared:
            rows.append(Row(f"{side}_embedding/matrix", f"model.{stack}.embed_tokens.weight", ("ids", "stream"), words))
        rows.append(Row(f"{side}_positions/matrix", f"model.{stack}.embed_positions.weight", ("", "stream"), words))
        # An output layer tied to the words, which are scaled, takes the scale back in the last norm.
        last = 1 / words if stack == "decoder" and config.tie_embeddings != "none" else 1.0
        given = words
        for number in range(1, layers + 1):
            ours, theirs = f"{stack}_{number}", f"model.{stack}.layers.{number - 1}"
            for block, name in zip(BLOCKS[stack], ("self_attn", "encoder_attn"), strict=False):
                reads = 1.0 if pre else given
                memory = 1.0 if name == "encoder_attn" else reads
                linear(f"{ours}/{block}/query", f"{theirs}.{name}.q_proj", "", reads, factor=_query(config))
                linear(f"{ours}/{block}/key", f"{theirs}.{name}.k_proj", "", memory)
                linear(f"{ours}/{block}/value", f"{theirs}.{name}.v_proj", "", memory)
                linear(f"{ours}/{block}/output", f"{theirs}.{name}.out_proj", "", writes=given)
                norm(f"{ours}/{block}_sublayer/norm", f"{theirs}.{name}_layer_norm", 1.0 if pre else scale)
                given = scale
            linear(f"{ours}/feed_forward/inner", f"{theirs}.fc1", "", 1.0 if pre else scale)
            linear(f"{ours}/feed_forward/outer", f"{theirs}.fc2", "", writes=scale)
            normed = 1.0 if pre else last if number == layers else scale
            norm(f"{ours}/feed_forward_sublayer/norm", f"{theirs}.final_layer_norm", normed)
        if pre:
            norm(f"{stack}_norm", f"model.{stack}.layer_norm", last)
    if config.tie_embeddings == "none":
        rows.append(Row("output_layer/kernel", "lm_head.weight", ("stream", "ids"), 1.0))
    elif not _ties_output(config):
        rows.append(Row("target_embedding/matrix", "lm_head.weight", ("ids", "stream"), words))
    return rows


def exported_weights(config: TransformerConfig, arrays: Arrays, size: int) -> Arrays:
    """Return the arrays of ``complete_weights`` by the names of transformers, float32; V of both sides is ``size``."""
    found = {row.theirs: _converted(row, arrays[row.ours], config, size) for row in weight_map(config)}
    bias = arrays["output_layer/bias"]
    return found | {"final_logits_bias": np.pad(bias, (0, size - len(bias)), constant_values=NEVER)[np.newaxis]}


def embedding_keys(config: TransformerConfig, size: int) -> dict[str, Any]:
    """Return the keys of config.json about embeddings."""
    keys = {"vocab_size": size, "tie_word_embeddings": _ties_output(config)}
    both = {"decoder_vocab_size": size, "share_encoder_decoder_embeddings": config.tie_embeddings == "all"}
    return keys | (both if config.norm_placement == "post" else {})


def _ties_output(config: TransformerConfig) -> bool:
    """Return whether the output layer is the target embedding. Pegasus ties all three matrices or none."""
    return config.tie_embeddings == "all" or (config.norm_placement == "post" and config.tie_embeddings == "output")


def _query(config: TransformerConfig) -> float:
    """Return the factor of queries, whose scores have the divisor sqrt(D) there with attention_scale: projection."""
    return 1.0 if config.attention_scale == "head" else 1 / math.sqrt(config.heads)


def _converted(row: Row, array: np.ndarray, config: TransformerConfig, size: int) -> np.ndarray:
    array, width = row.scale * array, config.d_model
    for axis, kind in enumerate(row.axes):
        if kind == "stream":
            array = array.take([*range(0, width, 2), *range(1, width, 2)], axis)
        elif kind:  # zeros for ids that one side lacks
            array = np.pad(
                array, [(0, size - length if number == axis else 0) for number, length in enumerate(array.shape)]
            )
    return np.ascontiguousarray(array.T if row.ours.endswith("/kernel") else array, np.float32)
