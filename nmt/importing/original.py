"""A model of another program as its files describe it, and its weights by nmt's names.

Arrays have the names of transformers' MarianMTModel, whichever program wrote the files. An ``order`` gives the
original's row for each of the V ids of the run. The two differ in the special ids, and Marian's decoder starts from a
vector of zeros, which has no row.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import ValidationError
from sentencepiece import sentencepiece_model_pb2

from nmt.config.record import Record
from nmt.config.schema import DecodingConfig
from nmt.config.transformer import TransformerConfig
from nmt.errors import DataError, NotFoundError
from nmt.export.huggingface import EPSILON, TAG_PIECE, weight_map
from nmt.export.marian import BIAS, DECODER, ENCODER, OUTPUT, SHARED
from nmt.models.build import weight_shapes
from nmt.storage.arrays import Arrays
from nmt.tokenizers.base import BOS, EOS, PAD, SPECIAL_PIECES, UNK, UNKNOWN
from nmt.tokenizers.subword import SubwordTokenizer

NO_ROW = -1
"""Value in an order for an id that the original does not have. The vector of such an id is zeros."""
SHOWN = 5
"""Number of array names that a message shows."""
UNLIKELY = -30.0
"""Bias of ids that the original does not score. It is moderate, because label smoothing reads the mean logit."""
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
"""Names of the tables of position vectors, which an original with sinusoids may store too."""


class Side(NamedTuple):
    """Vocabulary of a side."""

    file: str
    """Name of the file with the sentencepiece model."""
    model: Any
    """sentencepiece's ``ModelProto``."""
    pieces: list[str]
    """Piece of each id of the original."""
    special: list[int]
    """Rows of pad, unk, bos and eos."""
    extra_pieces: list[str]
    """Pieces of the sentencepiece model without an id in the original. The run gives them ids and the vector of unk."""

    @property
    def tags(self) -> list[int]:
        """Rows of the codes of target languages, such as ">>deu<<"."""
        return [row for row, piece in enumerate(self.pieces) if TAG_PIECE.fullmatch(piece)]

    @property
    def words(self) -> list[int]:
        """Rows of all pieces that are neither special nor codes of target languages."""
        return sorted(set(range(len(self.pieces))).difference(self.special, self.tags))

    @property
    def order(self) -> np.ndarray:
        """Row of each id of the run, int64 [V]: special ids, words, extra pieces, tags."""
        extra = [self.special[UNK]] * len(self.extra_pieces)
        return np.array([*self.special, *self.words, *extra, *self.tags])

    def tokenizer(self) -> SubwordTokenizer:
        """Return the sentencepiece model as a tokenizer with the run's ids.

        Pieces that only the other side's model has are marked as unused.

        Raises:
            DataError: if the model is damaged.
        """
        known, kind = {piece.piece: piece for piece in self.model.pieces}, self.model.SentencePiece
        texts = [self.pieces[row] for row in self.words] + self.extra_pieces
        pieces = [kind(piece=piece, type=kind.CONTROL) for piece in SPECIAL_PIECES]
        pieces[UNK].type = kind.UNKNOWN
        try:
            pieces += [known.get(text) or kind(piece=text, type=kind.UNUSED) for text in texts]
            pieces += [kind(piece=self.pieces[row], type=kind.CONTROL) for row in self.tags]
            spec, rules = self.model.trainer_spec, self.model.normalizer_spec
            spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id, spec.unk_surface = PAD, UNK, BOS, EOS, UNKNOWN
            spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece = SPECIAL_PIECES
            model = type(self.model)(pieces=pieces, trainer_spec=spec, normalizer_spec=rules).SerializeToString()
            tokenizer = SubwordTokenizer(model, "none", "bpe" if spec.model_type == spec.BPE else "unigram")
        except (DataError, ValueError) as error:
            raise DataError(f"{self.file} cannot be used: {error} Restore a copy.") from None
        tokenizer.tags = [self.pieces[row][2:-2] for row in self.tags]
        return tokenizer


def read_sentencepiece(path: Path) -> Any:
    """Return the ``ModelProto`` in a file; raises NotFoundError if it is missing, DataError if it is damaged."""
    if not path.is_file():
        raise NotFoundError(f"{path} is missing. nmt imports models with sentencepiece's subwords. Restore it.")
    try:
        return sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())
    except Exception as error:  # protobuf's own
        raise DataError(f"{path} is damaged: {error}. Restore a copy.") from None


def sides_of(
    models: Sequence[Path], files: list[str], vocabularies: list[dict[str, Any]], special: Sequence[Any]
) -> list[Side]:
    """Return the vocabularies of source and target.

    Args:
        models: files of the sentencepiece models of the two sides.
        files: names of the two vocabulary files; equal names for a vocabulary that both sides share.
        vocabularies: ids by piece, for each side.
        special: pad, unk, bos and eos, as rows or as pieces.

    Raises:
        NotFoundError: if a sentencepiece model is missing.
        DataError: if a sentencepiece model is damaged, or ids are missing.
    """
    sides = []
    for path, file, vocabulary in zip(models, files, vocabularies, strict=True):
        model, ids, size = read_sentencepiece(path), list(vocabulary.values()), len(vocabulary)
        if any(type(id_) is not int for id_ in ids) or sorted(ids) != list(range(size)):
            raise DataError(
                f"{file} is damaged: its {size:,} pieces do not have the ids from 0 to {size - 1:,}. Restore a copy."
            )
        rows = []
        for token in special:
            row = vocabulary.get(token, size) if isinstance(token, str) else token
            if type(row) is not int or not NO_ROW <= row < size:
                raise DataError(f"{file} has no id {token}, which is special in the model. Restore a copy.")
            rows.append(row)
        kinds = (model.SentencePiece.NORMAL, model.SentencePiece.BYTE, model.SentencePiece.USER_DEFINED)
        extra = [piece.piece for piece in model.pieces if piece.type in kinds and piece.piece not in vocabulary]
        sides.append(Side(path.name, model, sorted(vocabulary, key=vocabulary.__getitem__), rows, extra))
    if files[0] == files[1]:  # a shared vocabulary
        extra = list(dict.fromkeys(sides[0].extra_pieces + sides[1].extra_pieces))
        sides = [side._replace(extra_pieces=extra) for side in sides]
    return sides


class Original(NamedTuple):
    """A model of another program as its files describe it."""

    kind: Literal["transformers", "marian"]
    """Format of the files."""
    config: TransformerConfig
    """Section model of the run."""
    decoding: DecodingConfig
    """Section decoding of the run."""
    arrays: Arrays
    """Arrays by the names of transformers."""
    source: Side
    """Vocabulary of the source side."""
    target: Side
    """Vocabulary of the target side."""
    files: list[Path]
    """Files of the model. The first one holds the weights."""


def section(kind: type[Record], values: dict[str, Any], file: Path) -> Any:
    """Return a configuration section with the values of a file; raises DataError for a value out of its range."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        key, reason = error.errors()[0]["loc"], error.errors()[0]["msg"].removeprefix("Value error, ")
        raise DataError(f"{file}: {''.join(map(str, key))} {reason[:300]}. Restore a copy.") from None


def supported_value(values: dict[str, Any], key: str, allowed: dict[str, Any], file: Path) -> Any:
    """Return nmt's value for an option of the original.

    Args:
        values: options of the original.
        key: name of the option.
        allowed: nmt's values by the original's values.
        file: file with the options, for messages.

    Raises:
        DataError: for a value that is not in ``allowed``.
    """
    value = str(values.get(key))
    if value not in allowed:
        known = " or ".join(map(repr, allowed))
        raise DataError(f"{file} has {key}: {value[:60]}. nmt imports models with {known}. Choose another model.")
    return allowed[value]


def our_weights(original: Original) -> Arrays:
    """Return the weights by nmt's names, float32; raises DataError if an array does not fit the model's description."""
    config, width, weights_file = original.config, original.config.d_model, original.files[0]
    orders = {"source": original.source.order, "target": original.target.order}
    stream = np.argsort([*range(0, width, 2), *range(1, width, 2)])
    # With the epsilon of transformers the map scales no array.
    unscaled = config.model_copy(update={"layer_norm_epsilon": EPSILON})
    rows = {row.name: row for row in weight_map(unscaled)}
    if config.positions != "learned":
        rows = {name: row for name, row in rows.items() if "positions" not in name}
    if missing := [row.hf_name for row in rows.values() if row.hf_name not in original.arrays]:
        raise DataError(
            f"{weights_file} has no array {missing[0]}, which the description of the model asks for. Restore a copy of "
            "both files."
        )
    weights: Arrays = {}
    used = set[str]()
    for name, shape in weight_shapes(config, *map(len, orders.values())).items():
        row = rows.get("source_embedding/matrix" if name == "embedding/matrix" else name)
        order = orders["source" if name.startswith("source") else "target"]
        hf_name = row.hf_name if row else BIAS
        used.add(hf_name)
        try:
            array = original.arrays[hf_name].astype(np.float32)
            if row is None:
                array = _our_bias(array, order)
            else:
                array = _our_array(array.T if name.endswith("kernel") else array, row.axes, order, stream)
            if list(array.shape) != shape or not np.isfinite(array).all():
                raise ValueError
        except (LookupError, ValueError):
            wrong = "another shape than its description says, or numbers that are not finite"
            raise DataError(f"{weights_file}: the array {hf_name} has {wrong}. Restore a copy.") from None
        weights[name] = np.ascontiguousarray(array)
    if unused := sorted(original.arrays.keys() - used - _repeating(original, used)):
        more = f" and {len(unused) - SHOWN:,} more" if len(unused) > SHOWN else ""
        raise DataError(
            f"{weights_file} has arrays that its description has no place for: "
            f"{', '.join(name[:80] for name in unused[:SHOWN])}{more}. An import uses all weights of a model. Restore "
            "a copy of both files, or choose another model."
        )
    return weights


def _our_array(array: np.ndarray, axes: tuple[str, ...], order: np.ndarray, stream: np.ndarray) -> np.ndarray:
    """Return an array with nmt's ids and channels.

    Args:
        array: array of the original, with the axes of nmt's array.
        axes: kind of each axis, as in ``Row.axes``.
        order: original's row of each id, [V].
        stream: original's index of each channel of the residual stream, [D].
    """
    for axis, kind in enumerate(axes):
        if kind == "ids":
            array = _in_order(array, order, axis, 0)
        elif kind == "stream":
            array = array.take(stream, axis)
    return array


def _our_bias(array: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the bias of the output layer, [V].

    Several ids can have the same row: pad and bos, or unk and the extra pieces. Only the first of them is scored.
    """
    bias = _in_order(array.reshape(-1), order, 0, UNLIKELY)
    _, scored = np.unique(order, return_index=True)
    bias[np.setdiff1d(np.arange(len(order)), scored)] = UNLIKELY
    return bias


def _in_order(array: np.ndarray, order: np.ndarray, axis: int, fill: float) -> np.ndarray:
    """Return the rows of an order along an axis, with ``fill`` for ``NO_ROW``."""
    rows = array.take(range(order.max() + 1), axis)
    empty = np.full_like(array.take([0], axis), fill)
    return np.concatenate([rows, empty], axis).take(order, axis)


def _repeating(original: Original, used: set[str]) -> set[str]:
    """Return the names of arrays that only repeat values which the run has without them.

    These arrays are tied copies of word vectors, sinusoids (``transformers_folder`` has compared them with nmt's), and
    a bias of zeros.
    """
    config, arrays = original.config, original.arrays
    sources: dict[str, tuple[str, ...]] = {OUTPUT: (DECODER,), SHARED: (ENCODER, DECODER)}
    if config.tie_embeddings == "all":
        sources = dict.fromkeys((ENCODER, DECODER, OUTPUT), (SHARED,))
    repeating = set[str]()
    for name, candidates in sources.items():
        for source in candidates:
            if name in arrays and source in used and _equal(arrays[name], arrays[source]):
                repeating.add(name)
    if config.positions == "sinusoidal":
        repeating.update(name for name in POSITIONS if name in arrays and arrays[name].ndim == 2)
    if BIAS in arrays and not arrays[BIAS].any():
        repeating.add(BIAS)
    return repeating


def _equal(first: np.ndarray, second: np.ndarray) -> bool:
    return first is second or np.array_equal(first, second)
