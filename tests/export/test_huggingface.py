"""Exports to transformers have the same logits and translations as nmt, for all options of the Transformer.

Tests that run transformers need the extra huggingface (torch and transformers), and are slow.
"""

import json
import os
import re
import subprocess
import sys
from ast import literal_eval
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import MakeRun, small_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from nmt.errors import NmtError
from nmt.export import process
from nmt.export.base import TrainedModel
from nmt.export.huggingface import HuggingFaceExporter, translations_of, write_tokenizer
from nmt.text.translator import Translator
from nmt.tokenizers.base import BOS, EOS, PAD, UNK

os.environ["HF_HUB_OFFLINE"] = "1"

SENTENCES = ["a dog runs over the green grass", "two men sit", "the dog", "a woman in a red dress sings", "men run"]
OTHERS = ["ein hund rennt", "zwei manner sitzen da", "der hund", "eine frau singt im roten kleid und a dog", "sie"]
TOLERANCE = 2e-5
"""Largest difference of logits with standard deviation 1, by rounding in float32."""
MakeModel = Callable[..., TrainedModel]


SUBWORDS = ["separate", "subword", "bpe", "without-bytes"]


@pytest.fixture
def make_model(make_run: MakeRun) -> MakeModel:
    """Return a function that makes a model with random weights, as ``make_run`` does."""
    return lambda *arguments, **options: TrainedModel.of(make_run(*arguments, **options), None)


def export(model: TrainedModel, folder: Path) -> Path:
    folder.mkdir()
    HuggingFaceExporter().check(model)
    HuggingFaceExporter().write(model, folder)
    return folder


def our_logits(model: TrainedModel) -> Iterator[np.ndarray]:
    """Yield nmt's logits [T, V] of each sentence pair, without padding."""
    from nmt.models.build import build_model
    from nmt.models.weights import set_weights
    from nmt.runtime import tf

    ours = build_model(model.config.model, model.source.size, model.target.size, trained=True)
    set_weights(ours, model.weights())
    for text, translation in zip(SENTENCES, OTHERS, strict=True):
        source = [*([BOS] if model.config.model.reads_bos else []), *model.source.encode(text), EOS]
        target = [BOS, *model.target.encode(translation), EOS]
        states, _ = ours.teacher_forcing(tf.constant([source]), tf.constant([target]), remove_padding=False)
        yield ours.output_projection().logits(states)[0].numpy()


# No test imports PyTorch: this process holds TensorFlow.
LOGITS = """
import json, sys
from pathlib import Path
import torch
from safetensors.numpy import save_file
from nmt.export.huggingface import load
folder, sentences, targets, file, copy = json.load(sys.stdin)
tokenizer, model = load(Path(folder))
inputs = tokenizer(sentences, padding=True, return_tensors="pt")
with torch.inference_mode():
    logits = model(**inputs, decoder_input_ids=torch.tensor(targets)).logits
save_file({"logits": logits.numpy()}, file)
if copy:
    tokenizer.save_pretrained(copy)
    model.save_pretrained(copy)
Path(sys.argv[1]).write_text("null")
"""
TOKENS = """
import json, sys
from pathlib import Path
from nmt.export.huggingface import load_tokenizer
folder, texts, rows = json.load(sys.stdin)
tokenizer = load_tokenizer(Path(folder))
decoded = [tokenizer.decode(ids, skip_special_tokens=True) for ids in rows]
Path(sys.argv[1]).write_text(json.dumps([tokenizer(texts)["input_ids"], decoded]))
"""


def their_logits(folder: Path, model: TrainedModel, copy: Path | None = None) -> Iterator[np.ndarray]:
    """Yield the logits [T, V] of each sentence pair by transformers, from a padded batch of all sentences."""
    targets = [[BOS, *model.target.encode(text)] for text in OTHERS]
    longest = max(map(len, targets))
    padded = [ids + [PAD] * (longest - len(ids)) for ids in targets]
    file = folder.with_name("logits.safetensors")
    request = [str(folder), SENTENCES, padded, str(file), copy and str(copy)]
    process.run_python(HuggingFaceExporter, ["-P", "-c", LOGITS], request)
    for row, ids in zip(load_file(file)["logits"], targets, strict=True):
        yield row[: len(ids), : model.target.size]


def difference(model: TrainedModel, folder: Path, copy: Path | None = None) -> float:
    """Return the largest difference of a logit, in standard deviations of nmt's logits if these exceed 1."""
    pairs = list(zip(our_logits(model), their_logits(folder, model, copy), strict=True))
    scale = max(1.0, float(np.std(np.concatenate([ours.ravel() for ours, _ in pairs]))))
    return max(float(np.abs(ours - theirs).max()) for ours, theirs in pairs) / scale


CASES: list[tuple[str, dict[str, Any]]] = [
    ("subword", {"tie_embeddings": "all"}),
    ("subword", {"tie_embeddings": "all", "layer_norm_epsilon": 1e-2, "scale_embeddings": False}),
    ("separate", {"tie_embeddings": "none", "position_base": 100.0}),
    ("separate", {"attention_scale": "projection", "scale_embeddings": False}),
    ("separate", {"source_bos": False, "activation": "swish", "output_bias": True}),
    ("separate", {"word_embedding": "sinusoidal", "tie_embeddings": "none"}),
    ("separate", {"word_embedding": "sinusoidal", "tie_embeddings": "none", "position_base": 100.0}),
    ("separate", {"positions": "learned", "max_positions": 80}),
    ("separate", {"layer_norm_epsilon": 1e-2}),
    ("separate", {"layer_norm_epsilon": 1e-12, "share_decoder_norm": True}),
    ("separate", {"norm_placement": "pre"}),
    ("subword", {"norm_placement": "pre", "tie_embeddings": "all", "layer_norm_epsilon": 1e-2}),
    ("separate", {"norm_placement": "pre", "tie_embeddings": "none", "layer_norm_epsilon": 1e-2}),
    ("separate", {"norm_placement": "pre", "positions": "learned", "max_positions": 80}),
    ("separate", {"norm_placement": "pre", "positions": "learned", "max_positions": 80, "scale_embeddings": False}),
    ("separate", {"encoder_layers": 3, "decoder_layers": 1, "dropout": 0.3, "attention_dropout": 0.2}),
    *((kind, options) for kind in SUBWORDS for options in ({}, {"norm_placement": "pre", "source_bos": False})),
]
COPIED = ({}, {"norm_placement": "pre"}, {"norm_placement": "pre", "positions": "learned", "max_positions": 80})
"""Options for which a copy that transformers saves is tested too."""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "options"), CASES, ids=str)
def test_logits_are_ours(
    kind: str, options: dict[str, Any], make_model: MakeModel, tmp_path: Path, transformers: Any
) -> None:
    model = make_model(kind, **options)
    folder = export(model, tmp_path / "export")
    copy = tmp_path / "copy" if kind == "separate" and options in COPIED else None
    assert difference(model, folder, copy) < TOLERANCE
    assert copy is None or difference(model, copy) < TOLERANCE


TEXTS = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("abdé <>/s\u3000\t\n\x1c1½ﬁ▁")))
SPELLINGS = st.lists(st.sampled_from(["<s>", "</s>", "<pad>", "<unk>", "dog", "der", "two", "2", "½", ""]))
RAW = st.one_of(TEXTS, SPELLINGS.map(" ".join), SPELLINGS.map("".join))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
@pytest.mark.parametrize("kind", SUBWORDS)
def test_subwords_have_the_same_ids_in_transformers(
    kind: str, make_model: MakeModel, tmp_path: Path, transformers: Any
) -> None:
    model = make_model(kind)
    source, target = model.source, model.target
    write_tokenizer(source, target, tmp_path, bos=True, max_length=100)
    texts = list[str]()

    @settings(max_examples=300, deadline=None)
    @given(RAW.map(source.normalize).filter(lambda text: not text.startswith(">>")))
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    rows = [[id_ for id_ in target.encode(text) if id_ != UNK] for text in texts]
    request = [str(tmp_path), texts, [[BOS, *ids, EOS, PAD] for ids in rows]]
    ids, decoded = process.run_python(HuggingFaceExporter, ["-P", "-c", TOKENS], request)
    assert ids == [[BOS, *source.encode(text), EOS] for text in texts]
    assert decoded == [target.decode(row).strip() for row in rows]


@pytest.mark.slow
def test_translations_are_ours_and_the_documented_lines_run(
    make_model: MakeModel, tmp_path: Path, transformers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, exporter = make_model("separate"), HuggingFaceExporter()
    exporter.write(model, tmp_path)
    texts = [source for source, _ in small_pairs(40)] + ["", "im im im im zzz im", "</s> one", "  One,  two! "]
    as_it_stands = model.config.decoding.model_copy(update={"ordinary_text": "none"})
    ours = Translator.open(model.run, decoding=as_it_stands).translate(texts)
    assert exporter.translate(model, tmp_path, texts) == ours
    [code] = re.findall(r"```python\n(.*?)```", exporter.usage(model), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    code = code.replace("A first sentence.", texts[0])
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert literal_eval(done.stdout.splitlines()[-1])[0].startswith(
        ours[0]
    )  # a model that never ends writes up to its limit


def test_limit_of_each_translation_is_ours(make_model: MakeModel) -> None:
    """A stand-in for transformers repeats a word for ever."""
    model = make_model("separate", {"max_length_ratio": 2.0, "max_length_extra": 10})
    texts = ["the dog", "", "a dog runs over the green grass"]
    short, _, long = (2 * (len(model.source.encode(text)) + 2) + 10 for text in texts)

    class Texts:
        def __call__(self, texts: list[str], **_: Any) -> dict[str, Any]:
            rows = [[BOS, *model.source.encode(text), EOS] for text in texts]
            longest = max(map(len, rows))
            mask = [[1] * len(row) + [0] * (longest - len(row)) for row in rows]
            return {"input_ids": rows, "attention_mask": np.array(mask)}

        def decode(self, ids: list[int], **_: Any) -> str:
            return " ".join(map(str, ids))

    class Repeats:
        def generate(self, *, attention_mask: np.ndarray, max_new_tokens: int, **_: Any) -> np.ndarray:
            return np.array([[BOS] + [7] * max_new_tokens] * len(attention_mask))

    translations = translations_of(Texts(), Repeats(), model, texts, 1024)
    assert [len(text.split()) for text in translations] == [short, 0, long]
    translations = translations_of(Texts(), Repeats(), model, ["the dog"], 7)
    assert [len(text.split()) for text in translations] == [7]


def test_files_hold_our_numbers(make_model: MakeModel, tmp_path: Path) -> None:
    decoding = {"beam_size": 4, "length_penalty": 1.5}
    model = make_model("separate", decoding, dropout=0.3, feed_forward_dropout=0.2)
    folder = export(model, tmp_path / "export")
    config, generation = (json.loads((folder / name).read_text()) for name in ("config.json", "generation_config.json"))
    assert (config["dropout"], config["activation_dropout"]) == (0.3, 0.2)
    assert (generation["num_beams"], generation["length_penalty"]) == (4, 1.5)
    assert generation["suppress_tokens"] == [PAD, BOS]
    weights = load_file(folder / "model.safetensors")
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float32)}
    size = max(model.source.size, model.target.size)
    assert list(np.flatnonzero(weights["final_logits_bias"])) == list(range(model.target.size, size))


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("subword", {"head_size": 4}, "heads x head_size is d_model"),
        ("subword", {"positions": "rotary"}, "adds position vectors to the words"),
        ("subword", {"query_key_norm": True}, "does not normalize queries and keys"),
        ("subword", {"positions": "rotary", "query_key_norm": True}, "sinusoidal and model.query_key_norm: false"),
        ("subword", {"architecture": "recurrent"}, "runs Transformers"),
        ("subword", {"encoder_residual": False}, "model.encoder_residual: false. transformers runs"),
        ("word", {}, "The model has words as tokens"),
        ("ascii-words", {}, "drops whole words with digits"),
    ],
)
def test_what_transformers_cannot_hold_is_refused(
    kind: str, options: dict[str, Any], message: str, make_model: MakeModel
) -> None:
    with pytest.raises(NmtError, match=message):
        HuggingFaceExporter().check(make_model(kind, **options))


def test_usage_says_where_transformers_differs(make_model: MakeModel) -> None:
    def usage(**options: Any) -> str:
        return HuggingFaceExporter().usage(make_model(**options))

    assert "save_pretrained" in usage(positions="learned")
    assert "save_pretrained" not in usage() + usage(positions="learned", norm_placement="pre")
    assert "PegasusForConditionalGeneration" in usage(norm_placement="pre")
