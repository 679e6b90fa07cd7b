"""``nmt export`` from its checks to its end: an export is compared, complete or absent, and its card is correct."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import sacrebleu
import sentencepiece
import yaml
from conftest import SHORT_SEARCH, MakeRun, nmt

from nmt.data.dataset import open_dataset
from nmt.data.sources.text_file import TextFile, read_lines
from nmt.decoding.exported import open_export
from nmt.errors import ConflictError, DataError, NmtError
from nmt.export.base import Tags, TrainedModel
from nmt.export.ctranslate2 import CTranslate2Exporter
from nmt.export.export import Export, export_run, find_exporter
from nmt.export.verification import Tolerance
from nmt.runs.directory import Run
from nmt.text.translator import Translator

LICENCE = "CC BY 2.0 | FR"
ANYTHING = Tolerance(bleu=100, agreement=0)


@pytest.fixture(scope="module")
def exported_project(trained_project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the trained project with an export of its run."""
    project = Path(shutil.copytree(trained_project, tmp_path_factory.mktemp("exported") / "project"))
    done = nmt("export", "--to", "ctranslate2", "--languages", "en-de", "--licence", "CC BY 4.0", cwd=project)
    assert re.search(r"Equal to nmt: (\d+) of \1 sentences", done.stdout)
    return project


def test_an_export_translates_as_the_run_without_tensorflow(exported_project: Path, tmp_path: Path) -> None:
    texts = ["im thirsty", "im one two three", "im six xylophone"]
    ours = nmt("translate", *texts, cwd=exported_project)
    theirs = nmt("translate", "--export", "ctranslate2-float32", *texts, cwd=exported_project)
    assert (theirs.stdout, theirs.stderr) == (ours.stdout, ours.stderr)
    shutil.copytree(exported_project / "checkpoints/base/exports/ctranslate2-float32", tmp_path / "elsewhere")
    assert nmt("translate", "--export", "./elsewhere", *texts, cwd=tmp_path).stdout == ours.stdout
    code = (
        "import sys, nmt; nmt.load(export='./elsewhere').translate(['im thirsty']); print('tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "False\n"


def test_scores_n_best_and_evaluation_take_the_export(exported_project: Path) -> None:
    options = ["--beam", "3", "--n-best", "2"]
    ours, theirs = (
        nmt("translate", *export, *options, "im one two three", cwd=exported_project).stdout.splitlines()
        for export in ([], ["--export", "ctranslate2-float32"])
    )
    # Behind the best one, beams of three differ: CTranslate2 keeps other hypotheses of a model of two epochs.
    assert len(theirs) == len(ours) == 2
    for mine, other in zip(ours[:1], theirs[:1], strict=True):
        assert other.split("\t")[::2] == mine.split("\t")[::2]
        # CTranslate2 gives pad and bos no probability; a model of two epochs gives them a little.
        assert float(other.split("\t")[1]) == pytest.approx(float(mine.split("\t")[1]), abs=0.05)
    arguments = ["evaluate", "--json", "--run", "base", "--export", "ctranslate2-float32", "--resamples", "0"]
    record = json.loads(nmt(*arguments, cwd=exported_project).stdout)
    assert [system["name"] for system in record["systems"]] == ["base", "base/ctranslate2-float32"]
    assert record["scores"]["systems"]["base"] == record["scores"]["systems"]["base/ctranslate2-float32"]


@pytest.mark.parametrize("export", [[], ["--export", "ctranslate2-float32"]])
def test_both_engines_carry_placeholders_and_tags_and_keep_each_term(exported_project: Path, export: list[str]) -> None:
    (exported_project / "terms.tsv").write_text("two\tsieben\n")
    texts = ["one {name} two , %s", 'im <a title="one > two">two</a> one', "im two one two", "im %s , <b/> , {x}, one"]
    done = nmt("translate", *export, "--glossary", "terms.tsv", *texts, cwd=exported_project)
    named, quoted, doubled, commas = done.stdout.splitlines()
    assert named.count("{name}") == named.count("%s") == 1
    assert quoted.count('<a title="one > two">') == quoted.count("</a>") == 1
    assert doubled.split().count("sieben") == 2
    assert all(commas.count(piece) == 1 for piece in ("%s", "<b/>", "{x}"))
    plain = [re.sub(r"<[^<>]*(?:\"[^\"]*\"[^<>]*)?>|\{\w+\}|%s", "", line) for line in (named, quoted)]
    assert all("sieben" in re.findall(r"\w+", line) for line in plain)


@pytest.mark.slow
def test_bench_compares_the_run_with_its_export(exported_project: Path) -> None:
    bench = json.loads(nmt("bench", "--run", "base", "--turns", "1", "--json", cwd=exported_project).stdout)
    engines = ("TensorFlow float32", "TensorFlow bfloat16", "CTranslate2 float32")
    assert [speed["name"] for speed in bench] == [f"{e}, {kind}" for e in engines for kind in ("greedy", "beam 5")]


Exported = tuple[Run, Export]


@pytest.fixture(scope="module")
def made() -> list[Exported]:
    return []


@pytest.fixture
def exported(make_run: MakeRun, made: list[Exported]) -> Exported:
    """A run with random weights on subwords of one vocabulary, and its export, made once."""
    if not made:
        run = make_run("subword", tie_embeddings="all")
        made.append((run, export_run(run, CTranslate2Exporter(), licence=LICENCE)))
    return made[0]


def test_the_card_says_what_was_exported(exported: Exported) -> None:
    run, export = exported
    card = (export.folder / "README.md").read_text()
    header = yaml.safe_load(card.split("---\n")[1])
    assert header["language"] == ["en", "de"] and header["license"] == LICENCE
    model = TrainedModel.of(run, None)
    assert model.manifest.corpus.sha256 in card
    assert "| licence | CC BY 2.0 \\| FR |" in card
    assert "| languages | en to de |" in card
    folder = Path("data/subword")
    test = [read_lines(TextFile(folder / f"test.{side}.txt")) for side in ("source", "target")]
    metric, translations = sacrebleu.BLEU(), CTranslate2Exporter().translate(model, export.folder, test[0])
    assert f"| test | {len(test[0])} | CTranslate2 | {metric.corpus_score(translations, [test[1]]).score:.1f} |" in card
    assert str(metric.get_signature()) in card


def test_the_python_code_of_the_card_runs_without_nmt(exported: Exported) -> None:
    run, export = exported
    [code] = re.findall(r"```python\n(.*?)```", (export.folder / "README.md").read_text(), re.S)
    code = code.replace("FOLDER", str(export.folder)).replace("SENTENCE", "im\u00a0 one two!")
    code = code.replace("beam_size=1", "beam_size=1, max_decoding_length=5") + "import sys\nprint('nmt' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    translation, imported = done.stdout.splitlines()
    [ours] = CTranslate2Exporter().translate(TrainedModel.of(run, None), export.folder, ["im one two!"])
    assert translation and ours.startswith(translation.rstrip("\ufffd")) and imported == "False"


class Changed(CTranslate2Exporter):
    """Exporter whose consumer translates differently."""

    change: Callable[[list[str]], list[str]]

    def translate(self, model: TrainedModel, folder: Path, texts: list[str], tags: Tags = ()) -> list[str]:
        return self.change(super().translate(model, folder, texts, tags))


def test_an_export_that_differs_is_not_written(exported: Exported, tmp_path: Path) -> None:
    (run, _), wrong, output = exported, Changed(), tmp_path / "model"
    wrong.change = lambda right: [right[0], "something else", *right[2:]]
    with pytest.raises(DataError, match=r"1 of \d+ validation sentences are\s+translated differently") as raised:
        export_run(run, wrong, output=output)
    assert "sentence 2" in str(raised.value) and "CTranslate2  something else" in str(raised.value)
    assert not list(tmp_path.iterdir())
    assert export_run(run, wrong, output=output, tolerance=Tolerance(different=1)).comparison.different == 1


@pytest.mark.slow
def test_a_quantized_export_may_lose_a_stated_amount_of_bleu(exported: Exported, tmp_path: Path) -> None:
    run, noise = exported[0], Changed("int8")
    noise.change = lambda right: ["\u00e6\u0153"] * len(right)
    with pytest.raises(DataError, match=r"The export in int8 loses \d\.\d+ BLEU on the validation split"):
        export_run(run, noise, output=tmp_path / "noise", tolerance=Tolerance(bleu=-0.1))  # even equal ones lose more
    # A run that has hardly learned has no BLEU to lose.
    with pytest.raises(DataError, match=r"The export in int8 does not translate as the run does: .* its chrF is 0\.0"):
        export_run(run, noise, output=tmp_path / "noise")
    assert not list(tmp_path.iterdir())
    assert export_run(run, CTranslate2Exporter("int8"), tolerance=ANYTHING).folder.name == "ctranslate2-int8"


def test_a_vocabulary_map_holds_what_training_aligned(exported: Exported) -> None:
    run, _ = exported
    mapped = export_run(run, find_exporter("ctranslate2", with_map=True), tolerance=ANYTHING).folder
    assert mapped.name == "ctranslate2-float32-map"
    model = TrainedModel.of(run, None)
    frequent, *rows = (mapped / "vmap.txt").read_text().splitlines()
    assert frequent.startswith("\t")
    common = set(frequent.split())
    pieces = set(model.target.pieces(range(model.target.size)))
    train = open_dataset("subword").split("train")
    seen = {model.target.pieces([id_])[0] for id_ in train.target.tokens[:].tolist()}
    for row in rows:
        source, _, targets = row.partition("\t")
        assert source in pieces and set(targets.split()) <= seen
    assert common == seen  # fewer than the map may have
    for translation in Translator.open(open_export(mapped)).translate_details(["im one two!", "im thirsty!"]):
        assert set(model.target.pieces(translation.ids)) <= seen | {"</s>", "<unk>"}


def test_a_damaged_export_is_refused(exported: Exported, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(exported[1].folder, tmp_path / "copied"))
    values = json.loads((copied / "export.json").read_text())
    for changed, message in (
        ({"format": 3}, "has format 3"),
        ({"files": {"../../config.yaml": "0"}}, "is outside the folder"),
        ({"epoch": None}, "is damaged"),
        ({"files": {"nothing.txt": "0"}}, "nothing.txt is missing"),
    ):
        (copied / "export.json").write_text(json.dumps(values | changed))
        with pytest.raises(DataError, match=message):
            open_export(copied)


@pytest.mark.slow
@pytest.mark.parametrize("overwrite", [False, True])
def test_an_export_written_meanwhile_stays(make_run: MakeRun, overwrite: bool) -> None:
    run = make_run("word")
    if overwrite:
        export_run(run, CTranslate2Exporter())
    other: dict[Path, bytes] = {}

    def meanwhile(step: str) -> None:
        if not other:
            exported = export_run(run, CTranslate2Exporter(), overwrite=overwrite, licence="CC BY 4.0")
            other.update({path: path.read_bytes() for path in exported.folder.rglob("*") if path.is_file()})

    with pytest.raises(ConflictError, match="ctranslate2-float32 was changed by another process meanwhile"):
        export_run(run, CTranslate2Exporter(), overwrite=overwrite, report=meanwhile)
    assert {path: path.read_bytes() for path in (run.folder / "exports").rglob("*") if path.is_file()} == other


def test_argos_package_holds_what_argos_translate_installs(exported: Exported, tmp_path: Path) -> None:
    run, _ = exported
    [package] = export_run(run, find_exporter("argos", "float32")).folder.glob("*.argosmodel")
    assert package.name == "translate-en_de-1_0.argosmodel"
    with zipfile.ZipFile(package) as archive:
        assert {Path(name).parts[0] for name in archive.namelist()} == {package.stem}
        archive.extractall(tmp_path)
    metadata = json.loads((tmp_path / package.stem / "metadata.json").read_text())
    assert (metadata["from_code"], metadata["to_code"]) == ("en", "de")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / package.stem / "sentencepiece.model"))
    assert pieces.encode("im\u00a0 one two!") == TrainedModel.of(run, None).source.encode("im\u00a0 one two!")


def test_argos_which_lets_translations_repeat_is_compared_with_such_translations(make_run: MakeRun) -> None:
    run = make_run("subword", {**SHORT_SEARCH, "no_repeat_ngram_size": 1}, tie_embeddings="all")
    assert export_run(run, find_exporter("argos", "float32")).comparison.different == 0


def test_argos_refuses_a_vocabulary_for_each_side(make_run: MakeRun) -> None:
    with pytest.raises(NmtError, match="a vocabulary for each side"):
        find_exporter("argos").check(TrainedModel.of(make_run("separate"), None))
