"""Largest inputs of the matrices of a Marian model with SSRU, measured by its forward pass in NumPy.

Shapes: S source length with eos, T target length, D model, H heads, d head size.
"""

from collections import defaultdict

import numpy as np

from nmt.export.marian import EPSILON, position_base
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.storage.arrays import Arrays

DEVIATIONS = 1.1
"""Standard deviations of the sentences' maxima that are added to their mean. Larger inputs are cut off."""
OUTPUT_LAYER = ("none", "Wemb")
"""Names of the output layer's input: some versions of the engine look for the first, some for the second."""


class ActivationRecorder:
    """Forward passes of single sentences that record the largest input of each matrix.

    Inputs of int8 products are quantized, too, so the engine needs their range.
    """

    def __init__(self, arrays: Arrays, heads: int) -> None:
        """Take the arrays by Marian's names, and H."""
        self._arrays, self._heads = arrays, heads
        self._layers = {
            stack: sum(name.startswith(f"{stack}_l") and name.endswith("_ffn_W1") for name in arrays)
            for stack in ("encoder", "decoder")
        }
        self._maxima: defaultdict[str, list[float]] = defaultdict(list)

    def largest(self) -> dict[str, float]:
        """Return the largest input of each matrix: the mean over sentences, plus ``DEVIATIONS``."""
        return {
            name: float(np.mean(maxima) + DEVIATIONS * np.std(maxima)) for name, maxima in sorted(self._maxima.items())
        }

    def logits(self, source: list[int], target: list[int]) -> np.ndarray:
        """Return the logits after each prefix of a target, float32 [T, V].

        Args:
            source: Marian's ids of a sentence and eos, [S].
            target: Marian's ids of a translation, [T].
        """
        encoded = self._embed(self._arrays["Wemb"][source])
        for number in range(1, self._layers["encoder"] + 1):
            layer = f"encoder_l{number}"
            attended = self._attention(f"{layer}_self", encoded, encoded)
            encoded = self._norm(f"{layer}_self_Wo", encoded + attended)
            encoded = self._norm(f"{layer}_ffn_ffn", encoded + self._feed_forward(layer, encoded))
        words = self._arrays["Wemb"][target[:-1]]
        decoded = self._embed(np.concatenate([np.zeros_like(words, shape=(1, words.shape[1])), words]))
        for number in range(1, self._layers["decoder"] + 1):
            layer = f"decoder_l{number}"
            decoded = self._norm(f"{layer}_rnn_ffn", decoded + self._ssru(layer, decoded))
            attended = self._attention(f"{layer}_context", decoded, encoded)
            decoded = self._norm(f"{layer}_context_Wo", decoded + attended)
            decoded = self._norm(f"{layer}_ffn_ffn", decoded + self._feed_forward(layer, decoded))
        for name in OUTPUT_LAYER:
            self._record(name, decoded)
        logits: np.ndarray = decoded @ self._arrays["Wemb"].T + self._arrays["decoder_ff_logit_out_b"]
        return logits

    def _record(self, name: str, inputs: np.ndarray) -> None:
        self._maxima[name].append(float(np.abs(inputs).max()))

    def _embed(self, words: np.ndarray) -> np.ndarray:
        """Return scaled words with their positions, of words [L, D]: sines, then cosines."""
        length, width = words.shape
        positions = sinusoidal_encoding(length, width, position_base(width))
        positions = np.concatenate([positions[:, ::2], positions[:, 1::2]], axis=1)
        embedded: np.ndarray = words * np.float32(np.sqrt(width)) + positions
        return embedded

    def _product(self, name: str, suffix: str, inputs: np.ndarray) -> np.ndarray:
        """Return x W + b for a matrix such as ``encoder_l1_self_Wq``, of prefix and suffix "q"."""
        self._record(f"{name}_W{suffix}", inputs)
        product: np.ndarray = inputs @ self._arrays[f"{name}_W{suffix}"]
        bias = self._arrays.get(f"{name}_b{suffix}")
        return product if bias is None else product + bias

    def _norm(self, name: str, x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(EPSILON))
        normed: np.ndarray = centred / deviation * self._arrays[f"{name}_ln_scale"] + self._arrays[f"{name}_ln_bias"]
        return normed

    def _feed_forward(self, layer: str, x: np.ndarray) -> np.ndarray:
        inner = np.maximum(self._product(f"{layer}_ffn", "1", x), 0)
        return self._product(f"{layer}_ffn", "2", inner)

    def _attention(self, name: str, x: np.ndarray, memory: np.ndarray) -> np.ndarray:
        query = self._heads_of(self._product(name, "q", x))
        key = self._heads_of(self._product(name, "k", memory))
        value = self._heads_of(self._product(name, "v", memory))
        scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[-1]))
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        context = (weights @ value).transpose(1, 0, 2).reshape(len(x), -1)
        return self._product(name, "o", context)

    def _heads_of(self, x: np.ndarray) -> np.ndarray:
        """Return [L, D] as [H, L, d]."""
        return x.reshape(len(x), self._heads, -1).transpose(1, 0, 2)

    def _ssru(self, layer: str, x: np.ndarray) -> np.ndarray:
        terms = self._product(f"{layer}_rnn", "", x)
        forget = 1 / (1 + np.exp(-self._product(f"{layer}_rnn", "f", x)))
        cells, cell = np.empty_like(terms), np.zeros_like(terms[0])
        for place in range(len(x)):
            cell = forget[place] * cell + (1 - forget[place]) * terms[place]
            cells[place] = cell
        return np.maximum(cells, 0)
