"""Gallery: every figure of ``nmt plot`` from real small runs, as PNG, SVG and PDF on a page, and its look.

``NMT_GALLERY`` names the folder of the page; by default it is a temporary folder of pytest.
"""

import html
import itertools
import os
import shlex
import sys
from pathlib import Path

import matplotlib as mpl
import pytest
from appearance import fonts_watched, problems
from matplotlib.figure import Figure

import nmt
from nmt.cli.app import main
from nmt.cli.plot.app import SECTIONS
from nmt.data.demo import CORPUS
from nmt.plotting import figures

SENTENCE = '"he wants to drink water"'
# Command lines of each figure after its name.
GALLERY: dict[str, list[str]] = {
    "losses": ["--run scored"],
    "accuracy": ["--run scored"],
    "bleu": ["--run scored"],
    "schedule": ["--run scored", "--run recurrent"],
    "speed": ["--run scored"],
    "positions": ["--run scored", "--run learned"],
    "compare": [
        "scored learned recurrent",
        "scored learned recurrent --by minutes --metric accuracy",
        "scored learned recurrent --by tokens --metric train-loss",
    ],
    "lengths": ["", "--set training.batch_type=tokens --set training.batch_size=500"],
    "by-length": ["--run scored --run recurrent"],
    "attention": [
        f"--run scored {SENTENCE}",
        f"--run recurrent {SENTENCE}",
        f"--run scored --head mean {SENTENCE}",
        f"--run scored --kind decoder --layer all {SENTENCE}",
        f"--run scored --kind encoder --head 2 {SENTENCE}",
    ],
    "position-matrix": [""],
    "sinusoids": [""],
    "position-columns": [""],
    "binary-code": [""],
    "position-similarity": [""],
    "position-table": [""],
    "masks": ['"I am a robot"', '--pad 4 "you too robot"'],
    "embeddings": ['"I am a robot" "you too robot"', '--run scored "he wants to drink" "she drinks water"'],
    "words": ["--run scored"],
}
SUFFIXES = ["png", "svg", "pdf"]  # of the first command line of a figure; of the others a PNG
TRANSFORMER = """
model: {encoder_layers: 2, decoder_layers: 2, d_model: 32, d_ff: 64, heads: 4}
training: {epochs: 4, batch_size: 32, schedule: inverse_sqrt, peak_learning_rate: 0.01, warmup_steps: 40, log_every: 5}
"""
RECURRENT = """
model: {architecture: recurrent, width: 32, attention: general, step: luong}
training: {epochs: 3, batch_size: 32, schedule: cosine, peak_learning_rate: 0.01, warmup_steps: 20, log_every: 5}
"""
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Figures of nmt plot</title>
<style>
body {{ font-family: system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
figure {{ margin: 2rem 0; }} img {{ max-width: 100%; border: 1px solid #ddd; }}
</style>
<h1>Figures of nmt plot</h1>
{sections}
</html>
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the runs "scored" with BLEU of each epoch, "learned" with learned positions, and "recurrent"."""
    folder = tmp_path_factory.mktemp("gallery")
    for name, text in (("transformer", TRANSFORMER), ("recurrent", RECURRENT)):
        (folder / f"{name}.yaml").write_text(text)
    (folder / "pairs.en-de.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs()))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        nmt.prepare("pairs.en-de.tsv")
        nmt.train("transformer.yaml", run="scored", set={"training.decode_validation": 40})
        nmt.train("transformer.yaml", run="learned", set={"model.positions": "learned", "training.epochs": 2})
        nmt.train("recurrent.yaml")
    return folder


def pairs() -> list[tuple[str, str]]:
    """Return pairs of one to four generated sentences each, so that lengths differ."""
    rest = (line.split("\t") for line in CORPUS.read_text().splitlines()[:2400])
    found = []
    while rows := list(itertools.islice(rest, 1 + len(found) % 7 % 4)):
        found.append((" ".join(row[0] for row in rows), " ".join(row[1] for row in rows)))
    return found


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    """The folder of the page."""
    folder = Path(os.environ["NMT_GALLERY"]).resolve() if "NMT_GALLERY" in os.environ else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_every_figure_has_a_place_in_the_gallery() -> None:
    assert [name for names in figure_names().values() for name in names] == list(GALLERY)


def figure_names() -> dict[str, list[str]]:
    """Return the figures of each section of the help page."""
    return {section: [each.__name__.replace("_", "-") for each in figures] for section, figures in SECTIONS.items()}


def test_problems_are_found_and_named() -> None:
    figure = figures.empty_figure()
    axes = figure.add_subplot()
    axes.plot([1, 2, 3], [1, 4, 9], label="a", color="#0072b2")
    axes.plot([1, 2, 3], [2, 3, 4], label="b", color="#0074b4")
    axes.set_xticks(range(1, 4), ["a very long label of a tick " * 2] * 3)
    figure.text(0.98, 0.5, "clipped at the edge")
    figure.text(0.2, 0.5, "\U0001f4f7")
    found = "\n".join(problems(figure))
    assert "'clipped at the edge' leaves the figure" in found
    assert "'a very long label of a tick a very long label of a tick ' overlaps" in found
    assert "a and b are alike in grey" in found
    assert "missing from font" in found


@pytest.mark.slow
def test_every_figure_is_well_drawn_and_on_the_page(runs: Path, gallery: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save = figures.save
    drawn: list[Figure] = []
    suffixes = SUFFIXES

    def save_in_all_formats(figure: Figure, path: Path) -> None:
        drawn.append(figure)
        for suffix in suffixes:
            save(figure, path.with_suffix(f".{suffix}"))

    monkeypatch.chdir(runs)
    monkeypatch.setattr(figures, "save", save_in_all_formats)
    wrong, sections = list[str](), list[str]()
    for section, names in figure_names().items():
        sections.append(f"<h2>{html.escape(section)}</h2>")
        for name in names:
            for number, arguments in enumerate(GALLERY[name], start=1):
                file, suffixes = f"{name}-{number}", SUFFIXES[: 3 if number == 1 else 1]
                line = f"nmt plot {name} {arguments}".strip()
                output = ["--output", str(gallery / f"{file}.png")]
                monkeypatch.setattr(sys, "argv", [*shlex.split(line), *output])
                with fonts_watched() as warned, pytest.raises(SystemExit) as left:
                    main()
                assert not left.value.code, line
                wrong += [f"{line}: {problem}" for problem in [*warned, *problems(drawn[-1])]]
                wrong += [f"{line}: {problem}" for problem in wrong_files(gallery / file, suffixes, drawn[-1])]
                sections.append(entry(line, file, suffixes))
    (gallery / "index.html").write_text(PAGE.format(sections="\n".join(sections)), encoding="utf-8")
    assert len(drawn) == sum(map(len, GALLERY.values()))
    assert not wrong, "\n" + "\n".join(wrong)


def entry(line: str, file: str, suffixes: list[str]) -> str:
    """Return a figure of the page."""
    links = " · ".join(f'<a href="{file}.{suffix}">{suffix.upper()}</a>' for suffix in suffixes)
    return (
        f'<figure><img src="{file}.png" alt="{html.escape(line)}" loading="lazy">'
        f"<figcaption><code>{html.escape(line)}</code> {links}</figcaption></figure>"
    )


def wrong_files(stem: Path, suffixes: list[str], figure: Figure) -> list[str]:
    """Return what is wrong with the files of a figure: not of its size, blank, or with text as outlines."""
    pixels = mpl.image.imread(stem.with_suffix(".png"))
    width, height = (figure.get_size_inches() * figure.dpi).round()
    checks = {
        f"{pixels.shape[1]} x {pixels.shape[0]} pixels": abs(pixels.shape[1] - width) + abs(pixels.shape[0] - height)
        < 3,
        "blank": float(pixels.std()) > 0.01,
    }
    if "svg" in suffixes:
        svg, pdf = stem.with_suffix(".svg").read_text(), stem.with_suffix(".pdf").read_bytes()
        checks |= {
            "no text in SVG": svg.count("<text") > 2,
            "a date in SVG": "<dc:date>" not in svg,
            "no TrueType in PDF": b"/Type3" not in pdf,
            "a date in PDF": b"/CreationDate" not in pdf,
        }
    return [problem for problem, is_fine in checks.items() if not is_fine]
