"""Import of a student that Marian itself has trained, compared with Marian's scores and translations.

``NMT_CONSUMERS`` names the Python of an environment with pymarian, as ``.ci/run`` makes it.
"""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from conftest import small_pairs

from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.importing.importing import import_model
from nmt.tokenizers.base import EOS

PYTHON = os.environ.get("NMT_CONSUMERS")
MARIAN = "import sys, _pymarian; sys.exit(_pymarian.main(sys.argv[1:]))"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="needs NMT_CONSUMERS, the Python of an environment with pymarian"),
]
TRAINING = {
    "--type": "transformer", "--enc-depth": 2, "--dec-depth": 2, "--dim-emb": 64, "--transformer-dim-ffn": 128,
    "--transformer-heads": 4, "--transformer-decoder-autoreg": "rnn", "--dec-cell": "ssru",
    "--transformer-postprocess": "dan", "--transformer-postprocess-emb": "d", "--transformer-ffn-activation": "relu",
    "--cpu-threads": 1, "--mini-batch": 32, "--maxi-batch": 10, "-w": 500, "--max-length": 50,
    "--label-smoothing": 0.1, "--optimizer": "adam", "--learn-rate": 0.002, "--lr-warmup": 30,
    "--after-batches": 250, "--seed": 1, "--model": "student/model.npz",
}  # fmt: skip


def marian(command: str, *options: object, stdin: str = "") -> str:
    """Run a command of Marian, and return what it prints."""
    words = [str(PYTHON), "-c", MARIAN, command, *map(str, options), "--quiet"]
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("folder")
def test_a_student_of_marian_scores_and_translates_as_in_marian() -> None:
    if subprocess.run([str(PYTHON), "-c", "import _pymarian"], capture_output=True, check=False).returncode:
        pytest.skip("needs pymarian, which has no wheel for this Python")
    sources, targets = zip(*small_pairs(), strict=True)
    Path("student").mkdir()
    for name, lines in (("train.en", sources), ("train.de", targets)):
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    sentencepiece.SentencePieceTrainer.train(
        input="train.en,train.de", model_prefix="student/vocab", vocab_size=120, hard_vocab_limit=False, bos_id=-1,
        eos_id=0, unk_id=1, character_coverage=1.0, minloglevel=2,
    )  # fmt: skip
    vocabulary = Path("student/vocab.model").rename("student/vocab.spm")
    size = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary)).get_piece_size()
    options = [word for option in TRAINING.items() for word in option]
    marian(
        "train", *options, "--tied-embeddings-all", "--train-sets", "train.en", "train.de", "--vocabs", vocabulary,
        vocabulary, "--dim-vocabs", size, size,
    )  # fmt: skip
    for file in Path("student").glob("model.npz.*"):
        file.unlink()

    run, origin = import_model(Path("student"), "imported", licence="MIT")
    assert origin.kind == "marian" and run.config().model.description.startswith("transformer, 2 + 2 layers with SSRU")
    model = ["--vocabs", vocabulary, vocabulary, "--cpu-threads", 1]
    printed = marian(
        "score", "--model", "student/model.npz", *model, "--train-sets", "train.en", "train.de", "--word-scores"
    )  # fmt: skip
    theirs = [[float(score) for score in line.partition("WordScores=")[2].split()] for line in printed.splitlines()]
    decoding = run.config().decoding.model_copy(update={"length_penalty": 0.0, "max_length_extra": 20})
    with SentenceTranslator.open(run, decoding=decoding) as translator:
        rows = [translator.source.encode(source) for source in sources]
        ids = [[*translator.target.encode(target), EOS] for target in targets]
        for found, expected in zip(translator.engine.token_scores(rows, ids), theirs, strict=True):
            assert np.array(expected) == pytest.approx(found, abs=1e-4)
        for beams in (1, 6):
            search = [
                "--beam-size",
                beams,
                "--normalize",
                0,
                "--mini-batch",
                1,
                "--max-length-factor",
                20,
                "--allow-unk",
            ]
            translations = marian(
                "decode", "--models", "student/model.npz", *model, *search, stdin=Path("train.en").read_text()
            ).splitlines()  # fmt: skip
            ours = translator.reconfigured(decoding.model_copy(update={"beam_size": beams})).search(list(sources))
            assert [best.text for best, *_ in ours] == translations
            assert len(set(translations)) > len(sources) / 2
