"""Figures of the lesson show what the formulas say, the masks of the model, and the embeddings of a run."""

import math
from itertools import combinations

import numpy as np
import pytest
from appearance import problems
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from nmt.config.schema import Config, TransformerConfig
from nmt.errors import DataError
from nmt.models.build import build_model
from nmt.models.layers.attention import causal_mask, padding_mask
from nmt.models.transformer.model import Transformer
from nmt.models.weights import weights_of
from nmt.plotting import sentences, sinusoids, word_map
from nmt.plotting.style import empty_figure
from nmt.plotting.trained import Vocabulary, draw_positions, learned_embeddings, read_vocabulary, read_weights
from nmt.runs.directory import Run, create_run
from nmt.runs.weights import save_weights
from nmt.runtime import keras, tf
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, SPECIAL_PIECES
from nmt.tokenizers.word import WordTokenizer

pytestmark = pytest.mark.usefixtures("folder")
ROBOT = ["I", "am", "a", "robot"]
SIZES = [(1, 2, 10_000.0), (7, 6, 2.5), (100, 512, 10_000.0), (2_000, 16, 100.0)]


def formula(length: int, width: int, base: float) -> np.ndarray:
    """Return the encoding of Vaswani et al. 2017, section 3.5, in float64."""
    found = np.empty((length, width))
    for i in range(width // 2):
        angle = np.arange(length) / base ** (2 * i / width)
        found[:, 2 * i], found[:, 2 * i + 1] = np.sin(angle), np.cos(angle)
    return found


def cosines_of(matrix: np.ndarray) -> np.ndarray:
    rows = matrix / np.linalg.norm(matrix.astype(np.float64), axis=1, keepdims=True)
    return rows @ rows.T


def image_of(axes: Axes) -> AxesImage:
    [image] = axes.get_images()
    return image


def values_of(axes: Axes, shape: tuple[int, int]) -> np.ndarray:
    """Return the matrix of an image, in which a cell may be drawn as several equal ones."""
    drawn = np.asarray(image_of(axes).get_array())
    down, right = drawn.shape[0] // shape[0], drawn.shape[1] // shape[1]
    assert drawn.shape == (down * shape[0], right * shape[1])
    values = drawn[::down, ::right]
    np.testing.assert_array_equal(np.repeat(np.repeat(values, down, axis=0), right, axis=1), drawn)
    assert image_of(axes).get_extent() == [-0.5, shape[1] - 0.5, shape[0] - 0.5, -0.5]
    return values


def texts_in(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


# --- position encodings


@pytest.mark.parametrize(("length", "width", "base"), SIZES)
def test_the_position_matrix_is_the_formula(length: int, width: int, base: float) -> None:
    figure = empty_figure()
    sinusoids.draw_matrix(figure, sinusoids.Encoding(length, width, base))
    np.testing.assert_allclose(values_of(figure.axes[0], (length, width)), formula(length, width, base), atol=2e-4)


def test_a_sinusoid_is_drawn_for_each_position() -> None:
    figure = empty_figure()
    sinusoids.draw_sinusoids(figure, 512, 10_000, [0, 4, 8, 12])
    assert len(figure.axes) == 4
    for axes, position in zip(figure.axes, [0, 4, 8, 12], strict=True):
        [line] = axes.get_lines()
        expected = [math.sin(position / 10_000 ** (2 * i / 512)) for i in range(256)]
        np.testing.assert_allclose(np.asarray(line.get_ydata()), expected, atol=1e-5)
        assert np.asarray(line.get_xdata()).tolist() == list(range(256))


@pytest.mark.parametrize("length", [60, 300])
def test_columns_are_those_of_the_formula_and_marks_are_on_them(length: int) -> None:
    figure = empty_figure()
    encoding = sinusoids.Encoding(length, 32, 10_000)
    sinusoids.draw_columns(figure, encoding, [0, 9, 31], [10, 50])
    expected = formula(length, 32, 10_000)
    for axes, column in zip(figure.axes, [0, 9, 31], strict=True):
        lines = {line.get_label(): line for line in axes.get_lines()}
        np.testing.assert_allclose(np.asarray(lines["_values"].get_ydata()), expected[:, column], atol=1e-4)
        for position in (10, 50):
            mark = lines[f"position {position}"]
            assert np.asarray(mark.get_xdata()).tolist() == [position]
            assert np.asarray(mark.get_ydata())[0] == pytest.approx(expected[position, column], abs=1e-4)


@pytest.mark.parametrize("width", [2, 4, 6, 8, 512, 4_096])
def test_no_column_and_no_position_is_chosen_twice(width: int) -> None:
    columns = sinusoids.column_choice(width, 4)
    assert len(set(columns)) == len(columns) >= 1
    assert all(0 <= column < width and column % 2 == 0 for column in columns)
    assert [sinusoids.spread(length, 4) for length in (1, 2, 100)] == [[0], [0, 1], [0, 33, 66, 99]]


def test_bits_are_the_binary_numbers_and_wavelengths_double_with_them() -> None:
    figure = empty_figure()
    encoding = sinusoids.Encoding(16, 8, 16)
    sinusoids.draw_binary_code(figure, encoding)
    left, right, _ = figure.axes
    code = values_of(left, (16, 4))
    for position, row in enumerate(code):
        assert "".join(str(bit) for bit in row[::-1]) == f"{position:04b}"
    assert texts_in(left) == [str(bit) for row in code for bit in row]
    np.testing.assert_allclose(values_of(right, (16, 8)), formula(16, 8, 16), atol=1e-5)
    lengths = [encoding.wavelength(column) for column in range(0, 8, 2)]
    assert lengths == pytest.approx([2 * math.pi * 2**pair for pair in range(4)], rel=1e-6)


@pytest.mark.parametrize(("length", "width", "base"), [(1, 2, 100.0), (40, 64, 10_000.0)])
def test_the_similarity_of_positions_is_the_cosine_of_their_encodings(length: int, width: int, base: float) -> None:
    figure = empty_figure()
    sinusoids.draw_similarity(figure, sinusoids.Encoding(length, width, base), sinusoids.spread(length, 4))
    drawn = values_of(figure.axes[0], (length, length))
    np.testing.assert_allclose(drawn, cosines_of(formula(length, width, base)), atol=1e-5)
    for line, position in zip(figure.axes[1].get_lines(), sinusoids.spread(length, 4), strict=True):
        np.testing.assert_array_equal(np.asarray(line.get_ydata()), drawn[position])


def test_the_table_has_the_values_and_how_to_compute_them() -> None:
    figure = empty_figure()
    sentences.draw_table(figure, ROBOT, 4, 100)
    cells = [text.split("\n") for text in texts_in(figure.axes[0])]
    np.testing.assert_allclose([float(value) for _, value in cells], formula(4, 4, 100).reshape(-1), atol=1e-6)
    assert cells[6][0] == "sin(1 / 10)"
    for formula_, value in cells:
        assert eval(formula_, {"sin": math.sin, "cos": math.cos}) == pytest.approx(float(value), abs=1e-6)


# --- positions of a run


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


def images(run: Run) -> list[np.ndarray]:
    figure = empty_figure()
    draw_positions(figure, run)
    return [np.asarray(panel.get_images()[0].get_array()) for panel in figure.axes if panel.get_images()]


@pytest.mark.parametrize(
    ("section", "width", "base"),
    [
        ({}, 64, 10_000),
        ({"position_base": 50.0}, 64, 50),
        ({"positions": "rotary", "position_base": 100.0}, 16, 100),  # the angles of a head
    ],
)
def test_positions_of_a_run_are_those_of_the_paper(section: dict[str, object], width: int, base: float) -> None:
    model = TransformerConfig.model_validate({"d_model": 64, "heads": 4, **section})
    matrix, similarity = images(create_run("first", Config(model=model), []))
    np.testing.assert_allclose(matrix, formula(100, width, base), atol=1e-4)
    np.testing.assert_allclose(similarity, cosines_of(matrix), atol=1e-5)


def test_learned_positions_are_drawn_for_encoder_and_decoder() -> None:
    run, model = make_run(positions="learned", max_positions=5)
    drawn = images(run)
    arrays = weights_of(model)
    for side, (matrix, similarity) in zip(("source", "target"), (drawn[:2], drawn[2:]), strict=True):
        np.testing.assert_array_equal(matrix, arrays[f"{side}_positions/matrix"])
        np.testing.assert_allclose(similarity, cosines_of(matrix), atol=1e-5)


# --- masks


@pytest.mark.parametrize(("words", "padding"), [(1, 0), (4, 2), (3, 5), (6, 0)])
def test_masks_are_those_of_the_model(words: int, padding: int) -> None:
    length = words + padding
    ids = np.array([[FIRST_WORD] * words + [0] * padding])
    allowed_by_padding = np.broadcast_to(padding_mask(ids).numpy()[0, 0], (length, length))
    allowed_by_order = causal_mask(length).numpy()[0, 0]
    found = [*sentences.masks(words, padding).values()]
    expected = (~allowed_by_padding, ~allowed_by_order, ~(allowed_by_padding & allowed_by_order))
    np.testing.assert_array_equal(found, expected)
    figure = empty_figure()
    sentences.draw_masks(figure, [f"w{n}" for n in range(words)], padding)
    for axes, mask in zip(figure.axes, found, strict=True):
        np.testing.assert_array_equal(np.asarray(image_of(axes).get_array()), mask)
        assert texts_in(axes) == [str(int(cell)) for cell in mask.reshape(-1)]
        labels = [label.get_text() for label in axes.get_xticklabels()]
        assert labels == [f"w{n}" for n in range(words)] + ["(pad)"] * padding


# --- embeddings of phrases


def test_fixed_embeddings_are_those_of_the_lesson() -> None:
    robot, too = sentences.fixed_embeddings(["I am a robot", "You too, robot!"], 5, 6, 10_000)
    assert robot.tokens == ["i", "am", "a", "robot", "(pad)"]
    assert too.tokens == ["you", "too", "robot", "(pad)", "(pad)"]
    np.testing.assert_allclose(
        robot.values[0], [-0.9589243, 1.2836622, 0.23000172, 1.9731903, 0.01077196, 1.9999421], atol=1e-6
    )
    np.testing.assert_allclose(too.values[4], formula(5, 6, 10_000)[[0, 4]].sum(axis=0), atol=1e-6)


def test_word_ids_are_those_of_the_text_layer_of_keras() -> None:
    phrases = [
        "To be, or not to be: that's the question!", "the slings & arrows of outrageous fortune",
        "Or to take arms against a sea of troubles", "and, by opposing, end them",
    ]  # fmt: skip
    layer = keras.layers.TextVectorization()
    layer.adapt(phrases)
    found = sentences.word_ids([sentences.words_of(phrase) for phrase in phrases])
    assert ["", "[UNK]", *found] == layer.get_vocabulary()


def test_embeddings_stand_side_by_side_with_their_tokens() -> None:
    figure = empty_figure()
    row = sentences.fixed_embeddings(["a b", "c"], None, 4, 100)
    sentences.draw_embeddings(figure, [("fixed", row)], "details")
    panels = figure.axes[:2]
    for axes, embedded in zip(panels, row, strict=True):
        np.testing.assert_array_equal(values_of(axes, (2, 4)), embedded.values)
        assert [label.get_text() for label in axes.get_yticklabels()] == embedded.tokens
    assert image_of(panels[0]).get_clim() == image_of(panels[1]).get_clim()


@pytest.mark.parametrize(
    "section",
    [
        {},
        {"positions": "learned", "max_positions": 6, "scale_embeddings": False},
        {"position_base": 20.0, "source_bos": False},
        {"positions": "rotary"},
    ],
)
def test_learned_embeddings_are_what_the_encoder_reads(section: dict[str, object]) -> None:
    run, model = make_run(**section)
    weights = read_weights(run)
    [embedded] = learned_embeddings(["I'm thirsty"], weights, read_vocabulary(weights, "source"))
    ids = [4, 5, EOS] if section.keys() & {"source_bos"} else [BOS, 4, 5, EOS]
    expected = model.source_positions(model.source_embedding(tf.constant([ids])), tf.range(len(ids)))
    np.testing.assert_allclose(embedded.values, expected.numpy()[0], atol=1e-6)
    assert embedded.tokens[-3:] == ["im", "thirsty", "</s>"]


def test_a_phrase_that_the_encoder_cannot_read_is_refused() -> None:
    run, _ = make_run(positions="learned", max_positions=4)
    weights = read_weights(run)
    known = read_vocabulary(weights, "source")
    assert len(learned_embeddings(["im thirsty"], weights, known)[0].tokens) == 4
    for phrase in ("im im im", "?!"):
        with pytest.raises(DataError, match="1 to 2 tokens"):
            learned_embeddings([phrase], weights, known)


def test_both_sides_have_their_words_and_vectors() -> None:
    run, model = make_run()
    weights = read_weights(run)
    for side, words in WORDS.items():
        found = read_vocabulary(weights, "source" if side == "source" else "target")
        assert [found.pieces[id_] for id_ in found.words()] == words
        np.testing.assert_array_equal(found.vectors, weights_of(model)[f"{side}_embedding/matrix"])


def test_bytes_are_no_words() -> None:
    pieces = [*SPECIAL_PIECES, "<0x0A>", "a", "<0xFF>", "▁<0x0A>"]
    assert Vocabulary(WordTokenizer(["a"], "none"), pieces, np.zeros((8, 2))).words() == [5, 7]


# --- maps of words


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    random = np.random.default_rng(5)
    words = [f"word{number}" for number in range(60)]
    vectors = random.normal(size=(64, 12)).astype(np.float32)
    return Vocabulary(WordTokenizer(words, "none"), [*SPECIAL_PIECES, *words], vectors)


def test_neighbors_are_those_of_a_search_over_all_words(vocabulary: Vocabulary) -> None:
    among = vocabulary.words()
    assert among == list(range(4, 64))
    cosines = cosines_of(vocabulary.vectors[among]) - 2 * np.eye(60)  # no word is its own neighbour
    order = np.argsort(-cosines)
    for place in (0, 13, 59):
        found = word_map.neighbors(vocabulary.vectors, among[place], among, 7)
        assert list(found) == [among[other] for other in order[place, :7]]
        assert [*found.values()] == pytest.approx(cosines[place, order[place, :7]], abs=1e-5)
    nearest = order[:, 0]
    pairs = [(a, b) for a, b in combinations(range(60), 2) if nearest[a] == b and nearest[b] == a]
    assert word_map.mutual_neighbors(vocabulary.vectors[among]) == pairs


def test_a_word_without_vector_is_near_to_none() -> None:
    vectors = np.array([[0, 0], [1, 0], [1, 1]], np.float32)
    assert word_map.neighbors(vectors, 0, [0, 1, 2], 5) == {1: 0.0, 2: 0.0}


def test_the_projection_has_the_largest_variances_of_the_covariance(vocabulary: Vocabulary) -> None:
    rows = vocabulary.vectors / np.linalg.norm(vocabulary.vectors, axis=1, keepdims=True)
    variances, directions = np.linalg.eigh(np.cov(rows.T, bias=True))
    points, shares = word_map.project(vocabulary.vectors)
    np.testing.assert_allclose(points.var(axis=0), variances[::-1][:2], rtol=1e-4)
    np.testing.assert_allclose(shares, variances[::-1][:2] / variances.sum(), rtol=1e-4)
    centred = (rows - rows.mean(axis=0)) @ directions[:, ::-1][:, :2]
    np.testing.assert_allclose(np.abs(points), np.abs(centred), atol=1e-4)


@pytest.mark.parametrize("given", [0, 12])
def test_no_label_of_a_map_covers_another_label_or_leaves_the_figure(vocabulary: Vocabulary, given: int) -> None:
    figure = empty_figure()
    if given:
        ids = word_map.find_words(vocabulary, [f"word{number}" for number in range(given)], "source")
        word_map.draw_given(figure, vocabulary, ids, 10, "details")
        (legend,) = (axes.get_legend() for axes in figure.axes)
        assert legend is not None
        listed = [text.get_text() for text in legend.get_texts() if text.get_text()]
        assert len(listed) == given * 11
        [(first, cosine)] = word_map.neighbors(vocabulary.vectors, ids[0], vocabulary.words(), 1).items()
        assert listed[:2] == ["word0", f"{cosine:.2f}  {vocabulary.pieces[first]}"]
    else:
        word_map.draw_frequent(figure, vocabulary, 60, "details")
    assert problems(figure) == []
    names = [text for text in texts_in(figure.axes[0]) if text in vocabulary.pieces]
    assert len(names) >= 10
