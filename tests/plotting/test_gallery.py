"""Gallery: every figure of ``nmt plot`` from real small runs, on a page for a person to judge.

``NMT_GALLERY`` names the folder of the page; by default it is a temporary folder of pytest.
"""

import html
import os
import shlex
from pathlib import Path

import pytest
from appearance import fonts_watched, problems
from conftest import run_nmt
from matplotlib.figure import Figure

import nmt
from nmt.cli.commands.demo import CORPUS
from nmt.cli.plot.app import SECTIONS
from nmt.plotting import style
from nmt.storage.outputs import OutputFile

SENTENCE = '"he wants to drink water"'
# In the order of the help page.
GALLERY = [
    "losses --run scored",
    "accuracy --run scored",
    "bleu --run scored",
    "schedule --run scored",
    "schedule --run recurrent",
    "speed --run scored",
    "positions --run scored",
    "positions --run learned",
    "compare scored learned recurrent",
    "compare scored learned recurrent --by minutes --metric accuracy",
    "compare scored learned recurrent --by tokens --metric train-loss",
    "lengths",
    "lengths --set training.batch_type=tokens --set training.batch_size=500",
    "by-length --run scored --run recurrent",
    f"attention --run scored {SENTENCE}",
    f"attention --run recurrent {SENTENCE}",
    f"attention --run scored --head mean {SENTENCE}",
    f"attention --run scored --kind decoder --layer all {SENTENCE}",
    f"attention --run scored --kind encoder --head 2 {SENTENCE}",
    "words --run scored",
    "position-matrix",
    "sinusoids",
    "position-columns",
    "binary-code",
    "position-similarity",
    "position-table",
    'masks "I am a robot"',
    'masks --pad 4 "you too robot"',
    'embeddings "I am a robot" "you too robot"',
    'embeddings --run scored "he wants to drink" "she drinks water"',
]
TRANSFORMER = """
model: {encoder_layers: 2, decoder_layers: 2, d_model: 32, d_ff: 64, heads: 4}
training: {epochs: 4, batch_size: 32, schedule: inverse_sqrt, peak_learning_rate: 0.01, warmup_steps: 40, log_every: 5}
"""
RECURRENT = """
model: {architecture: recurrent, width: 32, attention: general, step: luong}
training: {epochs: 3, batch_size: 32, schedule: cosine, peak_learning_rate: 0.01, warmup_steps: 20, log_every: 5}
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the runs "scored" with BLEU of each epoch, "learned" with learned positions, and "recurrent"."""
    folder = tmp_path_factory.mktemp("gallery")
    for name, text in (("transformer", TRANSFORMER), ("recurrent", RECURRENT)):
        (folder / f"{name}.yaml").write_text(text)
    (folder / "pairs.en-de.tsv").write_text("\n".join(CORPUS.read_text().splitlines()[:1000]))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        nmt.prepare("pairs.en-de.tsv")
        nmt.train("transformer.yaml", run="scored", set={"training.decode_validation": 40})
        nmt.train("transformer.yaml", run="learned", set={"model.positions": "learned", "training.epochs": 2})
        nmt.train("recurrent.yaml")
    return folder


def test_problems_are_found_and_named() -> None:
    figure = style.empty_figure()
    axes = figure.add_subplot()
    axes.set_xticks(range(1, 4), ["a very long label of a tick " * 2] * 3)
    figure.text(0.98, 0.5, "clipped at the edge")
    figure.text(0.2, 0.5, "\U0001f4f7")
    found = "\n".join(problems(figure))
    assert "'clipped at the edge' leaves the figure" in found
    assert "'a very long label of a tick a very long label of a tick ' overlaps" in found
    assert "missing from font" in found


def test_every_figure_has_a_place_in_the_gallery() -> None:
    names = [each.__name__.replace("_", "-") for figures_of_section in SECTIONS.values() for each in figures_of_section]
    assert list(dict.fromkeys(line.split()[0] for line in GALLERY)) == names


@pytest.mark.slow
def test_every_figure_is_well_drawn(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(os.environ.get("NMT_GALLERY", tmp_path)).resolve()
    save = style.save
    drawn: list[Figure] = []

    def save_and_keep(figure: Figure, output: OutputFile) -> None:
        drawn.append(figure)
        save(figure, output)

    monkeypatch.chdir(runs)
    monkeypatch.setattr(style, "save", save_and_keep)
    wrong, page = list[str](), ['<!doctype html><meta charset="utf-8"><title>Figures of nmt plot</title>']
    for number, line in enumerate(GALLERY):
        with fonts_watched() as warned:
            done = run_nmt("plot", *shlex.split(line), "--output", str(folder / f"{number}.png"))
        assert not done.code, done.err
        assert len(drawn) == number + 1
        wrong += [f"{line}: {problem}" for problem in [*warned, *problems(drawn[-1])]]
        page.append(f'<p><code>nmt plot {html.escape(line)}</code><p><img src="{number}.png" alt="">')
    (folder / "index.html").write_text("\n".join(page), encoding="utf-8")
    assert not wrong, "\n" + "\n".join(wrong)
