"""Damaged, inconsistent and hostile model folders: nmt gives one message, writes no run and executes nothing."""

import importlib.util
import io
import json
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import nmt
from marian_models import npz_folder, safetensors_folder
from safetensors.numpy import load_file, save_file

from nmt.importing.original import our_weights
from nmt.importing.transformers_folder import read_folder
from nmt.models.layers.positions import sinusoidal_encoding

STACKS = ("encoder", "decoder")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {"transformers": safetensors_folder(folder / "whole"), "marian": npz_folder(folder / "marian")}


class Evil:
    """An object whose unpickling writes a file."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("evil"),)


def keys(name: str = "config.json", **changes: Any) -> Callable[[Path], None]:
    """Return a function that changes keys of a JSON file; the value None removes a key."""

    def change(folder: Path) -> None:
        values = json.loads((folder / name).read_text()) | changes
        (folder / name).write_text(json.dumps({key: value for key, value in values.items() if value is not None}))

    return change


def arrays(**changes: Any) -> Callable[[Path], None]:
    """Return a function that changes arrays; the value None removes an array."""

    def change(folder: Path) -> None:
        path = folder / "model.safetensors"
        values = load_file(path) | {name.replace("__", "."): array for name, array in changes.items()}
        save_file({name: array for name, array in values.items() if array is not None}, path)

    return change


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-100])


def ids(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        (folder / "vocab.json").write_text(json.dumps(change(json.loads((folder / "vocab.json").read_text()))))

    return changed


def pickled(folder: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs the extra huggingface: pip install 'nmt[huggingface]'")
    (folder / "model.safetensors").unlink()
    with zipfile.ZipFile(folder / "pytorch_model.bin", "w") as archive:  # the layout of torch.save
        archive.writestr("archive/data.pkl", pickle.dumps({"model.shared.weight": Evil()}, protocol=2))
        archive.writestr("archive/version", "3\n")


def npz(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with np.load(folder / "model.npz") as content:
            np.savez(folder / "model.npz", **(dict(content) | changes))

    return change


def option(old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with np.load(folder / "model.npz") as content:
            values = dict(content)
        text = values["special:model.yml"].tobytes().decode().replace(old, new)
        np.savez(folder / "model.npz", **(values | {"special:model.yml": np.frombuffer(text.encode(), np.int8)}))

    return change


def nested(name: str, depth: int = 500) -> Callable[[Path], None]:
    """Return a function that adds a value of nested lists to a JSON file."""

    def change(folder: Path) -> None:
        text = (folder / name).read_text() if (folder / name).exists() else '{"use_cache": true}'
        (folder / name).write_text(f'{{"more": {"[" * depth}{"]" * depth}, {text.strip()[1:]}')

    return change


def integer_of_digits(count: int) -> Callable[[Path], None]:
    """Return a function that adds an integer of ``count`` digits to config.json."""

    def change(folder: Path) -> None:
        text = (folder / "config.json").read_text()
        (folder / "config.json").write_text(f'{{"more": {"9" * count}, {text.strip()[1:]}')

    return change


LAUGHS = "a0: &a0 ha\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 9)
)


def laughs(folder: Path) -> None:
    (folder / "opus.vocab.yml").write_text(LAUGHS)


def laughs_in_the_description(folder: Path) -> None:
    option("type: transformer\n", f"type: transformer\n{LAUGHS}")(folder)


def forged(folder: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(folder / "model.npz", "a") as archive:
        archive.writestr("huge.npy", header.getvalue())


WRONG = np.zeros([3, 3], np.float32)
CASES: list[tuple[str, Callable[[Path], None], str]] = [
    ("transformers", cut("model.safetensors"), "model.safetensors cannot be read"),
    ("transformers", lambda folder: (folder / "model.safetensors").unlink(), "neither model.safetensors nor"),
    ("transformers", lambda folder: (folder / "source.spm").unlink(), "source.spm is missing"),
    ("transformers", cut("target.spm"), "target.spm"),
    ("transformers", cut("vocab.json"), "vocab.json is damaged"),
    ("transformers", ids(lambda values: values | {"<pad>": 10**9}), "do not have the ids from 0 to"),
    ("transformers", ids(lambda values: values | {"x": -1}), "vocab.json is damaged: its"),
    ("transformers", ids(lambda values: {f"<{key}>": id_ for key, id_ in values.items()}), "has no id <pad>"),
    ("transformers", keys(vocab_size=10**9, d_model=64), "has another shape than its description"),
    ("transformers", keys(d_model="huge"), "d_model Input should be a valid integer"),
    ("transformers", keys(encoder_layers=1000), "has no array model.encoder.layers.2"),
    ("transformers", keys(encoder_attention_heads=5, decoder_attention_heads=5), "heads must divide d_model"),
    ("transformers", keys(encoder_ffn_dim=47), "fc1.weight has another"),
    ("transformers", keys(decoder_start_token_id=10**9), "has no id 1000000000"),
    ("transformers", keys(eos_token_id=7), "other pad_token_id or eos_token_id"),
    ("transformers", keys(model_type="m2m_100", auto_map={"AutoModel": "evil.Model"}), "model_type: m2m_100"),
    ("transformers", keys(activation_function="gelu"), "activation_function: gelu"),
    ("transformers", arrays(model__decoder__layers__0__fc1__weight=WRONG), "fc1.weight has another"),
    ("transformers", arrays(model__decoder__layers__0__fc1__weight=None), "has no array model.decoder.layers.0.fc1"),
    ("transformers", arrays(model__shared__weight=WRONG), "array model.shared.weight has another"),
    ("transformers", arrays(final_logits_bias=WRONG[:1]), "array final_logits_bias has another"),
    ("transformers", arrays(model__decoder__layers__0__fc1__bias=np.full(48, np.nan, np.float32)), "not finite"),
    ("transformers", arrays(model__encoder__layernorm_embedding__weight=WRONG[0]), "for: model.encoder.layernorm"),
    ("transformers", arrays(model__extra__weight=WRONG), "no place for: model.extra.weight"),
    ("transformers", keys(decoder_layers=1), "no place for: model.decoder.layers.1.encoder_attn.k_proj.bias"),
    ("transformers", arrays(lm_head__weight=np.ones([454, 32], np.float32)), "no place for: lm_head.weight"),
    ("transformers", arrays(model__decoder__embed_tokens__weight=WRONG), "no place for: model.decoder.embed_tokens"),
    ("transformers", arrays(model__decoder__embed_positions__weight=WRONG[0]), "for: model.decoder.embed_positions"),
    ("transformers", nested("config.json"), "nested"),
    ("transformers", nested("generation_config.json"), "nested"),
    ("transformers", nested("tokenizer_config.json", 50_000), "tokenizer_config.json is damaged"),
    ("transformers", keys(d_model=10**4000), "d_model"),
    ("transformers", keys(num_beams=10**4000), "beam_size"),
    ("transformers", integer_of_digits(5_000), "config.json is damaged"),
    ("transformers", pickled, "holds more than weights"),
    ("marian", cut("model.npz"), "model.npz is damaged"),
    ("marian", npz(evil=np.array([Evil()], object)), "allow_pickle=False"),
    ("marian", npz(encoder_factor_W=WRONG), "an array 'encoder_factor_W'"),
    ("marian", npz(encoder_l1_ffn_W1=WRONG), "fc1.weight has another"),
    ("marian", forged, "is damaged"),
    ("marian", option("type: transformer", "type: s2s"), "has type: s2s"),
    ("marian", option("transformer-postprocess: dan", "transformer-postprocess: da"), "transformer-postprocess: da."),
    ("marian", option("enc-depth: 2", "enc-depth: -2"), "encoder_layers Input should be"),
    ("marian", lambda folder: (folder / "opus.vocab.yml").write_text("&a [*a, *a]"), "is damaged"),
    ("marian", lambda folder: (folder / "opus.vocab.yml").write_text("!!python/object:os.system {}: 1"), "damaged"),
    ("marian", laughs, "Aliases are not supported"),
    ("marian", laughs_in_the_description, "Aliases are not supported"),
    ("marian", lambda folder: (folder / "opus.vocab.yml").write_text("a: " + "[" * 100_000), "is damaged"),
    ("marian", lambda folder: (folder / "opus.vocab.yml").write_text("a: " + "[" * 30 + "]" * 30), "nested over 20"),
    ("marian", option("enc-depth: 2", "enc-depth: 1"), "has an array 'encoder_l2_"),
    ("marian", npz(encoder_l01_ffn_W1=WRONG), "has an array 'encoder_l01_ffn_W1'"),
    ("marian", npz(**{"special:other": WRONG}), "an array 'special:other'"),
    ("marian", npz(encoder_l1_context_Wq=WRONG), "has an array 'encoder_l1_context_Wq'"),
    ("marian", lambda folder: (folder / "second.npz").touch(), "has 2 files *.npz"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "change", "said"), CASES, ids=[said for _, _, said in CASES])
def test_a_bad_folder_is_refused_in_one_message(
    kind: str, change: Callable[[Path], None], said: str, folders: dict[str, Path], folder: Path
) -> None:
    shutil.copytree(folders[kind], folder / "model")
    change(folder / "model")
    message = nmt("import", "model", cwd=folder, code=2).stderr.strip()
    assert said in message and message.count("nmt: ") == 1
    assert not Path("evil").exists() and not list(Path("checkpoints").rglob("*"))


def test_arrays_that_repeat_weights_are_ignored(folders: dict[str, Path], folder: Path) -> None:
    shutil.copytree(folders["transformers"], folder / "model")
    words = load_file(folder / "model" / "model.safetensors")["model.shared.weight"]
    names = ["lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"]
    table = sinusoidal_encoding(128, 32)
    table = np.concatenate([table[:, ::2], table[:, 1::2]], axis=1)
    copies = dict.fromkeys(names, words) | {f"model.{stack}.embed_positions.weight": table for stack in STACKS}
    arrays(**{name.replace(".", "__"): array for name, array in copies.items()})(folder / "model")
    original = read_folder(folder / "model")
    assert original.arrays.keys() > copies.keys()
    plain = our_weights(read_folder(folders["transformers"]))
    repeated = our_weights(original)
    assert repeated.keys() == plain.keys()
    assert all(np.array_equal(repeated[name], plain[name]) for name in plain)
