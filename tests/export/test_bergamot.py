"""Export to Bergamot: the file against a reader of its own, the engine fxtranslate, and a way back through Marian."""

import gzip
import itertools
import json
import re
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import yaml
from conftest import MakeRun, nmt, small_pairs, write_tsv
from hypothesis import given
from hypothesis import strategies as st

from nmt.api import load
from nmt.config.transformer import TransformerConfig
from nmt.decoding.bergamot_engine import with_characters
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.errors import NmtError
from nmt.export.base import TrainedModel
from nmt.export.bergamot import REQUIRED, BergamotExporter, marian_arrays, marian_options
from nmt.export.bergamot_activations import ActivationRecorder
from nmt.export.bergamot_format import model_file, shortlist_file, vocabulary_file, vocabulary_order
from nmt.export.marian import position_base
from nmt.importing.importing import import_model
from nmt.runs.directory import find_run
from nmt.runs.weights import WeightsFile
from nmt.serving.models import open_models
from nmt.tokenizers.base import EOS, FIRST_WORD

fxtranslate = pytest.importorskip("fxtranslate", reason="needs the extra bergamot: pip install 'nmt[bergamot]'")

WIDTH = 64
STUDENT = {
    "encoder_layers": 2, "decoder_layers": 2, "d_model": WIDTH, "d_ff": 128, "heads": 4, "output_bias": True,
    "position_base": position_base(WIDTH), **{key: value for key, value in REQUIRED.items() if value is not None},
}  # fmt: skip
TEXTS = [
    "Zwei große Hunde spielen im Schnee.", "我喜欢喝茶。", "القطة تنام على السرير", "मुझे चाय पसंद है।",
    "İstanbul'da yağmur yağıyor.", "ﬁne  ½ spaces\u00a0here", "im one two three", "🙂",
]  # fmt: skip


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run "student", which has learned small pairs, and its export. Do not change it."""
    folder = tmp_path_factory.mktemp("bergamot")
    write_tsv(folder / "pairs.tsv", small_pairs())
    training = {"epochs": 30, "batch_size": 32, "schedule": "linear", "peak_learning_rate": 0.004, "warmup_steps": 30}
    (folder / "student.yaml").write_text(yaml.safe_dump({"model": {**STUDENT, "dropout": 0.0}, "training": training}))
    settings = ["tokenizer=subword", "normalization=nfc", "vocabulary_size=331", "source_language=en"]
    options = [word for setting in [*settings, "target_language=de"] for word in ("--set", f"data.{setting}")]
    nmt("prepare", "pairs.tsv", *options, cwd=folder)
    nmt("train", "--config", "student.yaml", "--run", "student", cwd=folder)
    nmt("export", "--run", "student", "--to", "bergamot", cwd=folder)
    return folder


def exported(learned: Path) -> Path:
    return learned / "checkpoints" / "student" / "exports" / "bergamot"


@pytest.fixture
def random_student(make_run: MakeRun) -> TrainedModel:
    """A student with random weights."""
    return TrainedModel.of(make_run("subword", **STUDENT), None)


def order_of(model: TrainedModel) -> list[int]:
    """Return an order of the vocabulary that is not the tokenizer's."""
    return vocabulary_order(model.source.size, np.array([40, 30, 30, 30, 40, 7], np.uint16))


def section_of(model: TrainedModel) -> TransformerConfig:
    assert isinstance(model.config.model, TransformerConfig)
    return model.config.model


def test_marians_equations_give_the_logits_of_the_run(random_student: TrainedModel) -> None:
    """The forward pass in NumPy knows Marian's names, channels and ids alone."""
    model, order = random_student, order_of(random_student)
    arrays = marian_arrays(section_of(model), model, order)
    marian_ids = {ours: theirs for theirs, ours in enumerate(order)}
    engine = TensorFlowEngine.load(
        model.config, model.source.size, model.target.size, WeightsFile(model.run, model.epoch)
    )
    recorder = ActivationRecorder(arrays, section_of(model).heads)
    for source_text, target_text in small_pairs(8):
        source, target = model.source.encode(source_text), [*model.target.encode(target_text), EOS]
        # Marian has no pad and bos, so probabilities are compared with that of another token.
        prefixes = [[*target[:place], order[2]] for place in range(len(target))]
        [expected] = engine.token_scores([source], [target])
        others = [scores[-1] for scores in engine.token_scores([source] * len(target), prefixes)]
        marian_target = [marian_ids[id_] for id_ in target]
        logits = recorder.logits([*(marian_ids[id_] for id_ in source), 0], marian_target)
        found = logits[range(len(target)), marian_target] - logits[:, 2]
        assert found == pytest.approx(expected - np.array(others), abs=2e-4)
    assert set(recorder.largest()) >= {"none", "decoder_l2_rnn_Wf", "encoder_l1_ffn_W2", "decoder_l1_context_Wo"}


@pytest.mark.usefixtures("folder")
def test_an_export_comes_back_through_the_import_of_marians_files(random_student: TrainedModel, folder: Path) -> None:
    model, order = random_student, order_of(random_student)
    section = section_of(model)
    arrays = marian_arrays(section, model, order)
    options = np.frombuffer(yaml.safe_dump(marian_options(section, arrays)).encode() + b"\0", np.int8)
    (folder / "back").mkdir()
    np.savez(folder / "back" / "model.npz", **arrays, **{"special:model.yml": options})
    (folder / "back" / "vocab.spm").write_bytes(vocabulary_file(model.source, order))  # type: ignore[arg-type]
    run, origin = import_model(folder / "back", "back", licence="MIT", languages=("en", "de"))
    with pytest.raises(NmtError, match=r"was imported.*training\.start_from"):
        BergamotExporter().check(TrainedModel.of(run, None))
    assert origin.kind == "marian" and set(origin.files) == {"model.npz", "vocab.spm"}
    back = TrainedModel.of(run, None)
    scores = []
    for trained in (model, back):
        engine = TensorFlowEngine.load(
            trained.config, trained.source.size, trained.target.size, WeightsFile(trained.run, trained.epoch)
        )
        rows = [trained.source.encode(source) for source, _ in small_pairs(8)]
        targets = [[*trained.target.encode(target), EOS] for _, target in small_pairs(8)]
        scores.append([row.sum() for row in engine.token_scores(rows, targets)])
    # The original gave pad and bos a little probability, and the import gives them none.
    assert scores[1] == pytest.approx(scores[0], abs=0.2)
    assert np.argsort(scores[1]).tolist() == np.argsort(scores[0]).tolist()


def read_items(content: bytes) -> dict[str, tuple[int, tuple[int, ...], bytes]]:
    """Return type, shape and data of each item of a binary model."""
    version, count = struct.unpack_from("<2Q", content)
    assert version == 1
    heads = [struct.unpack_from("<4Q", content, 16 + 32 * number) for number in range(count)]
    place, names, shapes = 16 + 32 * count, [], []
    for length, *_ in heads:
        names.append(content[place : place + length - 1].decode())
        assert content[place + length - 1] == 0
        place += length
    for _, _, rank, _ in heads:
        shapes.append(struct.unpack_from(f"<{rank}i", content, place))
        place += 4 * rank
    (offset,) = struct.unpack_from("<Q", content, place)
    place += 8 + offset
    items = {}
    for name, (_, kind, _, length), shape in zip(names, heads, shapes, strict=True):
        assert place % 256 == 0 and length % 256 == 0
        items[name] = kind, shape, content[place : place + length]
        place += length
    assert place == len(content)
    return items


def test_every_matrix_is_in_the_file_within_half_a_step(random_student: TrainedModel) -> None:
    section = section_of(random_student)
    arrays = marian_arrays(section, random_student, order_of(random_student))
    factors = {name: np.float32(2.5) for name in ("none", "encoder_l1_self_Wq")}
    items = read_items(model_file(arrays, factors, "type: transformer"))
    assert items.pop("special:model.yml")[2].rstrip(b"\0") == b"type: transformer"
    for name in factors:
        assert np.frombuffer(items.pop(f"{name}_QuantMultA")[2], "<f4")[0] == 2.5
    assert items.keys() == arrays.keys()
    for name, (kind, shape, data) in items.items():
        array = arrays[name]
        assert shape == array.shape
        if kind == 0x0404:
            assert np.array_equal(np.frombuffer(data, "<f4", array.size).reshape(shape), array)
            continue
        values = np.frombuffer(data, np.int8, array.size)
        (factor,) = np.frombuffer(data, "<f4", 1, array.size)
        values = values.reshape(shape) if name == "Wemb" else values.reshape(shape[::-1]).T
        assert np.abs(values).max() == 127 and np.abs(values / factor - array).max() <= 0.501 / factor
    assert len(arrays["Wemb"]) % 8 == 0


def test_a_shortlist_holds_the_sorted_candidates_of_each_source_id() -> None:
    content = shortlist_file([[], [9, 4], [5], [], [8, 7, 6]], first=2, best=3)
    magic, _, first, best, offsets, words = struct.unpack_from("<6Q", content)
    assert (magic, first, best, offsets, words) == (0xF11A48D5013417F5, 2, 3, 6, 6)
    starts = struct.unpack_from("<6Q", content, 48)
    ids = struct.unpack_from("<6I", content, 96)
    assert [ids[start:end] for start, end in itertools.pairwise(starts)] == [(), (4, 9), (5,), (), (6, 7, 8)]
    assert len(content) == 96 + 24


@pytest.mark.parametrize("text", TEXTS)
def test_the_vocabulary_splits_text_as_the_run_does(learned: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(learned)
    model = TrainedModel.of(find_run("student"), None)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(exported(learned) / "vocab.ende.spm"))
    assert pieces.eos_id() == 0 and pieces.unk_id() == 1 and pieces.bos_id() == -1
    assert pieces.get_piece_size() % 8 == 0
    assert pieces.encode(text, out_type=str) == model.source.pieces(model.source.encode(text))


def test_fxtranslate_translates_as_the_run_does(learned: Path) -> None:
    sources = "".join(f"{source}\n" for source, _ in small_pairs())
    (learned / "sources.txt").write_text(sources)
    greedy = ["--run", "student", "--ordinary-text", "none", "--input", "sources.txt"]
    ours = nmt("translate", *greedy, cwd=learned).stdout.splitlines()
    theirs = nmt("translate", *greedy, "--export", "bergamot", cwd=learned).stdout.splitlines()
    folder = exported(learned)
    model, vocabulary = ((folder / name).read_bytes() for name in ("model.ende.intgemm.alphas.bin", "vocab.ende.spm"))
    alone = fxtranslate.Translator(model, vocabulary, vocabulary)
    assert theirs == [with_characters(alone.translate(source)) for source in sources.splitlines()]
    shortlist = (folder / "lex.1000.100.ende.s2t.bin").read_bytes()
    short = fxtranslate.Translator(model, vocabulary, vocabulary, shortlist)
    assert [with_characters(short.translate(source)) for source in sources.splitlines()[:50]] == theirs[:50]
    # Only this thread may release them; garbage may be collected by any thread.
    del alone, short
    assert sum(map(str.__eq__, ours, theirs)) >= 0.95 * len(ours)
    assert len(set(ours)) > 0.9 * len(ours)


def test_the_files_are_as_firefox_and_translate_locally_expect_them(learned: Path) -> None:
    folder = exported(learned)
    for name in ("model.ende.intgemm.alphas.bin", "vocab.ende.spm", "lex.1000.100.ende.s2t.bin"):
        packed = folder / "firefox" / f"{name}.gz"
        assert gzip.decompress(packed.read_bytes()) == (folder / name).read_bytes()
    settings = yaml.safe_load((folder / "config.intgemm8bitalpha.yml").read_text())
    paths = [*settings["models"], *settings["vocabs"], settings["shortlist"][0]]
    assert all((folder / path).is_file() for path in paths) and settings["relative-paths"] is True
    info = json.loads((folder / "model_info.json").read_text())
    assert (info["src"], info["trg"], info["shortName"]) == ("en", "de", "en-de-student")


def test_the_script_of_the_model_card_translates(learned: Path) -> None:
    card = (exported(learned) / "README.md").read_text()
    [script] = re.findall(r"```python\n(.*?)```", card, re.S)
    script = script.replace("FOLDER", str(exported(learned))).replace("SENTENCE", "im one two three")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    ours = nmt("translate", "--run", "student", "--export", "bergamot", "im one two three", cwd=learned).stdout
    assert done.stdout == ours and "ich bin" in ours


def test_an_export_evaluates_and_serves_text_but_no_scores(learned: Path) -> None:
    done = nmt("evaluate", "--run", "student", "--export", "bergamot", "--resamples", "0", "--json", cwd=learned)
    systems = json.loads(done.stdout)["scores"]["systems"]
    assert systems["student/bergamot"]["BLEU"]["score"] > 90
    several = ["translate", "--run", "student", "--export", "bergamot", "IM ONE TWO THREE. Im seven one two."]
    assert nmt(*several, cwd=learned).stdout.startswith("ICH BIN ")
    [translation] = json.loads(nmt(*several, "--json", cwd=learned).stdout)["translations"]
    assert translation["score"] is None and translation["text"].startswith("ICH BIN ")
    for options, named in ((["--beam", "5"], "--beam 5"), (["--sample"], "Sampling")):
        assert named in nmt(*several, *options, cwd=learned, code=2).stderr
    scored = [*several[:-1], "--score", "im one two three\tich bin eins zwei drei"]
    assert "no scores" in nmt(*scored, cwd=learned, code=2).stderr


def test_the_gap_from_teacher_to_student_and_to_its_export(learned: Path) -> None:
    """An early epoch stands in for the teacher."""
    command = ["evaluate", "--run", "student", "--teacher", "student:8", "--resamples", "50"]
    record = json.loads(nmt(*command, "--json", "--beam", "2", cwd=learned).stdout)
    names = ["student:8", "student", "student/bergamot"]
    assert [system["name"] for system in record["systems"]] == names
    assert [system["decoding"]["beam_size"] for system in record["systems"]] == [2, 2, 1]
    scores = record["scores"]["systems"]
    for gap, (before, after) in zip(record["gaps"], itertools.pairwise(names), strict=True):
        assert (gap["baseline"], gap["system"]) == (before, after)
        expected = scores[after]["BLEU"]["score"] - scores[before]["BLEU"]["score"]
        assert gap["differences"]["BLEU"] == pytest.approx(expected) and 0 < gap["p_values"]["BLEU"] <= 1
    printed = nmt(*command, "--resamples", "0", cwd=learned).stdout
    assert "from student:8 to student " in printed and "from student to student/bergamot " in printed


def test_several_threads_and_the_service_share_an_export(learned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fxtranslate's translator may be used by the thread alone that made it."""
    monkeypatch.chdir(learned)
    sources = [source for source, _ in small_pairs(20)]
    with load("student", export="bergamot") as translator, ThreadPoolExecutor(4) as threads:
        expected = translator.translate(sources)
        assert list(threads.map(lambda source: translator.translate([source])[0], sources)) == expected
    [model] = open_models(str(exported(learned)), None, {}, 3, {})
    model.warm_up()
    with ThreadPoolExecutor(4) as threads:
        results = threads.map(lambda source: model.translate([source], model.alternatives)[0].translations, sources)
        found = [[(best.text, best.score) for best in translations] for translations in results]
    assert found == [[(text, None)] for text in expected]


@pytest.mark.parametrize("key", [key for key in REQUIRED if key not in ("head_size", "share_decoder_norm")])
def test_a_model_that_the_format_cannot_hold_is_refused_in_words(key: str, make_run: MakeRun) -> None:
    others: dict[str, Any] = {
        "decoder": "attention", "activation": "swish", "attention_scale": "projection", "norm_placement": "pre",
        "layer_norm_epsilon": 1e-3, "word_embedding": "sinusoidal", "tie_embeddings": "output", "positions": "rotary",
    }  # fmt: skip
    value = others.get(key, not REQUIRED[key])
    changed = {**STUDENT, key: value}
    if key == "word_embedding":
        changed |= {"tie_embeddings": "none", "output_bias": False}
    model = TrainedModel.of(make_run("subword", **changed), None)
    with pytest.raises(NmtError, match=f"model.{key}.*student.yaml"):
        BergamotExporter().check(model)


@given(text=st.text(), before=st.sampled_from(["", "a<0x>", "<0xg1>"]))
def test_bytes_become_characters(text: str, before: str) -> None:
    spelled = "".join(f"<0x{byte:02X}>" for byte in text.encode("utf-8", "ignore"))
    assert with_characters(f"{before}{spelled}!") == f"{before}{text.encode('utf-8', 'ignore').decode()}!"


def test_a_run_of_unknown_languages_is_refused(make_run: MakeRun) -> None:
    run = make_run("subword", **STUDENT)
    with pytest.raises(NmtError, match="are unknown"):
        BergamotExporter().check(TrainedModel.of(run, None, ("source", "target")))
    BergamotExporter().check(TrainedModel.of(run, None, ("shp", "es")))


@pytest.mark.parametrize("key", ["d_model", "d_ff"])
def test_a_width_that_the_kernels_cannot_multiply_is_refused(key: str, make_run: MakeRun) -> None:
    changed = {**STUDENT, key: 96, "position_base": position_base(96 if key == "d_model" else WIDTH)}
    with pytest.raises(NmtError, match=f"model.{key}.*96.*multiple of 64"):
        BergamotExporter().check(TrainedModel.of(make_run("subword", **changed), None))


def test_words_have_the_order_of_their_frequency_in_translations() -> None:
    order = vocabulary_order(10, np.array([7, 9, 9, 5, 9, 7], np.uint8))
    assert order == [EOS, 1, 9, 7, 5, 4, 6, 8] and sorted(order[2:]) == list(range(FIRST_WORD, 10))
