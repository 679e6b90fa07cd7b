"""Figures of the embeddings of a run show the values that its model adds up."""

import math
from pathlib import Path

import numpy as np
import pytest

from nmt.config.model import TransformerConfig
from nmt.config.schema import Config
from nmt.errors import DataError
from nmt.models.build import build_model
from nmt.models.transformer.model import Transformer
from nmt.models.weights import weights_of
from nmt.plotting import figures as plots
from nmt.plotting.lesson.learned_phrases import learned_embeddings
from nmt.plotting.lesson.trained import is_byte, read_weights, vocabulary
from nmt.runs.directory import Run, create_run
from nmt.runs.weights import save_weights
from nmt.runtime import keras, tf
from nmt.tokenizers.base import BOS, EOS
from nmt.tokenizers.word import WordTokenizer

SMALL = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "d_ff": 8, "heads": 2}
WORDS = {"source": ["im", "thirsty", "hungry", "go"], "target": ["ich", "bin", "durstig"]}


def make_run(**section: object) -> tuple[Run, Transformer]:
    """Return a run of random weights and its model."""
    config = Config(model=TransformerConfig.model_validate({**SMALL, **section}))
    run = create_run("first", config, [])
    for side, words in WORDS.items():
        WordTokenizer(words, "ascii-words").save(run.tokenizer_path(side))
    keras.utils.set_random_seed(1)
    model = build_model(config.model, 8, 7)
    save_weights(run, weights_of(model), 1)
    assert isinstance(model, Transformer)
    return run, model


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def images(run: Run) -> list[np.ndarray]:
    axes = plots.draw("positions", run).axes
    return [np.asarray(panel.get_images()[0].get_array()) for panel in axes if panel.get_images()]


def cosines_of(matrix: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
    return matrix @ matrix.T / lengths / lengths[:, None]


@pytest.mark.parametrize("base", [10_000.0, 50.0])
def test_sinusoidal_positions_are_those_of_the_paper(base: float) -> None:
    run = create_run("first", Config(model=TransformerConfig(d_model=64, heads=4, position_base=base)), [])
    matrix, similarity = images(run)
    assert matrix.shape == (100, 64)
    for position, dimension in [(0, 0), (0, 1), (1, 0), (7, 20), (50, 33), (99, 63)]:
        angle = position / base ** (dimension // 2 * 2 / 64)
        expected = math.cos(angle) if dimension % 2 else math.sin(angle)
        assert matrix[position, dimension] == pytest.approx(expected, abs=1e-4)
    np.testing.assert_allclose(similarity, cosines_of(matrix), atol=1e-5)


def test_rotary_positions_are_the_angles_of_a_head() -> None:
    model = TransformerConfig(d_model=64, heads=4, positions="rotary", position_base=100.0)
    matrix, similarity = images(create_run("first", Config(model=model), []))
    assert matrix.shape == (100, 16)
    assert matrix[7, 4] == pytest.approx(math.sin(7 / 100 ** (4 / 16)), abs=1e-4)
    assert similarity[3, 9] == pytest.approx(np.mean(np.cos(6 / 100 ** (np.arange(0, 16, 2) / 16))), abs=1e-4)


def test_learned_positions_are_drawn_for_encoder_and_decoder() -> None:
    run, model = make_run(positions="learned", max_positions=5)
    drawn = images(run)
    arrays = weights_of(model)
    for side, (matrix, similarity) in zip(("source", "target"), (drawn[:2], drawn[2:]), strict=True):
        np.testing.assert_array_equal(matrix, arrays[f"{side}_positions/matrix"])
        np.testing.assert_allclose(similarity, cosines_of(matrix), atol=1e-5)


@pytest.mark.parametrize(
    "section",
    [
        {},
        {"positions": "learned", "max_positions": 6, "scale_embeddings": False},
        {"position_base": 20.0, "source_bos": False},
    ],
)
def test_learned_embeddings_are_what_the_encoder_reads(section: dict[str, object]) -> None:
    run, model = make_run(**section)
    weights = read_weights(run)
    [embedded] = learned_embeddings(["I'm thirsty"], weights, vocabulary(weights, "source"))
    ids = [4, 5, EOS] if section.keys() & {"source_bos"} else [BOS, 4, 5, EOS]
    expected = model.source_positions(model.source_embedding(tf.constant([ids])), tf.range(len(ids)))
    np.testing.assert_allclose(embedded.values, expected.numpy()[0], atol=1e-6)
    assert embedded.tokens[-3:] == ["im", "thirsty", "</s>"]


def test_a_phrase_that_the_encoder_cannot_read_is_refused() -> None:
    run, _ = make_run(positions="learned", max_positions=4)
    weights = read_weights(run)
    known = vocabulary(weights, "source")
    assert len(learned_embeddings(["im thirsty"], weights, known)[0].tokens) == 4
    for phrase in ("im im im", "?!"):
        with pytest.raises(DataError, match=r"Phrases of 1 to 2 tokens are drawn here"):
            learned_embeddings([phrase], weights, known)


def test_both_sides_have_their_words_and_vectors() -> None:
    run, model = make_run()
    weights = read_weights(run)
    for side, words in WORDS.items():
        found = vocabulary(weights, "source" if side == "source" else "target")
        assert [found.pieces[id_] for id_ in found.words()] == words
        np.testing.assert_array_equal(found.vectors, weights_of(model)[f"{side}_embedding/matrix"])


@pytest.mark.parametrize(
    ("piece", "expected"), [("<0x0A>", True), ("<0xFF>", True), ("<s>", False), ("▁<0x0A>", False)]
)
def test_bytes_are_no_words(piece: str, expected: bool) -> None:
    assert is_byte(piece) == expected
