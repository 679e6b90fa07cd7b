"""``nmt plot alignment``: a run's attention on a sentence, for every architecture with attention."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import nmt as in_a_process
from matplotlib.figure import Figure

import nmt
from nmt.cli.app import main
from nmt.plotting import figures

RECURRENT = """
model: {architecture: recurrent, width: 16, attention: general, step: luong}
training: {epochs: 1, batch_size: 32, schedule: inverse_sqrt, peak_learning_rate: 0.01, warmup_steps: 5}
"""
SENTENCE = "im one two three"
TOKENS = ["im", "one", "two", "three", "</s>"]


@pytest.fixture(scope="module")
def runs(trained_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with "base", "deep" of two layers, and "recurrent"."""
    folder = Path(shutil.copytree(trained_project, tmp_path_factory.mktemp("plot") / "project"))
    (folder / "configs" / "recurrent.yaml").write_text(RECURRENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        nmt.train("base.yaml", run="deep", set={"model.decoder_layers": 2, "training.epochs": 1})
        nmt.train("recurrent.yaml")
    return folder


Plot = Callable[..., tuple[np.ndarray, Figure]]


@pytest.fixture
def plot(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Plot:
    """Return a function that runs ``nmt plot alignment`` with arguments and returns the weights drawn, [T, S]."""
    drawn: list[Figure] = []
    monkeypatch.chdir(runs)
    monkeypatch.setattr(figures, "save", lambda figure, path: drawn.append(figure))

    def run(*arguments: str) -> tuple[np.ndarray, Figure]:
        monkeypatch.setattr(sys, "argv", ["nmt", "plot", "alignment", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        assert not left.value.code
        return np.asarray(drawn[-1].axes[0].get_images()[0].get_array()), drawn[-1]

    return run


def title(figure: Figure) -> str:
    return figure.texts[0].get_text()


@pytest.mark.parametrize(("run", "tokens"), [("base", ["<s>", *TOKENS]), ("recurrent", TOKENS)])
def test_labels_are_the_tokens_that_the_model_reads_and_writes(plot: Plot, run: str, tokens: list[str]) -> None:
    weights, figure = plot("--run", run, SENTENCE)
    matrix = figure.axes[0]
    assert [label.get_text() for label in matrix.get_xticklabels()] == tokens
    [details] = nmt.load(run).translate_details([SENTENCE])
    assert details.text
    expected = [*details.text.split(), *(["</s>"] if details.finished else [])]
    assert [label.get_text() for label in matrix.get_yticklabels()] == expected
    assert weights.shape == (len(expected), len(tokens))
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)


def test_layer_and_head_choose_the_attention(plot: Plot) -> None:
    translator = nmt.load("deep")
    [attention] = translator.attention([SENTENCE], translator.translate_details([SENTENCE]))
    layers = attention.weights
    assert layers.shape[:2] == (2, 4)
    for arguments, expected, name in (
        ((), layers[1].mean(axis=0), "layer 2 of 2, mean of 4 heads"),
        (("--layer", "1"), layers[0].mean(axis=0), "layer 1 of 2, mean of 4 heads"),
        (("--head", "3"), layers[1, 2], "layer 2 of 2, head 3 of 4"),
        (("--layer", "1", "--head", "4"), layers[0, 3], "layer 1 of 2, head 4 of 4"),
    ):
        weights, figure = plot("--run", "deep", *arguments, SENTENCE)
        np.testing.assert_allclose(weights, expected, rtol=1e-4, atol=1e-6)
        assert title(figure) == f"Run deep\nAttention of {name}"
    assert not np.allclose(layers[0, 3], layers[1, 2])


def test_a_recurrent_model_has_one_layer_and_one_head(plot: Plot) -> None:
    weights, figure = plot("--run", "recurrent", SENTENCE)
    assert title(figure) == "Run recurrent\nAttention of layer 1 of 1"
    np.testing.assert_array_equal(plot("--run", "recurrent", "--layer", "1", "--head", "1", SENTENCE)[0], weights)


def test_unknown_words_are_reported_and_shown_as_unknown(plot: Plot, capsys: pytest.CaptureFixture[str]) -> None:
    _, figure = plot("--run", "base", "im xylophone")
    assert "nmt: 'im xylophone': unknown to the model: xylophone\n" in capsys.readouterr().err
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["<s>", "im", "<unk>", "</s>"]


@pytest.mark.slow
def test_it_is_written_where_the_other_figures_are(runs: Path) -> None:
    printed = in_a_process("plot", "alignment", "--run", "recurrent", SENTENCE, cwd=runs).stdout
    assert printed == "checkpoints/recurrent/plots/alignment.png\n"
    assert (runs / printed.strip()).read_bytes().startswith(b"\x89PNG")
    assert in_a_process("plot", "alignment", "--run", "base", "-o", "a.svg", SENTENCE, cwd=runs).stdout == "a.svg\n"
    assert "<svg" in (runs / "a.svg").read_text()
