"""A model of another program as its files describe it, and its weights by our names.

Arrays have the names of transformers' MarianMTModel, whichever the files. An ``order`` has the original's row of each
of our V ids: the special ones differ, and Marian begins with a vector of zeros, which has no row.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import ValidationError
from sentencepiece import sentencepiece_model_pb2

from nmt.config.record import Record
from nmt.config.schema import DecodingConfig
from nmt.config.transformer import TransformerConfig
from nmt.data.manifest import SIDES
from nmt.errors import DataError, NotFoundError
from nmt.export.huggingface import EPSILON, weight_map
from nmt.models.build import weight_shapes
from nmt.storage.arrays import Arrays
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, PAD, SPECIAL_PIECES, UNK, UNKNOWN
from nmt.tokenizers.subword import SubwordTokenizer

NO_ROW = -1
"""In an order, an id that the original does not have: its vector is zeros."""
SHOWN = 5
"""Names of arrays in a message."""
UNLIKELY = -30.0
"""Bias of ids that the original does not score. Label smoothing reads the mean logit, so it is no larger."""
SHARED, ENCODER, DECODER, OUTPUT, BIAS = (
    "model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight",
    "final_logits_bias",
)  # fmt: skip
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
"""Tables of position vectors. An original with sinusoids may store them."""


class Side(NamedTuple):
    """Tokens of a side."""

    model: Any
    """sentencepiece's ``ModelProto``."""
    pieces: list[str]
    """Piece of each id of the original."""
    special: list[int]
    """Rows of pad, unk, bos and eos."""
    others: list[str]
    """Pieces of the sentencepiece model without an id. They have ids here, and the vector of unk."""

    @property
    def tags(self) -> list[int]:
        """Rows of the codes of target languages, such as ">>deu<<"."""
        form = re.compile(">>[A-Za-z0-9][A-Za-z0-9_-]{0,39}<<")
        return [row for row, piece in enumerate(self.pieces) if form.fullmatch(piece)]

    @property
    def order(self) -> np.ndarray:
        """Row of each of our ids, int64 [V]: special ones, words, others, tags."""
        words = sorted(set(range(len(self.pieces))).difference(self.special, self.tags))
        return np.array([*self.special, *words, *[self.special[UNK]] * len(self.others), *self.tags])

    def tokenizer(self, name: str) -> SubwordTokenizer:
        """Return the tokenizer: the sentencepiece model with our ids, in which pieces of the other side are unused.

        Raises DataError if the model is damaged.
        """
        own, kind = {each.piece: each for each in self.model.pieces}, self.model.SentencePiece
        words = [self.pieces[row] for row in self.order[FIRST_WORD : len(self.order) - len(self.others + self.tags)]]
        made = [kind(piece=piece, type=kind.CONTROL) for piece in SPECIAL_PIECES]
        made[UNK].type = kind.UNKNOWN
        try:
            made += [own.get(word) or kind(piece=word, type=kind.UNUSED) for word in words + self.others]
            made += [kind(piece=self.pieces[row], type=kind.CONTROL) for row in self.tags]
            spec, rules = self.model.trainer_spec, self.model.normalizer_spec
            spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id, spec.unk_surface = PAD, UNK, BOS, EOS, UNKNOWN
            spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece = SPECIAL_PIECES
            model = type(self.model)(pieces=made, trainer_spec=spec, normalizer_spec=rules).SerializeToString()
            found = SubwordTokenizer(model, "none", "bpe" if spec.model_type == spec.BPE else "unigram")
        except (DataError, ValueError) as error:
            raise DataError(f"{name} cannot be used: {error} Restore a copy.") from None
        found.tags = [self.pieces[row][2:-2] for row in self.tags]
        return found


def sides_of(folder: Path, files: list[str], vocabularies: list[dict[str, Any]], special: Sequence[Any]) -> list[Side]:
    """Return the tokens of source and target, with special ones given as rows or pieces.

    Raises NotFoundError or DataError for a sentencepiece model or ids that are missing or damaged.
    """
    sides = []
    for side, file, vocabulary in zip(SIDES, files, vocabularies, strict=True):
        path, ids, size = folder / f"{side}.spm", list(vocabulary.values()), len(vocabulary)
        if not path.is_file():
            raise NotFoundError(f"{path} is missing. nmt imports models with sentencepiece's subwords. Restore it.")
        if any(type(id_) is not int for id_ in ids) or sorted(ids) != list(range(size)):
            raise DataError(f"{file} is damaged: its {size:,} pieces have not the ids from 0 on. Restore a copy.")
        rows = [vocabulary.get(each, size) if isinstance(each, str) else each for each in special]
        for each, row in zip(special, rows, strict=True):
            if type(row) is not int or not NO_ROW <= row < size:
                raise DataError(f"{file} has no id {each}, which is special in the model. Restore a copy.")
        try:
            model = sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())
        except Exception as error:  # protobuf's own
            raise DataError(f"{path} is damaged: {error}. Restore a copy.") from None
        kinds = (model.SentencePiece.NORMAL, model.SentencePiece.BYTE, model.SentencePiece.USER_DEFINED)
        others = [each.piece for each in model.pieces if each.type in kinds and each.piece not in vocabulary]
        sides.append(Side(model, sorted(vocabulary, key=vocabulary.__getitem__), rows, others))
    if files[0] == files[1]:  # one vocabulary
        both = list(dict.fromkeys(sides[0].others + sides[1].others))
        sides = [side._replace(others=both) for side in sides]
    return sides


class Original(NamedTuple):
    """A model as its files describe it."""

    kind: Literal["transformers", "marian"]
    config: TransformerConfig
    decoding: DecodingConfig
    arrays: Arrays
    source: Side
    target: Side
    files: list[Path]
    """Files that were read, that of the weights first."""


def section(kind: type[Record], values: dict[str, Any], file: Path) -> Any:
    """Return a section of keys that a file gives; raises DataError for one out of its range."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        key, reason = error.errors()[0]["loc"], error.errors()[0]["msg"].removeprefix("Value error, ")
        raise DataError(f"{file}: {''.join(map(str, key))} {reason[:300]}. Restore a copy.") from None


def chosen(values: dict[str, Any], key: str, allowed: dict[str, Any], file: Path) -> Any:
    """Return what a value means here; raises DataError for one that is not carried."""
    if (value := str(values.get(key))) not in allowed:
        known = " or ".join(map(repr, allowed))
        raise DataError(f"{file} has {key}: {value[:60]}. nmt imports models with {known}. Choose another model.")
    return allowed[value]


def our_weights(original: Original) -> Arrays:
    """Return the weights by our names, float32; raises DataError for an array that is not as described."""
    config, width = original.config, original.config.d_model
    stream = np.argsort([*range(0, width, 2), *range(1, width, 2)])
    orders = {"source": original.source.order, "target": original.target.order}
    alike = config.model_copy(update={"layer_norm_epsilon": EPSILON})  # with their epsilon the map scales nothing
    rows = {row.ours: row for row in weight_map(alike) if "positions" not in row.ours or config.positions == "learned"}
    if missing := [row.theirs for row in rows.values() if row.theirs not in original.arrays]:
        raise DataError(f"{original.files[0]} has no array {missing[0]}, which its description asks for.")
    found: Arrays = {}
    used = set[str]()
    for ours, shape in weight_shapes(config, *map(len, orders.values())).items():
        row = rows.get("source_embedding/matrix" if ours == "embedding/matrix" else ours)
        order = orders["source" if ours.startswith("source") else "target"]
        theirs, axes = (row.theirs, row.axes) if row else (BIAS, ("ids",))
        used.add(theirs)
        try:
            array = original.arrays[theirs].astype(np.float32)
            array = array.T if ours.endswith("/kernel") else array.reshape(-1) if row is None else array
            for axis, kind in enumerate(axes):
                if kind == "ids":
                    empty = np.full_like(array.take([0], axis), UNLIKELY if row is None else 0)
                    array = np.concatenate([array.take(range(order.max() + 1), axis), empty], axis).take(order, axis)
                elif kind == "stream":
                    array = array.take(stream, axis)
            if row is None:  # pad from which it starts, and unk, are scored once
                array[np.setdiff1d(np.arange(len(order)), np.unique(order, return_index=True)[1])] = UNLIKELY
            if list(array.shape) != shape or not np.isfinite(array).all():
                raise ValueError
        except (LookupError, ValueError):
            wrong = "another shape than its description says, or numbers that are not finite"
            raise DataError(f"{original.files[0]}: the array {theirs} has {wrong}. Restore a copy.") from None
        found[ours] = np.ascontiguousarray(array)
    if dropped := sorted(original.arrays.keys() - used - _repeating(original, used)):
        more = f" and {len(dropped) - SHOWN:,} more" if len(dropped) > SHOWN else ""
        raise DataError(
            f"{original.files[0]} has arrays that its description has no place for: "
            f"{', '.join(name[:80] for name in dropped[:SHOWN])}{more}. An import uses all weights of a model. Restore "
            "a copy of both files, or choose another model."
        )
    return found


def _repeating(original: Original, used: set[str]) -> set[str]:
    """Return the arrays of an original that repeat, value by value, what the run has without them.

    They are tied copies of word vectors, sinusoids, which ``transformers_folder`` has compared with ours, and a bias of
    zeros.
    """
    config, arrays = original.config, original.arrays
    sources: dict[str, tuple[str, ...]] = {OUTPUT: (DECODER,), SHARED: (ENCODER, DECODER)}
    if config.tie_embeddings == "all":
        sources = dict.fromkeys((ENCODER, DECODER, OUTPUT), (SHARED,))
    repeating = set[str]()
    for name, equal in sources.items():
        if name in arrays and any(source in used and _equal(arrays[name], arrays[source]) for source in equal):
            repeating.add(name)
    if config.positions == "sinusoidal":
        repeating.update(name for name in POSITIONS if name in arrays and arrays[name].ndim == 2)
    if BIAS in arrays and not arrays[BIAS].any():
        repeating.add(BIAS)
    return repeating


def _equal(array: np.ndarray, other: np.ndarray) -> bool:
    return array is other or np.array_equal(array, other)
