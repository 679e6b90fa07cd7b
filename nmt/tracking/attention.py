"""Pictures of attention, kept in the run: a tracker that begins anew gets those of earlier epochs too."""

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from nmt.plotting.alignment import draw_alignment
from nmt.plotting.figures import empty_figure
from nmt.plotting.style import missing_characters_as_boxes
from nmt.runs.directory import Run
from nmt.runs.metrics import SampleAttention
from nmt.storage.atomic import write_bytes

DOTS_PER_INCH = 72
FILE = re.compile(r"step-(\d+)\.(\d+)\.png")


def draw(attention: SampleAttention, heading: str, details: str) -> bytes:
    """Return the picture of the attention of a translation to its source, as PNG."""
    figure = empty_figure()
    figure.set_dpi(DOTS_PER_INCH)
    draw_alignment(figure, attention.source, attention.target, attention.weights, heading, details)
    content = io.BytesIO()
    with missing_characters_as_boxes():
        figure.savefig(content, format="png")
    return content.getvalue()


def keep(run: Run, step: int, pictures: Sequence[bytes]) -> None:
    """Write the pictures of an epoch that ended with a step."""
    for number, png in enumerate(pictures, start=1):
        write_bytes(run.attention_path / f"step-{step:08d}.{number}.png", png)


def kept(run: Run) -> Iterator[tuple[int, int, Path]]:
    """Yield step, number of the sentence from 1, and file of the pictures of a run, in their order."""
    for path in sorted(run.attention_path.glob("step-*.png")):
        if match := FILE.fullmatch(path.name):
            yield int(match[1]), int(match[2]), path


def remove_all_but(run: Run, steps: set[int]) -> None:
    """Delete the pictures of other steps: a resumed run takes them again."""
    for step, _, path in [*kept(run)]:
        if step not in steps:
            path.unlink()
