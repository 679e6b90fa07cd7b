"""Import of Marian's own files, compared with CTranslate2's converter.

The test gives the converter Marian's position vectors and epsilon, which it would replace.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from marian_models import npz_folder

from nmt.importing.importing import import_model
from nmt.runs.origin import read_origin
from nmt.text.translator import Translator
from nmt.tokenizers.base import EOS, FIRST_WORD

ctranslate2 = pytest.importorskip("ctranslate2", reason="needs the extra fast: pip install 'nmt[fast]'")


def marians_positions(count: int, width: int) -> np.ndarray:
    """Return the position vectors [count, width], computed as Marian's sinusoidalPositionEmbeddings does."""
    step = math.log(10000.0) / (width / 2 - 1)
    angles = [[place * math.exp(column * -step) for column in range(width // 2)] for place in range(count)]
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


@pytest.mark.parametrize("activation", ["swish", "relu"])
def test_log_probabilities_equal_ctranslate2(activation: str, folder: Path) -> None:
    model = npz_folder(folder / "model", **{"transformer-ffn-activation": activation})
    run, origin = import_model(model, "imported", licence="MIT")
    assert origin.kind == "marian" and origin.compared_with is None and read_origin(run.origin_path) == origin
    with np.load(model / "model.npz") as content:
        np.savez("with.npz", **content, Wpos=marians_positions(60, 32))
    vocabulary = str(model / "opus.vocab.yml")
    ctranslate2.converters.MarianConverter("with.npz", [vocabulary, vocabulary]).convert("converted")
    config = Path("converted/config.json")
    config.write_text(json.dumps(json.loads(config.read_text()) | {"layer_norm_epsilon": 1e-6}))
    theirs = ctranslate2.Translator("converted")
    ours = Translator.open(run, decoding={"tag": "deu"})
    random = np.random.default_rng(4)
    sides = [
        [random.integers(FIRST_WORD, side.size - 2, random.integers(1, 30)).tolist() for _ in range(20)]
        for side in (ours.source, ours.target)
    ]
    tokens = [[side.pieces(ids) for ids in rows] for side, rows in zip((ours.source, ours.target), sides, strict=True)]
    scores = [sum(result.log_probs) for result in theirs.score_batch(*tokens)]
    token_scores = ours.engine.token_scores(sides[0], [[*ids, EOS] for ids in sides[1]])
    assert [row.sum() for row in token_scores] == pytest.approx(scores, rel=1e-5, abs=1e-3)
