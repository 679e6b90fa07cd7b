"""Muon against Keras and the singular value decomposition."""

import numpy as np
import pytest

from nmt.config.schema import ModelConfig
from nmt.config.training import TrainingConfig
from nmt.models.build import build_model
from nmt.models.layers.layer import Blocks
from nmt.runtime import keras, tf
from nmt.training.optimization import muon
from nmt.training.optimization.muon import Muon

SHAPES = ((7, 4), (4, 6), (6, 4), (4, 4), (4,))  # an embedding, wide, high and square matrices, a bias
WHOLE = [None, Blocks(), Blocks(), Blocks(), None]
KERAS_POLYNOMIAL = (3.4445, -4.7750, 2.0315)


def variables(seed: int = 1) -> list[tf.Variable]:
    random = np.random.default_rng(seed)
    return [tf.Variable(random.standard_normal(shape), dtype=tf.float32) for shape in SHAPES]


def gradients(step: int) -> list[tf.Tensor]:
    random = np.random.default_rng(100 + step)
    return [tf.constant(random.standard_normal(shape), tf.float32) for shape in SHAPES]


def make(values: list[tf.Variable], **settings: float) -> Muon:
    return Muon(values, WHOLE, TrainingConfig(**settings), "float32")  # type: ignore[arg-type]


def test_muon_equals_that_of_keras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(muon, "POLYNOMIALS", (KERAS_POLYNOMIAL,) * 5)
    ours, theirs = variables(), [keras.Variable(value.numpy(), name="v") for value in variables()]
    theirs[0] = keras.Variable(theirs[0].numpy(), name="embedding")
    optimizer = make(ours)
    oracle = keras.optimizers.Muon(
        adam_beta_1=0.9, adam_beta_2=0.98, epsilon=1e-9, weight_decay=0.0, adam_weight_decay=0.0
    )
    for step in range(8):
        optimizer.apply(gradients(step), tf.constant(0.05 / (1 + step)))
        oracle.learning_rate = 0.05 / (1 + step)
        oracle.apply(gradients(step), theirs)
        for own, expected in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(own, expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("bfloat16", 0.03)])
def test_directions_have_the_singular_vectors_of_the_matrix_and_values_near_1(dtype: str, tolerance: float) -> None:
    random = np.random.default_rng(5)
    left = np.linalg.qr(random.standard_normal((3, 64, 64)))[0]
    right = np.linalg.qr(random.standard_normal((3, 96, 96)))[0][:, :64]
    values = np.geomspace(0.15, 1, 64)
    matrices = np.einsum("kij,j,kjn->kin", left, values, right) * 37.0
    optimizer = Muon(variables(), WHOLE, TrainingConfig(), dtype)
    directions = optimizer.nearest_orthogonal(tf.constant(matrices, tf.float32)).numpy()
    stretched = values / np.linalg.norm(values)
    for a, b, c in muon.POLYNOMIALS:
        stretched = a * stretched + b * stretched**3 + c * stretched**5
    assert np.abs(stretched - 1).max() < 0.1
    expected = np.einsum("kij,j,kjn->kin", left, stretched, right)
    np.testing.assert_allclose(directions, expected, atol=tolerance)
    assert np.linalg.norm(directions - expected) < tolerance * np.linalg.norm(expected)


@pytest.mark.parametrize(
    ("shape", "blocks"), [((6, 8), Blocks(across=2)), ((8, 6), Blocks(down=4)), ((4, 6), Blocks(2, 3))]
)
def test_each_block_moves_like_a_matrix_of_its_own(shape: tuple[int, int], blocks: Blocks) -> None:
    random = np.random.default_rng(8)
    start, gradient = random.standard_normal((2, *shape)).astype(np.float32)

    def parts(matrix: np.ndarray) -> list[np.ndarray]:
        return [part for row in np.split(matrix, blocks.down) for part in np.split(row, blocks.across, axis=1)]

    whole, apart = [tf.Variable(start)], [tf.Variable(part) for part in parts(start)]
    together = Muon(whole, [blocks], TrainingConfig(), "float32")
    separate = Muon(apart, [Blocks()] * len(apart), TrainingConfig(), "float32")
    for rate in (0.3, 0.2):
        together.apply([tf.constant(gradient)], tf.constant(rate))
        separate.apply([tf.constant(part) for part in parts(gradient)], tf.constant(rate))
    for block, matrix in zip(parts(whole[0].numpy()), apart, strict=True):
        np.testing.assert_allclose(block, matrix, rtol=1e-5, atol=1e-6)
    assert np.abs(whole[0].numpy() - start).max() > 0.1


def test_heads_are_blocks_of_the_matrices_of_attention() -> None:
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "d_ff": 16, "heads": 2, "head_size": 3}
    model = build_model(ModelConfig.model_validate(sizes), 20, 30, "float32")
    blocks = {"/".join(v.path.split("/")[1:]): v.blocks for v in model.trainable_variables}
    for attention in ("encoder_1/attention", "decoder_1/self_attention", "decoder_1/cross_attention"):
        for name in ("query", "key", "value"):
            assert blocks[f"{attention}/{name}/kernel"] == Blocks(across=2)
        assert blocks[f"{attention}/output/kernel"] == Blocks(down=2)
    assert blocks["encoder_1/feed_forward/inner/kernel"] == blocks["decoder_1/feed_forward/outer/kernel"] == Blocks()
    assert blocks["decoder_1/self_attention/output/bias"] is None


def test_a_matrix_with_zero_gradient_does_not_change() -> None:
    ours = variables()
    before = ours[1].numpy()
    zeros = [tf.zeros_like(gradient) for gradient in gradients(0)]
    make(ours).apply(zeros, tf.constant(0.1))
    np.testing.assert_array_equal(ours[1].numpy(), before)


def test_weight_decay_shrinks_each_matrix_by_rate_times_decay() -> None:
    plain, decayed = variables(), variables()
    make(plain).apply(gradients(0), tf.constant(0.1))
    make(decayed, weight_decay=0.3).apply(gradients(0), tf.constant(0.1))
    for number, start in enumerate(variables()):
        share = 0.03 if len(SHAPES[number]) == 2 else 0.0
        np.testing.assert_allclose(decayed[number], plain[number] - share * start, rtol=1e-4, atol=1e-5)


def test_restore_refuses_the_state_of_another_model() -> None:
    state = make(variables()).state()
    del state["momentum_2"]
    with pytest.raises(ValueError, match=r"of 2 matrices, the model has 3$"):
        make(variables()).restore(state)


@pytest.mark.parametrize(
    ("settings", "left_out"),
    [
        ({"tie_embeddings": "none"}, {"source_embedding", "target_embedding", "output_layer"}),
        ({"tie_embeddings": "none", "positions": "learned"},
         {"source_embedding", "target_embedding", "output_layer", "source_positions", "target_positions"}),
        ({"architecture": "recurrent"}, {"source_embedding", "target_embedding", "output_layer"}),
    ],
    ids=["transformer", "learned positions", "recurrent"],
)  # fmt: skip
def test_all_matrices_but_embeddings_and_the_output_layer_are_hidden(settings: dict, left_out: set[str]) -> None:
    sizes = {"width": 8} if "architecture" in settings else {"d_model": 8, "d_ff": 16, "heads": 2}
    model = build_model(ModelConfig.model_validate({**settings, **sizes}), 20, 30, "float32")
    matrices = [variable for variable in model.trainable_variables if len(variable.shape) == 2]
    not_hidden = {variable.path.split("/")[1] for variable in matrices if variable.blocks is None}
    assert not_hidden == left_out
    assert all(v.blocks is None for v in model.trainable_variables if len(v.shape) != 2)
