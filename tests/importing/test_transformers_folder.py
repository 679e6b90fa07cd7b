"""Import of Marian models of transformers: ids, logits and translations stay the same, and the run can be exported."""

import gzip
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import MakeRun, nmt, small_pairs, write_tsv
from marian_models import TAGS, safetensors_folder, write_vocabularies

from nmt.data.manifest import SIDES
from nmt.errors import DataError
from nmt.export import process
from nmt.export.base import TrainedModel
from nmt.export.huggingface import HuggingFaceExporter
from nmt.importing import proof
from nmt.importing.importing import import_model
from nmt.importing.original import sides_of
from nmt.runs.directory import Run
from nmt.runs.origin import read_origin
from nmt.storage.arrays import read_arrays
from nmt.tokenizers.base import EOS
from nmt.tokenizers.registry import load_tokenizer

os.environ["HF_HUB_OFFLINE"] = "1"
FEW = 40
"""A batch of sentences, for comparisons besides the first, of 200: transformers translates a batch in seconds."""
SHAPES: list[dict[str, Any]] = [
    {},
    {"activation_function": "relu", "encoder_layers": 3, "decoder_layers": 1, "scale_embedding": False},
    {"share_encoder_decoder_embeddings": False, "d_model": 48, "activation_function": "silu"},
    {"tie_word_embeddings": False, "encoder_attention_heads": 2, "decoder_attention_heads": 2},
    {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False, "activation_function": "relu"},
]


@pytest.mark.slow
@pytest.mark.usefixtures("transformers")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_logits_and_translations_equal_transformers(
    shape: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shape:
        monkeypatch.setattr(proof, "SENTENCES", FEW)
    run, _ = import_model(safetensors_folder(folder / "model", **shape), "imported")
    origin = read_origin(run.origin_path)
    assert origin is not None and origin.compared_with == "transformers"
    ended = {kind: sum(getattr(result, kind)[-1] == EOS for result in origin.expected) for kind in ("greedy", "beam")}
    print(shape, origin.comparison, ended)
    assert all(count > proof.SENTENCES // 10 for count in ended.values())
    assert len(origin.expected) >= 0.95 * proof.SENTENCES and not any(origin.different.values())
    assert origin.logits is not None and origin.logits < 1e-4


@pytest.mark.slow
@pytest.mark.usefixtures("transformers")
def test_an_import_is_translated_with_fine_tuned_and_exported(folder: Path) -> None:
    safetensors_folder(folder / "model")
    sources, _ = zip(*small_pairs(40), strict=True)
    Path("some.en").write_text("\n".join(sources) + "\n")
    said = nmt("import", "model", "--run", "opus", "--languages", "en-de", "--sentences", "some.en", cwd=folder).stdout
    assert "of 40 sentences differ 0 by source ids" in said and "cc-by-4.0" in said
    # Elsewhere the stored translations speak for the original; those of another model do not.
    expected = "checkpoints/opus/import.json"
    assert "Compared with checkpoints/opus" in nmt("import", "model", "--expected", expected, cwd=folder).stdout
    # An export and its import have the same weights.
    nmt("export", "--run", "opus", "--to", "huggingface", "--output", "out", cwd=folder)
    assert (
        "Imported from model" in Path("out/README.md").read_text()
        and "license: cc-by-4.0" in Path("out/README.md").read_text()
    )
    nmt("import", "out", "--run", "again", cwd=folder)
    before, after = (read_arrays(Run(Path("checkpoints", name)).weights_path(1)) for name in ("opus", "again"))
    assert before.keys() == after.keys() and all(np.array_equal(before[name], after[name]) for name in before)
    nmt("export", "--run", "opus", "--to", "ctranslate2", cwd=folder)
    write_tsv("own.tsv", small_pairs())
    nmt("prepare", "own.tsv", "--tokenizer-of", "opus", cwd=folder)
    training = ["training.epochs=1", "training.warmup_steps=3", "training.peak_learning_rate=0.01"]
    options = [word for key in training for word in ("--set", key)]
    nmt(
        "train", "--config", "finetune.yaml", "--run", "own", "--dataset", "own", "--from", "opus", *options, cwd=folder
    )
    assert Path("checkpoints/own/import.json").read_bytes() == Path(expected).read_bytes()
    tuned = read_arrays(Run(Path("checkpoints/own")).weights_path(1))
    assert tuned.keys() == before.keys() and np.isfinite(tuned["embedding/bias"]).all()
    nmt("export", "--run", "own", "--to", "ctranslate2", "--output", "ct2", cwd=folder)
    assert "Imported from model" in Path("ct2/README.md").read_text()
    assert Path("ct2/run/import.json").is_file()
    nmt("translate", "--run", "own", "--set", "decoding.tag=deu", "im two", cwd=folder)
    refused = nmt("train", "--run", "opus", "--dataset", "own", "--allow-changes", cwd=folder, code=2)
    assert "was imported and has no training state" in refused.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("transformers")
def test_a_wrong_import_is_not_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.importing.transformers_folder.EPSILON", 1e-2)
    with pytest.raises(DataError, match="not equal to the original"):
        import_model(safetensors_folder(folder / "model"), "imported", sentences=["im one", "im two three"])
    assert not Path("checkpoints/imported").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("transformers")
@pytest.mark.parametrize("section", [{"tie_embeddings": "all"}, {"source_bos": False}, {"layer_norm_epsilon": 1e-2}])
def test_our_export_comes_back(
    section: dict[str, Any], make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "SENTENCES", FEW)
    run = make_run("subword" if "tie_embeddings" in section else "separate", **section)
    model = TrainedModel.of(run, None)
    (tmp_path / "out").mkdir()
    HuggingFaceExporter().write(model, tmp_path / "out")
    back, origin = import_model(tmp_path / "out", f"{run.name[:40]}-back")
    assert origin.compared_with and not any(origin.different.values())
    texts = [source for source, _ in small_pairs(60)]
    from nmt.text.translator import Translator

    decoding = model.config.decoding.model_copy(update={"ordinary_text": "none"})
    ours, theirs = (Translator.open(model_run, decoding=decoding).translate(texts) for model_run in (run, back))
    assert ours == theirs


def real_lines(corpora: Path) -> list[tuple[str, str]]:
    files = [(corpora / "multi30k" / f"train.{side}.gz").read_bytes() for side in ("en", "de")]
    sides = [gzip.decompress(file).decode().splitlines() for file in files]
    with zipfile.ZipFile(corpora / "deu-eng.zip") as archive:
        tatoeba = [line.split("\t")[:2] for line in archive.read("deu.txt").decode().splitlines()]
    return [*zip(*(side[:5_000] for side in sides), strict=True), *((a, b) for a, b in tatoeba[-5_000:])]


@pytest.mark.usefixtures("transformers")
def test_ids_equal_marian_tokenizer(folder: Path, corpora: Path) -> None:
    pairs = real_lines(corpora)
    pieces = write_vocabularies(folder / "model", pairs[::2], 4000)
    marks = ["", *(f"{tag} " for tag in TAGS), *TAGS, "漢字 ", "\t½ ﬁ　", "🙂 ", ">>xx "]
    texts = [marks[number % len(marks)] + pair[0] for number, pair in enumerate(pairs)]
    names, vocabulary = ["vocab.json"] * 2, {piece: id_ for id_, piece in enumerate(pieces)}
    special = ["<pad>", "<unk>", "<pad>", "</s>"]
    side, _ = sides_of([folder / "model" / f"{side}.spm" for side in SIDES], names, [vocabulary] * 2, special)
    order = side.order
    side.tokenizer().save(folder / "tokenizer.source.json")
    ours = load_tokenizer(folder / "tokenizer.source.json")
    code = (
        "import json, sys, transformers\nfolder, texts = json.load(sys.stdin)\n"
        "ids = transformers.MarianTokenizer.from_pretrained(folder)(texts)['input_ids']\n"
        "open(sys.argv[1], 'w').write(json.dumps(ids))"
    )
    theirs = process.run_python(HuggingFaceExporter, ["-P", "-c", code], [str(folder / "model"), texts])
    different = [
        text for text, ids in zip(texts, theirs, strict=True) if ids != order[[*ours.encode(text), EOS]].tolist()
    ]
    assert len(texts) == 10_000 and not different
    clean = [pair[0] for pair in pairs]
    assert sum(ours.decode(ours.encode(text)) != ours.normalize(text) for text in clean) == 0


class Scores:
    """Engine that gives two translations the scores of its arguments."""

    def __init__(self, *scores: float) -> None:
        self.scores = scores

    def token_scores(self, sources: list[list[int]], targets: list[list[int]]) -> list[np.ndarray]:
        assert len(sources) == len(targets) == 2
        return [np.array([score / 2] * 2) for score in self.scores]


@pytest.mark.parametrize(("second", "ties"), [(-3.00001, True), (-3.001, False), (-2.999, False), (-7.0, False)])
def test_translations_tie_when_only_rounding_separates_their_scores(second: float, ties: bool) -> None:
    assert proof._tie(Scores(-3.0, second), [5], [6, EOS], [7, EOS]) is ties  # type: ignore[arg-type]
