"""SavedModel exports translate as nmt does, with TensorFlow alone."""

import functools
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import MakeRun, small_pairs

from nmt.config.schema import Config
from nmt.data.manifest import Direction
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.decoding.translation import SearchOptions
from nmt.errors import DataError
from nmt.export import saved_model
from nmt.export.base import TrainedModel
from nmt.export.export import export_run
from nmt.export.saved_model import SavedModelExporter, TranslationModule, beams_of
from nmt.models.build import build_model
from nmt.models.weights import weights_of
from nmt.runs.directory import Run
from nmt.runs.weights import save_weights
from nmt.runtime import tf
from nmt.text.translator import TextOptions, Translator
from nmt.tokenizers.base import BOS, EOS, PAD
from nmt.tokenizers.registry import fit_tokenizer

EXPORTER = SavedModelExporter()
TRANSFORMER = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "d_ff": 64, "heads": 4}
RECURRENT = {"architecture": "recurrent", "width": 32, "layers": 1}
LUONG = {**RECURRENT, "cell": "lstm", "reverse_source": True, "first_state": "final", "step": "luong"}
WORDS = {"tokenizer": "word", "normalization": "ascii-words"}
SUBWORDS = {"tokenizer": "subword", "normalization": "nfkc", "vocabulary_size": 400}
SHORT = {"max_length_ratio": 1.1, "max_length_extra": 4}

CASES: dict[str, dict[str, Any]] = {
    "post-norm, words, three beams, coverage": {
        "data": WORDS, "model": TRANSFORMER,
        "decoding": {"beam_size": 3, "coverage_penalty": 0.2, "length_penalty": 1.0, **SHORT},
    },
    "pre-norm, learned positions, characters, no bos": {
        "data": {"tokenizer": "char", "normalization": "none"},
        "model": {
            **TRANSFORMER, "norm_placement": "pre", "positions": "learned", "max_positions": 40, "source_bos": False,
        },
    },
    "tied embeddings, subwords": {
        "data": {**SUBWORDS, "joint_vocabulary": True, "byte_fallback": False},
        "model": {**TRANSFORMER, "tie_embeddings": "all"},
    },
    "SSRU, no target bos": {"data": WORDS, "model": {**TRANSFORMER, "decoder": "ssru", "target_bos": False}},
    "separate subwords, BPE, ascii-words, nothing tied": {
        "data": {**SUBWORDS, "subword_model": "bpe", "normalization": "ascii-words"},
        "model": {**TRANSFORMER, "tie_embeddings": "none", "share_decoder_norm": True}, "decoding": SHORT,
    },
    "words, NFKC, sinusoidal embeddings, no length penalty": {
        "data": {**WORDS, "normalization": "nfkc"},
        "model": {
            **TRANSFORMER, "word_embedding": "sinusoidal", "tie_embeddings": "none", "position_base": 50.0,
            "encoder_norm": False, "attention_scale": "projection",
        },
        "decoding": {"beam_size": 2, "length_penalty": 0.0},
    },
    "characters, NFKC": {"data": {"tokenizer": "char", "normalization": "nfkc"}, "model": TRANSFORMER},
    "luong": {
        "data": WORDS, "model": {**LUONG, "attention": "general"},
        "decoding": {"coverage_penalty": 0.1, "beam_size": 4},
    },
    "luong, local windows, input feeding": {
        "data": SUBWORDS, "model": {**LUONG, "attention": "dot", "window": "local-p", "input_feeding": True},
    },
    "bahdanau": {
        "data": WORDS,
        "model": {
            **RECURRENT, "cell": "gru", "bidirectional": True, "first_state": "backward", "attention": "additive",
            "step": "bahdanau",
        },
    },
    "lstm without attention": {"data": WORDS, "model": {**LUONG, "attention": "none", "layers": 2}},
}  # fmt: skip
FAST = "post-norm, words, three beams, coverage"
SENTENCES = [
    "im one two three", "im  thirsty\u00a0", "Three, two... ONE!", "", "\u3000", "\u00efm seven", "zebra x1 one", "two",
    "im four five six seven six five four", "\u4f60\u597d one",
]  # fmt: skip


class Export(NamedTuple):
    """An exported model, with its translator in nmt and its signatures in TensorFlow."""

    model: TrainedModel
    translator: Translator
    """Translator with greedy search."""
    folder: Path
    signatures: Any


def untrained(settings: dict[str, Any], folder: Path) -> tuple[TrainedModel, Translator]:
    """Return a model with random weights, whose translations are long, and its translator."""
    config = Config.model_validate(settings)
    sides = [[source.replace("m", "\u00efm") for source, _ in small_pairs()], [target for _, target in small_pairs()]]
    if config.data.joint_vocabulary:
        sides = [[*sides[0], *sides[1]]] * 2
    source, target = (fit_tokenizer(side, config.data, len(side)) for side in sides)
    model = build_model(config.model, source.size, target.size, seed=3)
    dice = np.random.default_rng(5)
    for weight in model.weights:  # further apart than initial values, so that no two words are nearly as likely
        weight.assign(weight.numpy() * 1.5 + dice.normal(0, 0.1, weight.shape))
    run = Run(folder)
    save_weights(run, weights_of(model), 1)
    directions = [Direction(source="en", target="de")]
    return TrainedModel(run, 1, config, None, directions, source, target, checksum=None), Translator(
        TensorFlowEngine(model, config), source, target, config, 1
    )  # type: ignore[arg-type]


def with_beams(translator: Translator, beams: int) -> Translator:
    """Return a translator of the same model with K beams (1: greedy search) and ``ordinary_text: none``."""
    changes = {"beam_size": beams, "ordinary_text": "none"}
    return translator.reconfigured(translator.config.decoding.model_copy(update=changes))


def export(name: str, folder: Path) -> Export:
    model, translator = untrained(CASES[name], folder / "run")
    EXPORTER.check(model)
    (folder / "export").mkdir()
    EXPORTER.write(model, folder / "export")
    signatures = tf.saved_model.load(str(folder / "export" / "1")).signatures
    return Export(model, with_beams(translator, 1), folder / "export", signatures)


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Export]:
    return functools.cache(lambda name: export(name, tmp_path_factory.mktemp("saved")))


@pytest.fixture(
    scope="module", params=[name if name == FAST else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def exported(request: pytest.FixtureRequest, exports: Callable[[str], Export]) -> Export:
    return exports(request.param)


def padded(rows: list[list[int]], width: int = 0) -> tf.Tensor:
    width = max([width, *map(len, rows)])
    return tf.constant([row + [PAD] * (width - len(row)) for row in rows], tf.int32, [len(rows), width])


def without_padding(ids: np.ndarray) -> list[int]:
    return [id_ for id_ in ids.tolist() if id_ != PAD]


def test_greedy_search_finds_what_nmt_finds(exported: Export) -> None:
    ours = exported.translator.translate_details(SENTENCES)
    encoded = exported.translator.encode(SENTENCES)
    found = exported.signatures["serving_default"](source_ids=padded(encoded))
    ids = [without_padding(row) for row in found["target_ids"].numpy()]
    assert ids == [translation.ids for translation in ours]
    assert max(map(len, ids)) == found["target_ids"].shape[1] > 2
    assert found["target_lengths"].numpy().tolist() == [len(row) - (EOS in row) for row in ids]
    np.testing.assert_allclose(found["scores"], [translation.score for translation in ours], atol=1e-4)


def test_beam_search_finds_the_hypotheses_that_nmt_finds(exported: Export) -> None:
    beams = beams_of(exported.model.config.decoding)
    translator = with_beams(exported.translator, beams)
    encoded = translator.encode(SENTENCES)
    found = exported.signatures["beam"](source_ids=padded(encoded))
    for number, options in enumerate([SearchOptions(n_best=beams, scored=True), SearchOptions(scored=True)]):
        for place, ours in enumerate(translator.find(SENTENCES, TextOptions(options))):
            scores = found["scores"].numpy()[place]
            ids = [without_padding(row) for row in found["target_ids"].numpy()[place]]
            assert not any(row for row, score in zip(ids, scores, strict=True) if np.isneginf(score))
            texts = [translator.target.decode(row) for row in ids]  # of equal ones nmt has the best alone
            kept = [rank for rank, text in enumerate(texts) if np.isfinite(scores[rank]) and text not in texts[:rank]]
            assert number or len(kept) == len(ours)
            kept = kept[: len(ours)]
            assert [ids[rank] for rank in kept] == [translation.ids for translation in ours]
            np.testing.assert_allclose(scores[kept], [translation.score for translation in ours], atol=1e-4)


def test_a_sentence_gives_the_same_alone_and_in_a_batch_with_or_without_special_ids(exported: Export) -> None:
    encoded = exported.translator.encode(SENTENCES)
    for name in ("greedy", "beam"):
        search = exported.signatures[name]
        together = search(source_ids=padded(encoded))
        whole = search(source_ids=padded([[BOS, *ids, EOS] for ids in encoded], 30))
        aligned_right = search(source_ids=padded([[PAD] * (30 - len(ids)) + ids for ids in encoded]))
        for place, ids in enumerate(encoded):
            alone = search(source_ids=padded([ids]))
            for batch in (together, whole, aligned_right):
                length = alone["target_ids"].shape[-1]
                assert (batch["target_ids"][place].numpy()[..., :length] == alone["target_ids"][0].numpy()).all()
                np.testing.assert_allclose(batch["scores"][place], alone["scores"][0], rtol=1e-4, atol=1e-4)


def test_batches_without_sentences_and_sentences_without_ids_are_translated(exported: Export) -> None:
    for name in ("greedy", "beam"):
        for shape in ([0, 0], [0, 3]):
            found = exported.signatures[name](source_ids=tf.zeros(shape, tf.int32))
            assert {part.shape[0] for part in found.values()} == {0}
        found = exported.signatures[name](source_ids=tf.zeros([2, 0], tf.int32))
        assert not tf.size(found["target_ids"]) and not tf.reduce_any(found["target_lengths"] > 0)
        assert found["scores"].numpy().reshape([2, -1])[:, 0].tolist() == [0, 0]


def test_ids_that_the_model_does_not_have_are_refused_in_words(exported: Export) -> None:
    for id_, message in ((exported.model.source.size, "past the end"), (-1, "negative")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            exported.signatures["greedy"](source_ids=padded([[5, id_]]))


@pytest.mark.slow
def test_a_sentence_longer_than_the_model_reads_is_refused_in_words(exports: Callable[[str], Export]) -> None:
    exported = exports("pre-norm, learned positions, characters, no bos")
    assert exported.signatures["greedy"](source_ids=padded([[5] * 39]))["target_ids"].shape[1] == 40
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 39 ids"):
        exported.signatures["greedy"](source_ids=padded([[5] * 40]))
    with pytest.raises(DataError, match="A sentence has more than 39 ids"):
        EXPORTER.translate(exported.model, exported.folder, ["o" * 40])


def test_the_export_names_no_folder_of_this_machine_and_no_layer_of_keras(exported: Export) -> None:
    content = (exported.folder / "1" / "saved_model.pb").read_bytes()
    for trace in (str(exported.model.run.folder), str(Path(__file__).parent.parent), "_tf_keras", "PyFunc"):
        assert trace.encode() not in content
    assert not [path for path in exported.folder.rglob("*") if path.suffix in {".pkl", ".py", ".keras"}]


@pytest.mark.slow
def test_a_run_is_exported_and_compared_with_both_searches(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("word")
    comparison = export_run(run, EXPORTER).comparison
    assert comparison.sentences > 10 and not comparison.different
    monkeypatch.setattr(saved_model, "beams_of", lambda config: 2)
    monkeypatch.setattr(TranslationModule, "beam", lambda module, ids: module._search(tf.reverse(ids, [0]), 2))
    with pytest.raises(DataError, match="The export is not equal to the run"):
        export_run(run, EXPORTER, output=tmp_path / "wrong")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_script_of_the_card_translates_as_nmt_does(exports: Callable[[str], Export]) -> None:
    """The script runs in a process without nmt, as for a reader of the card."""
    exported = exports("tied embeddings, subwords")
    [script] = re.findall(r"```python\n(.*?)```", EXPORTER.usage(exported.model), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"{script}\nassert 'nmt' not in sys.modules"],
        input="".join(f"{sentence}\n" for sentence in SENTENCES),
        capture_output=True, encoding="utf-8", check=False, cwd=exported.folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ours = exported.translator.translate(SENTENCES)
    # sentencepiece drops spaces at the beginning of a text, of which this random model makes some.
    assert [text.strip() for text in done.stdout.split("\n")[:-1]] == [text.strip() for text in ours]


def test_the_usage_describes_the_signatures(exported: Export) -> None:
    rows = [line for line in EXPORTER.usage(exported.model).splitlines() if line.startswith("| `")]
    for name, signature in exported.signatures.items():
        [row] = [row for row in rows if f"`{name}`" in row]
        assert all(f"`{output}` {part.dtype.name} [" in row for output, part in signature.structured_outputs.items())


@pytest.mark.slow
def test_damaged_files_are_reported(exports: Callable[[str], Export], tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"no protocol buffer")
    with pytest.raises(DataError, match="TensorFlow failed: its process ended with exit code 1"):
        EXPORTER.translate(exports(FAST).model, tmp_path, ["one"])
