"""Files of Bergamot: the binary model with int8 matrices, the shortlist, and the sentencepiece vocabulary.

Firefox, translateLocally and fxtranslate read them. Shapes: D model, V vocabulary.
"""

import struct
from collections.abc import Mapping, Sequence

import numpy as np
from sentencepiece import sentencepiece_model_pb2

from nmt.export.vocabulary import with_normalization
from nmt.storage.arrays import Arrays
from nmt.tokenizers.base import EOS, FIRST_WORD, UNK
from nmt.tokenizers.subword import SubwordTokenizer

MODEL_VERSION = 1
FLOAT32, INT8, INT8_MATRIX = 0x0404, 0x0101, 0x4101
"""Types of items: numbers, text, and a matrix of int8 with its factor."""
ALIGNMENT = 256
"""Bytes to whose multiples the data of each item are padded."""
LARGEST = 127
"""Largest quantized value."""
OPTIONS_NAME = "special:model.yml"
MULTIPLE = 8
"""The size of a vocabulary is a multiple of this, as the kernels for products of int8 need it."""
PADDING_PIECE = "<unused_{}>"
SHORTLIST_MAGIC = 0xF11A48D5013417F5


def quantization_factor(largest: float) -> np.float32:
    """Return the factor that brings values up to ``largest`` to int8."""
    return np.float32(LARGEST / largest if largest > 0 else 1.0)


def is_quantized(name: str) -> bool:
    """Return whether an array is a matrix of products, given its name in Marian: ``Wemb``, ``encoder_l1_self_Wq``."""
    return name.rpartition("_")[2].startswith("W")


def model_file(arrays: Arrays, input_factors: Mapping[str, np.float32], options: str) -> bytes:
    """Return the binary model.

    A matrix is stored as int8: transposed, except ``Wemb``, with the factor from its values to int8 behind it.

    Args:
        arrays: arrays by Marian's names, float32.
        input_factors: for each matrix X, the factor from its inputs to int8. They become items ``X_QuantMultA``.
        options: Marian's options, in YAML.
    """
    items: list[tuple[str, int, tuple[int, ...], bytes]] = []
    for name, array in arrays.items():
        if is_quantized(name):
            factor = quantization_factor(float(np.abs(array).max()))
            values = np.rint(array * factor).clip(-LARGEST, LARGEST).astype(np.int8)
            values = values if name == "Wemb" else values.T
            items.append((name, INT8_MATRIX, array.shape, values.tobytes() + factor.tobytes()))
        else:
            items.append((name, FLOAT32, array.shape, array.astype("<f4").tobytes()))
    for name, factor in input_factors.items():
        items.append((f"{name}_QuantMultA", FLOAT32, (1, 1), factor.tobytes()))
    text = options.encode() + b"\0"
    items.append((OPTIONS_NAME, INT8, (len(text),), text))

    data = [content.ljust(-(-len(content) // ALIGNMENT) * ALIGNMENT, b"\0") for *_, content in items]
    names = [name.encode() + b"\0" for name, *_ in items]
    head = struct.pack("<2Q", MODEL_VERSION, len(items))
    for (_, kind, shape, _), encoded, content in zip(items, names, data, strict=True):
        head += struct.pack("<4Q", len(encoded), kind, len(shape), len(content))
    head += b"".join(names)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    offset = -(len(head) + 8) % ALIGNMENT
    return head + struct.pack("<Q", offset) + bytes(offset) + b"".join(data)


def shortlist_file(candidates: Sequence[Sequence[int]], first: int, best: int) -> bytes:
    """Return the binary shortlist.

    Args:
        candidates: for each source id, the target ids that may translate it, beyond the first ids.
        first: number of ids, from 0 on, that every translation may have.
        best: most candidates of a source id.
    """
    lists = [np.array(sorted(ids), "<u4") for ids in candidates]
    offsets = np.cumsum([0, *map(len, lists)]).astype("<u8")
    words = np.concatenate(lists)
    body = struct.pack("<4Q", first, best, len(offsets), len(words)) + offsets.tobytes() + words.tobytes()
    return struct.pack("<2Q", SHORTLIST_MAGIC, _checksum(body)) + body


def _checksum(content: bytes) -> int:
    """Return Marian's checksum: boost's ``hash_combine`` of all whole uint64."""
    mask, checksum = 2**64 - 1, 0
    for value in np.frombuffer(content, "<u8", len(content) // 8).tolist():
        checksum ^= (value + 0x9E3779B9 + (checksum << 6) + (checksum >> 2)) & mask
        checksum &= mask
    return checksum


def vocabulary_order(size: int, target_tokens: np.ndarray) -> list[int]:
    """Return our id of each id of Marian: eos, unk, then the words, frequent ones first, as a shortlist needs them.

    Args:
        size: V of our vocabulary.
        target_tokens: ids of the target side of the training pairs, in any order.
    """
    counts = np.bincount(target_tokens, minlength=size)[FIRST_WORD:size]
    words = FIRST_WORD + np.argsort(-counts, kind="stable")
    return [EOS, UNK, *words.tolist()]


def padded_size(size: int) -> int:
    """Return the next multiple of ``MULTIPLE``."""
    return -(-size // MULTIPLE) * MULTIPLE


def vocabulary_file(tokenizer: SubwordTokenizer, order: list[int]) -> bytes:
    """Return the sentencepiece model in the order of ``vocabulary_order``, which takes raw text and has no bos.

    Unused pieces bring its size to a multiple of ``MULTIPLE``.
    """
    ours = sentencepiece_model_pb2.ModelProto.FromString(with_normalization(tokenizer))
    kind = ours.SentencePiece
    pieces = [ours.pieces[id_] for id_ in order]
    for number in range(padded_size(len(pieces)) - len(pieces)):
        pieces.append(kind(piece=PADDING_PIECE.format(number), type=kind.UNUSED))
    spec = ours.trainer_spec
    spec.eos_id, spec.unk_id, spec.bos_id, spec.pad_id = 0, 1, -1, -1
    spec.vocab_size = len(pieces)
    model = type(ours)(pieces=pieces, trainer_spec=spec, normalizer_spec=ours.normalizer_spec)
    return bytes(model.SerializeToString())
