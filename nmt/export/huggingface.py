"""Export to transformers of Hugging Face: MarianMTModel for post-norm models, Pegasus for pre-norm models.

MarianTokenizer makes the subwords, since it runs sentencepiece itself. Both classes are the Transformer of Vaswani et
al. 2017 with these differences, for which the export compensates:

    residual stream     Their sinusoids have all sines first, nmt's alternate sine and cosine. The export puts the D
                        channels into their order in every matrix, norm and bias that reads or writes the stream.
    layer norm          Their epsilon is 1e-5. norm(x; epsilon) = norm(c x; 1e-5) with c = sqrt(1e-5 / epsilon), so
                        their stream is c times nmt's. Weights that write the stream are multiplied by c, and weights
                        that read it are divided by c.
    scores              Their divisor is sqrt(head size). For another divisor the query matrix gets a factor.
    vocabularies        Pegasus has one size for both sides, and so has Marian in transformers 4. The smaller
                        vocabulary is filled up with ids that are never generated.

``weight_map`` has a row for each array, with both names, the kinds of its axes, and its scale.

Shapes: D model, V vocabulary.
"""

import math
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from safetensors.numpy import save_file
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from nmt.config.transformer import TransformerConfig
from nmt.data.batch_plan import length_batches
from nmt.decoding.lengths import max_lengths
from nmt.errors import NmtError, counted
from nmt.export import process
from nmt.export.base import Exporter, Tags, TrainedModel
from nmt.export.transformer_weights import BLOCKS, NEVER, complete_weights, transformer_section
from nmt.export.vocabulary import check_normalization, unique_pieces, write_sentencepiece
from nmt.message import Argument
from nmt.models.layers.positions import BASE
from nmt.runs.directory import Run
from nmt.storage.arrays import Arrays
from nmt.storage.json_file import write_json
from nmt.tokenizers.base import BOS, EOS, PAD, SPACE_MARK, UNK, Tokenizer

EPSILON = 1e-5
"""Epsilon of layer normalization in Marian and Pegasus. No key of config.json changes it."""
SINUSOIDS = 1024
"""Number of positions written for models with sinusoids, as in Marian's own models."""
MAX_LENGTH = 512
"""Most tokens of a translation by default, in ``generation_config.json``."""
SPECIAL_IDS = {
    "pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS,
    "forced_eos_token_id": None,
}  # fmt: skip
MODEL_CLASSES = {"post": "MarianMTModel", "pre": "PegasusForConditionalGeneration"}
MODEL_TYPES = {"post": "marian", "pre": "pegasus"}
TAG_PIECE = re.compile(">>[A-Za-z0-9][A-Za-z0-9_-]{0,39}<<")
"""Code of a target language, such as ">>deu<<"."""

_EXAMPLE = """```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

folder = "."  # path of this folder
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSeq2SeqLM.from_pretrained(folder)
inputs = tokenizer(["TAGSA first sentence.", "TAGSA second sentence."], padding=True, return_tensors="pt")
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
        """Refuse other models than Transformers on subwords, head_size, rotary positions, and unsupported keys."""
        config = transformer_section(model, self.consumer)
        if config.heads * config.size_per_head != config.d_model:
            raise NmtError(
                f"Run {model.run.name!r} has {counted(config.heads, 'attention head')} of size {config.size_per_head} "
                f"and d_model {config.d_model:,}. In {self.consumer}, heads x head_size is d_model. Export it with ",
                Argument("to", "ctranslate2"),
                " or saved-model, or train without model.head_size.",
            )
        has, instead = [], []
        if config.positions == "rotary":
            has.append("model.positions: rotary")
            instead.append("model.positions: sinusoidal")
        if config.query_key_norm:
            has.append("model.query_key_norm: true")
            instead.append("model.query_key_norm: false")
        if has:
            raise NmtError(
                f"Run {model.run.name!r} has {' and '.join(has)}. {self.consumer}'s Marian adds position vectors to "
                "the words, and does not normalize queries and keys. Export it with ",
                Argument("to", "ctranslate2"),
                f" or saved-model, or train with {' and '.join(instead)}.",
            )
        for tokenizer in (model.source, model.target):
            check_normalization(tokenizer, self.consumer)

    def positions(self, model: TrainedModel) -> int:
        """Return the most tokens of a sentence or translation, special ids included."""
        config = transformer_section(model, self.consumer)
        return config.max_positions if config.positions == "learned" else SINUSOIDS

    def write(self, model: TrainedModel, folder: Path) -> None:
        """Write model.safetensors, config.json, generation_config.json and the files of the tokenizer."""
        config, positions = transformer_section(model, self.consumer), self.positions(model)
        size = max(model.source.size, model.target.size)
        weights = exported_weights(config, complete_weights(config, model, positions), size)
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        decoding = model.config.decoding
        model_keys = {
            "architectures": [MODEL_CLASSES[config.norm_placement]], "model_type": MODEL_TYPES[config.norm_placement],
            "is_encoder_decoder": True, "dtype": "float32", "d_model": config.d_model,
            "encoder_layers": config.encoder_layers, "decoder_layers": config.decoder_layers,
            "encoder_attention_heads": config.heads, "decoder_attention_heads": config.heads,
            "encoder_ffn_dim": config.d_ff, "decoder_ffn_dim": config.d_ff, "activation_function": config.activation,
            "dropout": config.dropout, "attention_dropout": config.attention_dropout,
            "activation_dropout": config.feed_forward_dropout, "scale_embedding": config.scale_embeddings,
            "max_position_embeddings": positions, "use_cache": True,
        }  # fmt: skip
        write_json(folder / "config.json", model_keys | SPECIAL_IDS | embedding_keys(config, size))
        search = {"suppress_tokens": [PAD, BOS], "do_sample": False, "max_new_tokens": min(MAX_LENGTH, positions)}
        search |= decoding.arguments(self.name, decoding.search())
        write_json(folder / "generation_config.json", SPECIAL_IDS | search)
        write_tokenizer(model.source, model.target, folder, bos=config.reads_bos, max_length=positions)

    def translate(self, model: TrainedModel, folder: Path, texts: list[str], tags: Tags = ()) -> list[str]:
        """Return greedy translations by ``generate`` of transformers."""
        if tags:
            before = [self.written_tags(model, own) for own in tags]
            texts = [f"{own} {text}" if own else text for own, text in zip(before, texts, strict=True)]
        arguments = str(folder), str(model.run.folder), str(model.epoch), texts, self.positions(model)
        return process.call(self, translations_by_transformers, *arguments)

    def written_tags(self, model: TrainedModel, tags: Sequence[int]) -> str:
        """Return tags as text, such as "<2gn>", or ">>gn<<" of an imported model."""
        pieces, _ = _pieces(model.source, model.target)
        return " ".join(pieces[tag].removeprefix(SPACE_MARK) for tag in tags)

    def usage(self, model: TrainedModel) -> str:
        """Return how to use the export with transformers, and where its translations may differ."""
        config = transformer_section(model, self.consumer)
        lines = [
            "`generate` has one length limit for a whole batch, `nmt translate` has a limit for each sentence.",
            "Beam search of transformers divides the score of a translation of T tokens by T^`length_penalty`, nmt by "
            "((5 + T) / 6)^`length_penalty`. So their best translations can differ.",
            "`MarianTokenizer` reads text from `>>` to `<<` at the beginning of a sentence as a language code.",
        ]
        if config.norm_placement == "pre" and config.tie_embeddings != "all":
            lines.append("The model needs transformers 5: Pegasus of transformers 4 has one embedding for both sides.")
        else:
            lines.append(
                "`optimum-cli export onnx` of optimum-onnx 0.1 converts the model to ONNX. It needs transformers 4."
            )
        if config.norm_placement == "post" and not keeps_positions(config):
            lines.append(
                "`save_pretrained` of `MarianMTModel` leaves out the positions. Copy both `embed_positions.weight` "
                "from `model.safetensors` into a model saved by transformers."
            )
        head = (
            f"A `{MODEL_CLASSES[config.norm_placement]}` of transformers 5 with its tokenizer: "
            "`pip install torch transformers sentencepiece`."
        )
        tags = self.written_tags(model, model.tags(model.directions[0]))
        example = _EXAMPLE.replace("TAGS", f"{tags} " if tags else "")
        return "\n\n".join([head, example, "\n".join(f"- {line}" for line in lines)])


def load(folder: Path) -> tuple[Any, Any]:
    """Return tokenizer and model of an export, loaded by transformers in float32 and without dropout.

    Only a process without TensorFlow may call this function.
    """
    import torch  # noqa: PLC0415 - an optional extra
    import transformers  # noqa: PLC0415 - an optional extra

    transformers.utils.logging.disable_progress_bar()
    options = {"local_files_only": True, "trust_remote_code": False, "dtype": torch.float32}
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, **options)
    return load_tokenizer(folder), model.eval()


def load_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of an export. Only a process without TensorFlow may call this function."""
    import transformers  # noqa: PLC0415 - an optional extra

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*sacremoses")  # no export needs it
        return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def translations_by_transformers(folder: str, run: str, epoch: str, texts: list[str], positions: int) -> list[str]:
    """Return greedy translations by an export, at most ``positions`` tokens long.

    Args:
        folder: folder of the export.
        run: folder of the run that was exported.
        epoch: weights of the run that were exported.
        texts: raw sentences.
        positions: most tokens of a translation.
    """
    tokenizer, consumer = load(Path(folder))
    return translations_of(tokenizer, consumer, TrainedModel.of(Run(Path(run)), epoch), texts, positions)


def translations_of(tokenizer: Any, consumer: Any, model: TrainedModel, texts: list[str], positions: int) -> list[str]:
    """Return greedy translations by a tokenizer and a model of transformers, at most ``positions`` tokens long.

    ``max_lengths`` of the run limits the tokens of each translation too.
    """
    encoded = [[id_ for id_ in ids if id_ not in (BOS, EOS)] for ids in tokenizer(texts)["input_ids"]]
    translations = [""] * len(texts)
    for batch in length_batches([len(ids) for ids in encoded], model.config.decoding.batch_size):
        inputs = tokenizer([texts[index] for index in batch], padding=True, return_tensors="pt")
        lengths = np.asarray(inputs["attention_mask"]).sum(axis=1)
        limits = np.minimum(max_lengths(model.config, lengths), positions).tolist()
        outputs = consumer.generate(**inputs, num_beams=1, do_sample=False, max_new_tokens=max(limits))
        for index, row, limit in zip(batch, outputs.tolist(), limits, strict=True):
            translations[index] = tokenizer.decode(row[1 : 1 + limit], skip_special_tokens=True)
    return translations


def write_tokenizer(source: Tokenizer, target: Tokenizer, folder: Path, *, bos: bool, max_length: int) -> None:
    """Write the files of a MarianTokenizer.

    Args:
        source: tokenizer of the source side, for which ``has_sentencepiece`` is true.
        target: tokenizer of the target side, for which it is true too.
        folder: folder of the export.
        bos: whether the encoder reads bos before a sentence.
        max_length: most tokens of a sentence that the model reads, special ids included.
    """
    write_sentencepiece(source, target, folder)
    pieces = _pieces(source, target)
    # As codes such as ">>gn<<", tags would come before bos, which sentencepiece adds.
    model = ModelProto.FromString((folder / "source.spm").read_bytes())
    for piece in pieces[0][len(model.pieces) :]:
        model.pieces.add(piece=piece, type=ModelProto.SentencePiece.USER_DEFINED)
    (folder / "source.spm").write_bytes(model.SerializeToString())
    source_ids, target_ids = ({piece: id_ for id_, piece in enumerate(side)} for side in pieces)
    is_separate = source_ids != target_ids
    write_json(folder / "vocab.json", source_ids)
    if is_separate:
        write_json(folder / "target_vocab.json", target_ids)
    special = pieces[0]
    settings = {
        "pad_token": special[PAD],
        "bos_token": special[BOS],
        "eos_token": special[EOS],
        "unk_token": special[UNK],
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": is_separate,
        "sp_model_kwargs": {"add_bos": True} if bos else {},  # MarianTokenizer adds eos alone
        "model_max_length": max_length,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # "</s>" in a text is text
    }
    write_json(folder / "tokenizer_config.json", settings)


def _pieces(source: Tokenizer, target: Tokenizer) -> tuple[list[str], list[str]]:
    """Return the unique pieces of both sides. Tags are words, unless they are codes as MarianTokenizer reads them."""
    sides = unique_pieces(source, target)
    for pieces, tokenizer in zip(sides, (source, target), strict=True):
        for tag in range(tokenizer.size - len(tokenizer.tags), tokenizer.size):
            if not TAG_PIECE.fullmatch(pieces[tag]):
                pieces[tag] = SPACE_MARK + pieces[tag]
    return sides


def keeps_positions(config: TransformerConfig) -> bool:
    """Return whether the export keeps sinusoids unscaled, as its class computes them.

    MarianMTModel reads positions from the file, but never saves them again. A copy that transformers saves therefore
    works only with the class's own sinusoids, so the export keeps these where epsilon is small. Then c is 1 for words
    and positions, and the first norm of each stack differs from nmt's by a factor of at most 1 + 5e-6 / variance.
    """
    has_their_sinusoids = config.positions == "sinusoidal" and config.position_base == BASE
    return config.norm_placement == "post" and has_their_sinusoids and config.layer_norm_epsilon <= 2 * EPSILON


class Row(NamedTuple):
    """An array of the model in nmt and in transformers, which transposes the kernels of linear layers."""

    name: str
    """Name in nmt."""
    hf_name: str
    """Name in transformers."""
    axes: tuple[str, ...]
    """Kind of each axis in nmt: "stream" for channels of the residual stream, "ids" for ids, "" for an axis that is the
    same in both."""
    scale: float
    """Factor from the values in nmt to the values in transformers."""


def weight_map(config: TransformerConfig) -> list[Row]:
    """Return the rows of all arrays except ``final_logits_bias``.

    transformers has no SSRU. Its arrays have names in the same style, for models of Marian with the same epsilon.
    """
    pre, shared = config.norm_placement == "pre", config.tie_embeddings == "all"
    scale = math.sqrt(EPSILON / config.layer_norm_epsilon)  # c of the residual stream
    words = 1.0 if keeps_positions(config) else scale  # c of words and positions
    rows: list[Row] = []

    def read_stream(name: str, hf_name: str, scale: float, factor: float = 1) -> None:
        """Add a linear layer whose input is the stream at a scale, and whose output is multiplied by a factor."""
        rows.append(Row(f"{name}/kernel", f"{hf_name}.weight", ("stream", ""), factor / scale))
        rows.append(Row(f"{name}/bias", f"{hf_name}.bias", ("",), factor))

    def write_stream(name: str, hf_name: str, scale: float) -> None:
        """Add a linear layer whose output is the stream at a scale."""
        rows.append(Row(f"{name}/kernel", f"{hf_name}.weight", ("", "stream"), scale))
        rows.append(Row(f"{name}/bias", f"{hf_name}.bias", ("stream",), scale))

    def norm(name: str, hf_name: str, scale: float) -> None:
        """Add a norm whose output is the stream at a scale."""
        rows.append(Row(f"{name}/gamma", f"{hf_name}.weight", ("stream",), scale))
        rows.append(Row(f"{name}/beta", f"{hf_name}.bias", ("stream",), scale))

    if shared or pre:
        rows.append(Row("source_embedding/matrix", "model.shared.weight", ("ids", "stream"), words))
    for stack, side, layers in (
        ("encoder", "source", config.encoder_layers), ("decoder", "target", config.decoder_layers)
    ):  # fmt: skip
        if not shared:
            rows.append(Row(f"{side}_embedding/matrix", f"model.{stack}.embed_tokens.weight", ("ids", "stream"), words))
        rows.append(Row(f"{side}_positions/matrix", f"model.{stack}.embed_positions.weight", ("", "stream"), words))
        # An output layer that is tied to the scaled word vectors needs the inverse scale in the last norm.
        last = 1 / words if stack == "decoder" and config.tie_embeddings != "none" else 1.0
        stream = words  # scale of the residual stream before the next block
        for number in range(1, layers + 1):
            layer, hf_layer = f"{stack}_{number}", f"model.{stack}.layers.{number - 1}"
            blocks = list(zip(BLOCKS[stack], ("self_attn", "encoder_attn"), strict=False))
            if stack == "decoder" and config.decoder == "ssru":
                blocks = blocks[1:]
                rows += _ssru_rows(layer, hf_layer)
            for attention, hf_attention in blocks:
                block, hf_block = f"{layer}/{attention}", f"{hf_layer}.{hf_attention}"
                queries = 1.0 if pre else stream
                memory = 1.0 if hf_attention == "encoder_attn" else queries
                read_stream(f"{block}/query", f"{hf_block}.q_proj", queries, _query_factor(config))
                read_stream(f"{block}/key", f"{hf_block}.k_proj", memory)
                read_stream(f"{block}/value", f"{hf_block}.v_proj", memory)
                write_stream(f"{block}/output", f"{hf_block}.out_proj", stream)
                norm(f"{block}_sublayer/norm", f"{hf_block}_layer_norm", 1.0 if pre else scale)
                stream = scale
            read_stream(f"{layer}/feed_forward/inner", f"{hf_layer}.fc1", 1.0 if pre else scale)
            write_stream(f"{layer}/feed_forward/outer", f"{hf_layer}.fc2", scale)
            normed = 1.0 if pre else last if number == layers else scale
            norm(f"{layer}/feed_forward_sublayer/norm", f"{hf_layer}.final_layer_norm", normed)
        if pre:
            norm(f"{stack}_norm", f"model.{stack}.layer_norm", last)
    if config.tie_embeddings == "none":
        rows.append(Row("output_layer/kernel", "lm_head.weight", ("stream", "ids"), 1.0))
    elif not _ties_output(config):
        rows.append(Row("target_embedding/matrix", "lm_head.weight", ("ids", "stream"), words))
    return rows


def _ssru_rows(layer: str, hf_layer: str) -> list[Row]:
    """Return the rows of the SSRU of a decoder layer and of its norm. Its cells are channels of the residual stream."""
    return [
        Row(f"{layer}/ssru/kernel", f"{hf_layer}.ssru.weight", ("stream", "stream"), 1.0),
        Row(f"{layer}/ssru/forget_kernel", f"{hf_layer}.ssru.forget.weight", ("stream", "stream"), 1.0),
        Row(f"{layer}/ssru/forget_bias", f"{hf_layer}.ssru.forget.bias", ("stream",), 1.0),
        Row(f"{layer}/ssru_sublayer/norm/gamma", f"{hf_layer}.ssru_layer_norm.weight", ("stream",), 1.0),
        Row(f"{layer}/ssru_sublayer/norm/beta", f"{hf_layer}.ssru_layer_norm.bias", ("stream",), 1.0),
    ]


def exported_weights(config: TransformerConfig, arrays: Arrays, size: int) -> Arrays:
    """Return the arrays of ``complete_weights`` by the names of transformers, float32; V of both sides is ``size``."""
    weights = {row.hf_name: _exported_array(row, arrays[row.name], config, size) for row in weight_map(config)}
    bias = arrays["output_layer/bias"]
    weights["final_logits_bias"] = np.pad(bias, (0, size - len(bias)), constant_values=NEVER)[np.newaxis]
    return weights


def embedding_keys(config: TransformerConfig, size: int) -> dict[str, Any]:
    """Return the keys of config.json about embeddings."""
    keys = {"vocab_size": size, "tie_word_embeddings": _ties_output(config)}
    both = {"decoder_vocab_size": size, "share_encoder_decoder_embeddings": config.tie_embeddings == "all"}
    return keys | (both if config.norm_placement == "post" else {})


def _ties_output(config: TransformerConfig) -> bool:
    """Return whether the output layer is the target embedding. Pegasus ties all three matrices or none."""
    return config.tie_embeddings == "all" or (config.norm_placement == "post" and config.tie_embeddings == "output")


def _query_factor(config: TransformerConfig) -> float:
    """Return the factor of the query matrix: with attention_scale: projection, nmt divides scores by sqrt(D)."""
    return 1.0 if config.attention_scale == "head" else 1 / math.sqrt(config.heads)


def _exported_array(row: Row, array: np.ndarray, config: TransformerConfig, size: int) -> np.ndarray:
    """Return an array of nmt as transformers has it. Ids that a side lacks get zeros."""
    array, width = row.scale * array, config.d_model
    for axis, kind in enumerate(row.axes):
        if kind == "stream":
            array = array.take([*range(0, width, 2), *range(1, width, 2)], axis)
        elif kind == "ids":
            padding = [(0, 0)] * array.ndim
            padding[axis] = (0, size - array.shape[axis])
            array = np.pad(array, padding)
    return np.ascontiguousarray(array.T if row.name.endswith("/kernel") else array, np.float32)
