"""``nmt export`` from its checks to its end: compared, whole or absent, with a card that is true."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import sentencepiece
import yaml
from conftest import MakeRun, nmt

from nmt.data.dataset import open_dataset
from nmt.decoding.ctranslate2_translator import CTranslate2Translator
from nmt.decoding.exported import choose_export, find_export, open_export
from nmt.errors import ConflictError, DataError, NmtError, NotFoundError
from nmt.evaluation.scoring import bleu
from nmt.export.base import TrainedModel
from nmt.export.ctranslate2 import CTranslate2Exporter
from nmt.export.export import export_run, find_exporter
from nmt.export.verification import Tolerance
from nmt.storage.text import read_lines


def test_an_export_translates_as_the_run_without_tensorflow(project: Path) -> None:
    done = nmt("export", "--to", "ctranslate2", "--languages", "en-de", "--licence", "CC BY 4.0", cwd=project)
    assert re.search(r"Equal to nmt: (\d+) of \1 sentences", done.stdout)
    texts = ["im thirsty", "im one two three", "im six xylophone"]
    ours = nmt("translate", *texts, cwd=project)
    theirs = nmt("translate", "--backend", "ctranslate2", *texts, cwd=project)
    assert (theirs.stdout, theirs.stderr) == (ours.stdout, ours.stderr)
    folder = project / "checkpoints" / "base" / "exports" / "ctranslate2-float32"
    moved = project / "elsewhere"
    folder.rename(moved)
    for name in ("data", "checkpoints"):
        (project / name).rename(project / f"{name}-away")
    alone = nmt("translate", "--export", "./elsewhere", *texts, cwd=project)
    assert alone.stdout == ours.stdout
    code = (
        "import sys; from nmt.decoding.export_translator import load_export; "
        f"load_export(None, None, {{}}, {str(moved)!r}).translate(['im thirsty']); print('tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_scores_n_best_and_evaluation_take_the_export(project: Path) -> None:
    nmt("export", "--to", "ctranslate2", cwd=project)
    options = ["--beam", "3", "--n-best", "2", "--alignment"]
    ours, theirs = (
        nmt("translate", *backend, *options, "im one two three", cwd=project).stdout.splitlines()
        for backend in ([], ["--backend", "ctranslate2"])
    )
    for mine, other in zip(ours, theirs, strict=True):
        assert other.split("\t")[::2] == mine.split("\t")[::2]
        # CTranslate2 gives pad and bos no probability; a model of two epochs gives them a little.
        assert float(other.split("\t")[1]) == pytest.approx(float(mine.split("\t")[1]), abs=0.05)
    arguments = ["evaluate", "--json", "--run", "base", "--export", "ctranslate2-float32", "--resamples", "0"]
    record = json.loads(nmt(*arguments, cwd=project).stdout)
    assert [system["name"] for system in record["systems"]] == ["base", "base/ctranslate2-float32"]
    assert record["scores"]["systems"]["base"] == record["scores"]["systems"]["base/ctranslate2-float32"]
    bench = json.loads(nmt("bench", "--run", "base", "--turns", "1", "--json", cwd=project).stdout)
    engines = [(speed["engine"], speed["beam_size"]) for speed in bench]
    assert engines == [
        (engine, beam)
        for engine in ("TensorFlow float32", "TensorFlow bfloat16", "CTranslate2 float32")
        for beam in (1, 5)
    ]


def test_the_card_says_what_was_exported(make_run: MakeRun) -> None:
    run = make_run("subword")
    exported = export_run(run, CTranslate2Exporter(), licence="CC BY 2.0 | FR")
    card = (exported.folder / "README.md").read_text()
    header = yaml.safe_load(card.split("---\n")[1])
    assert header["language"] == ["en", "de"] and header["license"] == "CC BY 2.0 | FR"
    model = TrainedModel.of(run, None)
    assert model.manifest.corpus.sha256 in card
    assert "| licence | CC BY 2.0 \\| FR |" in card
    assert "| languages | en to de |" in card
    folder = Path("data/subword")
    test = read_lines(folder / "test.source.txt"), read_lines(folder / "test.target.txt")
    score, signature = bleu(CTranslate2Exporter().translate(model, exported.folder, test[0]), test[1])
    assert f"| test | {len(test[0])} | CTranslate2 | {score:.1f} |" in card
    assert signature in card


def test_its_python_code_runs_without_nmt(make_run: MakeRun) -> None:
    run = make_run("subword", tie_embeddings="all")
    exported = export_run(run, CTranslate2Exporter())
    [code] = re.findall(r"```python\n(.*?)```", (exported.folder / "README.md").read_text(), re.S)
    code = code.replace("FOLDER", str(exported.folder)).replace("SENTENCE", "im\u00a0 one two!")
    code = code.replace("beam_size=5", "beam_size=1, max_decoding_length=5") + "import sys\nprint('nmt' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    translation, imported = done.stdout.splitlines()
    [ours] = CTranslate2Exporter().translate(TrainedModel.of(run, None), exported.folder, ["im one two!"])
    assert translation and ours.startswith(translation.rstrip("\ufffd")) and imported == "False"


def test_an_export_that_differs_is_not_written(make_run: MakeRun) -> None:
    class Wrong(CTranslate2Exporter):
        def translate(self, model: TrainedModel, folder: Path, texts: list[str]) -> list[str]:
            right = super().translate(model, folder, texts)
            return [right[0], "something else", *right[2:]]

    run = make_run("subword")
    with pytest.raises(DataError, match=r"1 of \d+ validation sentences are\s+translated differently") as raised:
        export_run(run, Wrong())
    assert "sentence 2" in str(raised.value) and "CTranslate2  something else" in str(raised.value)
    assert not (run.folder / "exports").exists() or not list((run.folder / "exports").iterdir())
    assert export_run(run, Wrong(), tolerance=Tolerance(different=1)).comparison.different == 1


def test_a_quantized_export_may_lose_a_stated_amount_of_bleu(make_run: MakeRun) -> None:
    class Empty(CTranslate2Exporter):
        def translate(self, model: TrainedModel, folder: Path, texts: list[str]) -> list[str]:
            return [""] * len(texts)

    run = make_run("word")
    loss = Tolerance(bleu=-0.1)  # even equal translations lose more
    with pytest.raises(DataError, match=r"The export in int8 loses \d\.\d+ BLEU on the validation split"):
        export_run(run, Empty("int8"), tolerance=loss)
    assert export_run(run, CTranslate2Exporter("int8"), tolerance=Tolerance(bleu=100)).folder.name == "ctranslate2-int8"


def test_a_vocabulary_map_holds_what_training_aligned(make_run: MakeRun) -> None:
    run = make_run("subword", tie_embeddings="all")
    exporter = find_exporter("ctranslate2", with_map=True)
    exported = export_run(run, exporter, tolerance=Tolerance(bleu=100))
    assert exported.folder.name == "ctranslate2-float32-map"
    model = TrainedModel.of(run, None)
    frequent, *rows = (exported.folder / "vmap.txt").read_text().splitlines()
    assert frequent.startswith("\t")
    common = set(frequent.split())
    pieces = set(model.target.pieces(range(model.target.size)))
    train = open_dataset("subword").split("train")
    seen = {model.target.pieces([id_])[0] for id_ in train.target.tokens[:].tolist()}
    for row in rows:
        source, _, targets = row.partition("\t")
        assert source in pieces and set(targets.split()) <= seen
    assert common == seen  # fewer than the map may have
    translator = CTranslate2Translator.load(open_export(exported.folder))
    for [translation] in translator.translate_n_best(["im one two!", "im thirsty!"]):
        assert set(model.target.pieces(translation.ids)) <= seen | {"</s>", "<unk>"}


def test_a_vocabulary_map_is_for_ctranslate2() -> None:
    with pytest.raises(NmtError, match="--vocabulary-map is for ctranslate2; received it with --to argos"):
        find_exporter("argos", with_map=True)


def test_exports_are_not_overwritten_unless_asked(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("word")
    first = export_run(run, CTranslate2Exporter())
    with pytest.raises(ConflictError, match="exists already"):
        export_run(run, CTranslate2Exporter())
    assert export_run(run, CTranslate2Exporter(), overwrite=True).folder == first.folder
    (tmp_path / "mine").mkdir()
    with pytest.raises(ConflictError, match="is not an export"):
        export_run(run, CTranslate2Exporter(), output=tmp_path / "mine", overwrite=True)


def test_a_damaged_export_is_refused(make_run: MakeRun) -> None:
    folder = export_run(make_run("word"), CTranslate2Exporter()).folder
    whole = (folder / "model.bin").read_bytes()
    (folder / "model.bin").write_bytes(whole[:-1])
    with pytest.raises(DataError, match=r"model\.bin has changed: its SHA-256"):
        open_export(folder)
    (folder / "model.bin").unlink()
    with pytest.raises(DataError, match=r"model.bin is missing"):
        open_export(folder)
    (folder / "model.bin").write_bytes(whole)
    values = json.loads((folder / "export.json").read_text())
    for changed, message in (
        ({"format": 2}, "has format 2"),
        ({"files": {"../../config.yaml": "0"}}, "is outside the folder"),
        ({"epoch": None}, "is damaged"),
        ({"files": {"nothing.txt": "0"}}, "nothing.txt is missing"),
    ):
        (folder / "export.json").write_text(json.dumps(values | changed))
        with pytest.raises(DataError, match=message):
            open_export(folder)


@pytest.mark.slow
def test_a_killed_export_is_whole_or_absent(project: Path) -> None:
    folder = project / "checkpoints" / "base" / "exports" / "ctranslate2-float32"
    command = [sys.executable, "-m", "nmt", "export", "--to", "ctranslate2", "--overwrite"]
    started = time.monotonic()
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    duration = time.monotonic() - started
    for attempt in range(8):
        process = subprocess.Popen(command, cwd=project, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(duration * (0.45 + 0.07 * attempt))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        open_export(folder)
        done = nmt("translate", "--backend", "ctranslate2", "im thirsty", cwd=project)
        assert done.stdout


@pytest.mark.parametrize("name", ["model.bin", "README.md", "export.json"])
def test_a_full_disk_leaves_no_export(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    run = make_run("word")

    def refused(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    target = {
        "model.bin": "ctranslate2.specs.model_spec.ModelSpec._serialize",
        "README.md": "pathlib.Path.write_text",
        "export.json": "nmt.export.export.write_json",
    }[name]
    with monkeypatch.context() as patch:
        patch.setattr(target, refused)
        with pytest.raises(NmtError, match="cannot be written: No space left on device"):
            export_run(run, CTranslate2Exporter())
    assert not list((run.folder / "exports").iterdir())
    assert open_export(export_run(run, CTranslate2Exporter()).folder)


def test_argos_package_holds_what_argos_translate_installs(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("subword", tie_embeddings="all")
    exported = export_run(run, find_exporter("argos", "float32"))
    [package] = exported.folder.glob("*.argosmodel")
    assert package.name == "translate-en_de-1_0.argosmodel"
    with zipfile.ZipFile(package) as archive:
        assert {Path(name).parts[0] for name in archive.namelist()} == {package.stem}
        archive.extractall(tmp_path)
    metadata = json.loads((tmp_path / package.stem / "metadata.json").read_text())
    assert (metadata["from_code"], metadata["to_code"]) == ("en", "de")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / package.stem / "sentencepiece.model"))
    assert pieces.encode("im\u00a0 one two!") == TrainedModel.of(run, None).source.encode("im\u00a0 one two!")
    again = export_run(run, find_exporter("argos", "float32"), overwrite=True)
    assert next(again.folder.glob("*.argosmodel")).read_bytes() == package.read_bytes()


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [("word", "has words as tokens"), ("char", "has characters as tokens"), ("separate", "a vocabulary for each side")],
)
def test_argos_refuses_what_it_cannot_carry(make_run: MakeRun, tokenizer: str, message: str) -> None:
    with pytest.raises(NmtError, match=message):
        export_run(make_run(tokenizer), find_exporter("argos"))


def test_unknown_formats_are_refused() -> None:
    with pytest.raises(NmtError, match=r"no export format 'onnx'"):
        find_exporter("onnx")
    with pytest.raises(NmtError, match=r"no number format 'int4' \(did you mean 'int"):
        find_exporter("ctranslate2", "int4")


def test_exports_of_other_formats_are_not_translated_with(make_run: MakeRun) -> None:
    folder = export_run(make_run("word"), CTranslate2Exporter()).folder
    values = json.loads((folder / "export.json").read_text())
    (folder / "export.json").write_text(json.dumps(values | {"to": "saved-model"}))
    with pytest.raises(NmtError, match="is an export to saved-model, which nmt does not translate with"):
        choose_export(None, None, f"./{folder}")


def test_a_run_without_export_says_how_to_make_one(make_run: MakeRun) -> None:
    run = make_run("word")
    with pytest.raises(NotFoundError, match=f"nmt export --run {run.name} --to ctranslate2"):
        find_export(run, "ctranslate2")
