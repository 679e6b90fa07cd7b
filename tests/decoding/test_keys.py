"""Every key of section decoding can be set by command, and every engine and export applies it or refuses it.

A new key fails here until its declaration in ``config/decoding.py`` says which engines and exports carry it.
"""

import dataclasses
import importlib
import itertools
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import MakeRun, run_nmt

import nmt.api
import nmt.evaluation.evaluate
import nmt.serving.models
from nmt.config.decoding import KEYS, SAMPLING
from nmt.config.loading import change_decoding
from nmt.config.schema import DecodingConfig
from nmt.decoding import ctranslate2_engine, tensorflow_engine
from nmt.decoding.ctranslate2_engine import CTranslate2Engine
from nmt.decoding.search import Hypotheses
from nmt.decoding.translation import SearchOptions
from nmt.errors import ConfigError, NmtError
from nmt.export.base import TrainedModel
from nmt.export.export import EXPORTERS, settings_of
from nmt.export.saved_model import TranslationModule
from nmt.message import OWN_OPTION, option_of
from nmt.models.build import build_model
from nmt.runtime import tf
from nmt.text.translator import TextOptions, Translator
from nmt.tokenizers.base import EOS

TEXTS = ["im one two three!", "im seven!", "im thirsty! im one!"]
START = DecodingConfig(
    beam_size=2, coverage_penalty=0.1, max_length_ratio=1.0, max_length_extra=3, batch_size=2, ordinary_text="none"
)
# Languages choose the tag of a model of several; tests/test_several_languages.py covers them.
KEYS_OF_ALL = [key for key in KEYS if not key.endswith("_language")]
IS_SAMPLED = {key: KEYS[key].searches == (SAMPLING,) for key in KEYS}


def changed(key: str) -> dict[str, Any]:
    """Return a key with a value that differs from the one in ``START``."""
    unlike = {
        "precision": "bfloat16", "top_p": 0.5, "epsilon": 0.5, "ordinary_text": "sentences", "tag": "bt",
        "source_language": "es", "target_language": "gn", "mbr_candidates": 4, "mbr_sampled": True,
    }  # fmt: skip
    others = {"mbr_candidates": 4} if key == "mbr_sampled" else {}
    return others | {key: unlike[key] if key in unlike else getattr(START, key) + 1}


@pytest.fixture(scope="module")
def made() -> list[TrainedModel]:
    return []


@pytest.fixture
def model(make_run: MakeRun, made: list[TrainedModel]) -> TrainedModel:
    if not made:
        made.append(TrainedModel.of(make_run("tagged", norm="pre"), None))
    return made[0]


def with_decoding(model: TrainedModel, decoding: DecodingConfig) -> TrainedModel:
    return dataclasses.replace(model, config=model.config.model_copy(update={"decoding": decoding}))


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Calls of our searches: their names, limits, random numbers and settings."""
    calls: list[Any] = []

    def record(name: str, _step: Any, _state: Any, limits: Any, *rest: Any, **settings: Any) -> Hypotheses:
        numbers = {key: value for key, value in settings.items() if key != "covered"}
        calls.append((name, limits.max_lengths.numpy().tolist(), *map(repr, rest), numbers))
        shape = [len(limits.max_lengths), settings.get("n_best", 1)]
        return Hypotheses(tf.fill([*shape, 1], EOS), tf.zeros(shape))

    for name in ("step_search", "beam_search", "sample"):
        monkeypatch.setattr(tensorflow_engine, name, partial(record, name))
    return calls


def to_tensorflow(model: TrainedModel, searched: list[Any], decoding: DecodingConfig, *, sampled: bool) -> str:
    translator = Translator.open(model.run, decoding=decoding)
    translator.engine._few_steps = 10**6  # type: ignore[attr-defined]
    searched.clear()
    translator.find(TEXTS, TextOptions(SearchOptions(sampled)))
    return repr([translator.engine.precision, searched])


def to_ctranslate2(
    model: TrainedModel, folder: Path, decoding: DecodingConfig, monkeypatch: pytest.MonkeyPatch, *, sampled: bool
) -> str:
    calls: list[Any] = []

    class Recorder:
        def translate_batch(self, sources: list[Any], prefix: Any, **settings: Any) -> list[Any]:
            calls.append((sources, settings))
            return [SimpleNamespace(result=lambda: SimpleNamespace(hypotheses=[[str(EOS)]], scores=[0.0]))] * len(
                sources
            )

    monkeypatch.setattr(CTranslate2Engine, "_load", lambda *_: Recorder())
    monkeypatch.setattr(ctranslate2_engine, "available_processors", lambda: 1)
    monkeypatch.setattr(ctranslate2_engine.ctranslate2, "set_random_seed", calls.append)
    for side in ("source", "target"):
        pieces = [str(id_) for id_ in range(getattr(model, side).size)]
        (folder / f"{side}_vocabulary.json").write_text(json.dumps(pieces))
    config = model.config.model_copy(update={"decoding": decoding})
    translator = Translator(CTranslate2Engine(folder, config), model.source, model.target, config, 1)
    translator.reconfigured(decoding).find(TEXTS, TextOptions(SearchOptions(sampled)))
    assert not sampled or calls[-1] == ctranslate2_engine.NO_SEED, "the seed belongs to the whole process"
    return repr(calls)


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS_OF_ALL)
def test_an_engine_applies_a_key_or_refuses_it_with_a_message(
    key: str, model: TrainedModel, tmp_path: Path, searched: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    decoding, sampled = change_decoding(START, changed(key)), IS_SAMPLED[key]
    before, after = (to_tensorflow(model, searched, settings, sampled=sampled) for settings in (START, decoding))
    assert after != before
    if KEYS[key].not_exported:
        with pytest.raises(ConfigError, match=f"{key}.* is for TensorFlow"):
            change_decoding(START, changed(key), exported=True)
        return
    before, after = (
        to_ctranslate2(model, tmp_path, settings, monkeypatch, sampled=sampled) for settings in (START, decoding)
    )
    assert after != before


def to_export(name: str, model: TrainedModel, folder: Path, searched: list[Any]) -> str:
    """Return the settings that an export passes on to the programs that use it."""
    module, class_name = EXPORTERS[name]
    exporter = getattr(importlib.import_module(module), class_name)()
    if name == "saved-model":
        searched.clear()
        network = build_model(model.config.model, model.source.size, model.target.size, trained=True)
        translations = TranslationModule(network, model.config, model.source.size)
        for search in (translations.greedy, translations.beam):
            search(tf.constant([[5, 6, 7]]))
        return repr(searched)
    if name == "huggingface":
        folder.mkdir()
        exporter.write(model, folder)
        return (folder / "generation_config.json").read_text()
    return str(exporter.usage(model))


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPORTERS)
def test_an_export_carries_a_key_or_its_model_card_names_it_as_missing(
    name: str, model: TrainedModel, tmp_path: Path, searched: list[Any]
) -> None:
    module, class_name = EXPORTERS[name]
    exporter = getattr(importlib.import_module(module), class_name)()
    before = to_export(name, with_decoding(model, START), tmp_path / "before", searched)
    for key in KEYS_OF_ALL:
        decoding = change_decoding(START, changed(key))
        reached = to_export(name, with_decoding(model, decoding), tmp_path / key, searched) != before
        exported, missing = settings_of(exporter, decoding).split(" does not receive ")
        if key == "tag":  # the card has a table of tags
            assert "tag" not in exported + missing
            continue
        assert (key in exporter.exported_keys(decoding)) == reached == (f"{key} as " in exported), key
        assert reached or f"{key} {changed(key)[key]}" in missing, key


COMMANDS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "translate": (nmt.api, "load", lambda *_, decoding, **__: decoding),
    "evaluate": (nmt.evaluation.evaluate, "evaluate", lambda *_, decoding, **__: decoding),
    "serve": (nmt.serving.models, "open_models", lambda _name, _epoch, decoding, *_: decoding),
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_searches_can_set_a_key(command: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    received: dict[str, Any] = {}
    module, name, of_call = COMMANDS[command]

    def record(*args: Any, **settings: Any) -> None:
        received.update(of_call(*args, **settings))
        raise NmtError("Recorded.")

    monkeypatch.setattr(module, name, record)
    context = ["--sample"] * (command == "translate" and IS_SAMPLED[key]) + ["--port", "0"] * (command == "serve")
    if key == "batch_size" and command == "serve":
        pytest.skip("the service has a batch size of its own")
    options = [
        [option_of(name), str(value)] if name in OWN_OPTION else ["--set", f"decoding.{name}={value}"]
        for name, value in changed(key).items()
    ]
    result = run_nmt(command, *context, *itertools.chain(*options), stdin=b"im one")
    if IS_SAMPLED[key] and command != "translate":
        assert (
            "No such option: --temperature" in result.err or "is for sampling, and this command searches" in result.err
        )
    else:
        assert result.err == "nmt: Recorded.\n"
        assert received == {
            **dict.fromkeys(received),
            **({"batch_size": 32} if command == "serve" else {}),
            **changed(key),
        }
