"""``nmt plot attention``: a run's attention on a sentence, for every architecture."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ENVIRONMENT, nmt_process, run_nmt
from matplotlib.figure import Figure

import nmt
from nmt.decoding.translation import AttentionMaps, Translation
from nmt.plotting import style
from nmt.runs.directory import Run, find_run
from nmt.text.translator import Translator
from nmt.tokenizers.base import EOS
from nmt.tokenizers.registry import load_tokenizer

RECURRENT = """
model: {architecture: recurrent, width: 16, attention: general, step: luong}
training: {epochs: 1, batch_size: 32, schedule: inverse_sqrt, peak_learning_rate: 0.01, warmup_steps: 5}
"""
SENTENCE = "im one two three"
TOKENS = ["im", "one", "two", "three", "</s>"]


@pytest.fixture(scope="module")
def runs(trained_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with the runs "base", "deep" (two layers) and "recurrent"."""
    folder = Path(shutil.copytree(trained_project, tmp_path_factory.mktemp("plot") / "project"))
    (folder / "configs" / "recurrent.yaml").write_text(RECURRENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        nmt.train("base.yaml", run="deep", set={"model.decoder_layers": 2, "training.epochs": 1})
        nmt.train("recurrent.yaml")
    return folder


Draw = Callable[..., Figure]


@pytest.fixture(scope="module", autouse=True)
def models_loaded_once() -> Iterator[None]:
    """Keep each model that a command loads for the next command, which saves seconds."""
    load, loaded = Translator.open, dict[str, Translator]()

    def load_once(run: Run, *epoch: str | None, **options: Any) -> Translator:
        key = f"{run.name} {epoch} {options}"
        if key not in loaded:
            loaded[key] = load(run, *epoch, **options)
        return loaded[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "open", load_once)
        yield


@pytest.fixture
def draw(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Draw:
    """Return a function that runs ``nmt plot`` with arguments and returns the figure."""
    drawn: list[Figure] = []
    monkeypatch.chdir(runs)
    monkeypatch.setattr(style, "save", lambda figure, path: drawn.append(figure))

    def run(*arguments: str) -> Figure:
        assert run_nmt("plot", *arguments).code == 0
        return drawn[-1]

    return run


def matrices(figure: Figure) -> list[np.ndarray]:
    """Return the drawn matrices of attention weights [T, S], with NaN in blank cells."""
    images = [axes.get_images()[0].get_array() for axes in figure.axes if axes.get_images()]
    return [np.ma.filled(image, np.nan) for image in images]  # type: ignore[no-untyped-call]


def title(figure: Figure) -> str:
    return figure.texts[0].get_text()


def labels(figure: Figure) -> tuple[list[str], list[str]]:
    """Return the tokens at the rows and at the columns of the first matrix."""
    axes = figure.axes[0]
    return [text.get_text() for text in axes.get_yticklabels()], [text.get_text() for text in axes.get_xticklabels()]


def test_a_given_translation_is_read_word_by_word_and_unknown_words_are_shown_as_unknown(draw: Draw) -> None:
    text = "im xylophone three"
    figure = draw("attention", "--run", "deep", "--epoch", "1", "--target", "ich xylophon drei", text)
    assert labels(figure) == (["ich", "<unk>", "drei", "</s>"], ["<s>", "im", "<unk>", "three", "</s>"])
    details = figure.texts[1].get_text().split()
    assert details[:3] == ["run", "deep", "·"]
    assert details[-7:] == ["·", "weights:", "epoch", "1", "·", "translation", "given"]
    translator = nmt.load("deep", 1)
    ids = [*translator.target.encode("ich xylophon drei"), EOS]
    [attention] = translator.attention([text], [Translation("", [], True, ids)])
    np.testing.assert_allclose(matrices(figure), attention.weights[-1], rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def maps(runs: Path) -> AttentionMaps:
    """Return the attention of run "deep" on the sentence and its translation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(runs)
        translator = Translator.open(find_run("deep"))
    [found] = translator.translate_details([SENTENCE])
    return translator.attention_maps(SENTENCE, found)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_a_sheet_has_a_matrix_for_each_head(draw: Draw, maps: AttentionMaps, kind: str) -> None:
    figure = draw("attention", "--run", "deep", "--kind", kind, SENTENCE)
    expected: np.ndarray = getattr(maps, kind)[-1]
    name, layers = {
        "encoder": ("Self-attention of the encoder", 1),
        "decoder": ("Self-attention of the decoder", 2),
        "cross": ("Cross-attention", 2),
    }[kind]
    assert title(figure) == f"{name}, layer {layers} of {layers}"
    assert [axes.get_xlabel() for axes in figure.axes[:4]] == [f"head {n}" for n in (1, 2, 3, 4)]
    assert not np.allclose(expected[0], expected[1])
    heads = np.array(matrices(figure))
    np.testing.assert_allclose(np.nan_to_num(heads), expected, rtol=1e-4, atol=1e-6)
    blank = np.triu(np.ones(heads.shape[1:], bool), 1) if kind == "decoder" else np.zeros(heads.shape[1:], bool)
    np.testing.assert_array_equal(np.isnan(heads), [blank] * 4)
    written = load_tokenizer(find_run("deep").tokenizer_path("target")).pieces(maps.target)
    read, source = ["<s>", *written[:-1]], ["<s>", *TOKENS]
    assert labels(figure) == {"encoder": (source, source), "decoder": (read, read), "cross": (written, source)}[kind]


@pytest.mark.slow
def test_layers_and_heads_of_a_sheet_can_be_chosen(draw: Draw, maps: AttentionMaps) -> None:
    cross = maps.cross
    assert cross is not None and cross.shape[:2] == (2, 4)
    both = [f"layer {n}, head {h}" for n in (1, 2) for h in range(1, 5)]
    for arguments, expected, name, captions in (
        (["--layer", "1"], cross[0], "layer 1 of 2", [f"head {n}" for n in (1, 2, 3, 4)]),
        (["--layer", "all"], cross.reshape(8, *cross.shape[2:]), "all 2 layers", both),
        (["--layer", "all", "--head", "3"], cross[:, 2], "all 2 layers, head 3 of 4", ["layer 1", "layer 2"]),
        (["--head", "3"], cross[1, 2:3], "layer 2 of 2, head 3 of 4", [""]),
        (["--layer", "1", "--head", "4"], cross[0, 3:], "layer 1 of 2, head 4 of 4", [""]),
        (["--head", "mean"], cross[1:].mean(1), "layer 2 of 2, mean of 4 heads", [""]),
        (["--layer", "all", "--head", "mean"], cross.mean(1), "all 2 layers, mean of 4 heads", ["layer 1", "layer 2"]),
    ):
        figure = draw("attention", "--run", "deep", *arguments, SENTENCE)
        assert title(figure) == f"Cross-attention, {name}"
        np.testing.assert_allclose(matrices(figure), expected, rtol=1e-4, atol=1e-6)
        assert [axes.get_xlabel() for axes in figure.axes[:-1]] == captions


def test_the_attention_of_a_recurrent_model_is_a_matrix_alone(draw: Draw) -> None:
    figure = draw("attention", "--run", "recurrent", "--layer", "all", SENTENCE)
    assert title(figure) == "Cross-attention, layer 1 of 1"
    translator = nmt.load("recurrent")
    [found] = translator.translate_details([SENTENCE])
    assert labels(figure) == ([*found.text.split(), *(["</s>"] if found.finished else [])], TOKENS)
    [attention] = translator.attention([SENTENCE], [found])
    np.testing.assert_allclose(matrices(figure), attention.weights[0], rtol=1e-4, atol=1e-6)
    for chosen in (["--head", "mean"], ["--layer", "1", "--head", "1"]):
        again = draw("attention", "--run", "recurrent", *chosen, SENTENCE)
        assert title(again) == title(figure)
        np.testing.assert_array_equal(matrices(figure), matrices(again))


def test_a_recurrent_model_has_no_self_attention(runs: Path) -> None:
    refused = run_nmt("plot", "attention", "--run", "recurrent", "--kind", "encoder", SENTENCE, cwd=runs)
    assert refused.code == 2 and "Run 'recurrent' has no self-attention" in refused.err


def test_it_is_written_where_the_other_figures_are_and_unknown_words_are_reported(runs: Path) -> None:
    printed = run_nmt("plot", "attention", "--run", "recurrent", SENTENCE, cwd=runs).out
    assert printed == "checkpoints/recurrent/plots/attention.png\n"
    assert (runs / printed.strip()).read_bytes().startswith(b"\x89PNG")
    target = ("--target", "ich xylophon")
    done = run_nmt("plot", "attention", "--run", "base", "-o", "a.svg", *target, "im xylophone", cwd=runs)
    assert done.out == "a.svg\n" and "<svg" in (runs / "a.svg").read_text()
    assert [line.rpartition(": ")[2] for line in done.err.splitlines()] == ["xylophone", "xylophon"]


def test_a_backend_that_only_the_notebook_has_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of Jupyter gives all commands its own backend, and nmt may be installed elsewhere."""
    monkeypatch.setitem(ENVIRONMENT, "MPLBACKEND", "module://ipympl.backend_nbagg")
    nmt_process("plot", "sinusoids", cwd=tmp_path)
    assert (tmp_path / "sinusoids.png").is_file()
