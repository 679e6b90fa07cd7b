"""The Python interface: messages name arguments, odd arguments are refused, and the process stays as it was."""

import inspect
import json
import random
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import nmt, small_pairs, write_tsv

import nmt as package
from nmt.decoding.translation import Translation
from nmt.message import Argument, Command, Message, Settings

# --- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "typed", "passed"),
    [
        (Argument("run", "NAME"), "--run NAME", 'run="NAME"'),
        (Argument("run", "my run"), "--run 'my run'", 'run="my run"'),
        (Argument("allow_changes", True), "--allow-changes", "allow_changes=True"),
        (Argument("output"), "--output", "output"),
        (Argument("n", 3), "--n-best 3", "n=3"),
        (Argument("references", ["a", "b"]), "--reference a --reference b", 'references=["a", "b"]'),
        (Argument("epoch", "N"), "--epoch N", "epoch=N"),
        (Settings({"training.epochs": 5, "data.drop_empty": True}),
         "--set training.epochs=5 --set data.drop_empty=true", 'set={"training.epochs": 5, "data.drop_empty": True}'),
        (Settings({"data.dataset": "my data"}), "--set 'data.dataset=my data'", 'set={"data.dataset": "my data"}'),
        (Settings({"data.score_runs": ["a", "b"]}), "--set data.score_runs=[a,b]",
         'set={"data.score_runs": ["a", "b"]}'),
        (Settings({"decoding.beam_size": 5}), "--beam 5", 'decoding={"beam_size": 5}'),
        (Command("prepare FILE", Argument("overwrite", True)), "nmt prepare FILE --overwrite",
         "nmt prepare FILE --overwrite"),
    ],
)  # fmt: skip
def test_each_reader_sees_his_own_spelling(part: Any, typed: str, passed: str) -> None:
    message = Message("Give ", part, ".")
    assert message.on_command_line() == f"Give {typed}."
    assert str(message) == f"Give {passed}."
    error = package.NmtError(*message.parts)
    assert error.on_command_line() == f"Give {typed}."
    assert str(error) == f"Give {passed}."


def test_calls_are_refused_in_their_own_words(trained_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained_project)
    calls: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
        (package.prepare, {"files": "english-german-both.pkl", "set": {"data.seed": 7}},
         r"Give another name, or overwrite=True\."),
        (package.prepare, {"files": "english-german-both.pkl", "languages": "en"}, r"^languages is 'en'\."),
        (package.train, {"config": "base.yaml", "minutes": float("nan")}, r"^minutes is nan\."),
        (package.train, {"config": "base.yaml", "set": {"training.epochs": 0}}, r'^set=\{"training.epochs": 0\}: '),
        (package.train, {"config": "base.yaml", "set": {"training.clip_norm": 9}},
         r"if it is intended, give allow_changes=True"),
        (package.train, {"config": "base.yaml", "listeners": [None]}, r"^listeners has an object that is not an"),
        (package.load, {"run": "base", "export": "./model"}, r'^export="./model" is a folder.*received run="base" too'),
        (package.load, {"run": "base", "decoding": {"top_p": 2}}, r'^decoding=\{"top_p": 2\}: decoding\.top_p must be'),
        (package.evaluate, {"hypotheses": ["h"], "stress": True}, r"^stress=True cannot be.* or leave stress=True out"),
        (package.evaluate, {"source": "a.en"}, r'^Received source alone.*Add references=\["FILE"\]\.'),
        (package.evaluate, {"metrics": ["chrf"], "tokenization": "char"}, r'^tokenization="char" has no effect on'),
    ]  # fmt: skip
    for function, arguments, message in calls:
        with pytest.raises(package.NmtError, match=message) as refused:
            function(**arguments)
        assert not re.search(r"(?<![\w-])--[a-z]", re.sub(r"nmt [a-z]+ .*", "", str(refused.value)))


# --- odd arguments ----------------------------------------------------------------------------------------------------


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("unprintable")

    __str__ = __repr__


class UnprintableText(Unprintable, str):
    pass


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
ODD: list[Any] = [
    None, -1, True, float("nan"), float("inf"), 10**5000, "", "\0", "\ud800", "a" * 5000, "../x", "a\nb", b"x", (), [],
    {}, {1}, [None], ["\0"], ["x"] * 3, {"x": 1}, {1: 2}, {"data.seed": object()}, {"beam_size": Unprintable()},
    {"a b": "c"}, CYCLE, Unprintable(), UnprintableText("x"), object(), len, Path("\0"), Path(), np.array(["x"]),
    np.array("x"), np.float32(2), 1j, range(3), ("en", None), ["=", "."],
]  # fmt: skip


def check_odd(function: Callable[..., Any], usual: dict[str, Any], names: set[str] | None = None) -> None:
    """Call a function with each odd value for each argument: the call works or is refused with a message."""
    for name in inspect.signature(function).parameters.keys() & (
        names or inspect.signature(function).parameters.keys()
    ):
        for number, value in enumerate(ODD):
            try:
                function(**{**usual, name: value})
            except package.NmtError as error:
                assert str(error)
            except Exception as error:
                error.add_note(f"{function.__name__}, {name}: ODD[{number}]")
                raise


def test_functions_refuse_odd_arguments_in_words(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    check_odd(package.load, {"run": "ghost"})
    check_odd(package.load, {"run": "base"}, {"epoch", "export"})
    check_odd(package.train, {"config": "ghost.yaml", "dataset": "ghost"})
    check_odd(package.prepare, {"files": "ghost.tsv"}, {"files", "config", "set", "languages", "tokenizer_of"})
    check_odd(package.evaluate, {"runs": ["ghost"]})
    check_odd(package.synthesize, {"file": "ghost.de", "name": "bt"})
    with pytest.raises(TypeError, match="unexpected keyword argument 'beam'"):
        package.load("base", beam=5)


def test_a_translator_refuses_odd_arguments_in_words(trained_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained_project)
    state = random.getstate()
    with package.load("base") as translator:
        assert random.getstate() == state
        [found] = translator.translate_details(["im one"])
        check_odd(translator.translate, {"texts": ["im one"]})
        check_odd(translator.translate_n_best, {"texts": ["im one"], "n": 1}, {"n"})
        check_odd(translator.score, {"sources": ["im one"], "targets": ["eins"]}, {"sources", "targets"})
        check_odd(translator.attention, {"sources": ["im one"], "translations": [found]})
        check_odd(translator.attention_maps, {"source": "im one", "translation": found})
        check_odd(translator.given_translation, {})
        assert translator.translate(np.array(["im one"])) == translator.translate(("im one",)) == [found.text]  # type: ignore[arg-type]
        with pytest.raises(package.NmtError, match=r"^texts\[1\] is None, but must be str\. Change the argument\."):
            translator.translate(["im one", None])  # type: ignore[list-item]
        with pytest.raises(package.NmtError, match=r"^n is 0\. It is a number of translations"):
            translator.translate_n_best(["im one"], 0)
        assert isinstance(found, Translation)


# --- the process ------------------------------------------------------------------------------------------------------

PICTURE = """
    import json, logging, os, random, signal, sys, threading, time, warnings
    import numpy as np

    def picture():
        loggers = {name: [logger.level, logger.propagate, len(logger.handlers), len(logger.filters)]
                   for name, logger in logging.root.manager.loggerDict.items() if isinstance(logger, logging.Logger)}
        seen = {
            "environment": dict(os.environ), "folder": os.getcwd(), "umask": os.umask(0o22), "path": list(sys.path),
            "signals": {str(each): str(signal.getsignal(each)) for each in signal.valid_signals()},
            "mask": str(signal.pthread_sigmask(signal.SIG_BLOCK, [])), "cores": sorted(os.sched_getaffinity(0)),
            "random": hash(random.getstate()), "numpy": str(np.random.get_state()), "errors": str(np.geterr()),
            "filters": list(map(str, warnings.filters)), "hooks": str([warnings.showwarning, sys.excepthook]),
            "root": [logging.root.level, str(logging.root.handlers), logging.root.manager.disable],
            "loggers": {name: logger for name, logger in loggers.items() if name in KNOWN},
            "threads": sorted(thread.name for thread in threading.enumerate()),
            "tasks": len(os.listdir("/proc/self/task")),
        }
        if "tensorflow" in KNOWN:
            import keras, tensorflow as tf
            from tensorflow.python.eager import context
            seen["tensorflow"] = str([
                context.context()._seed, tf.config.threading.get_inter_op_parallelism_threads(), tf.get_logger().level,
                tf.config.threading.get_intra_op_parallelism_threads(), tf.config.optimizer.get_jit(),
                tf.config.functions_run_eagerly(), keras.config.dtype_policy().name, keras.config.floatx(),
                keras.src.utils.rng_utils.get_random_seed(), tf.config.list_logical_devices(),
            ])
        return seen

    KNOWN = {}
"""
WITH_TENSORFLOW = """
    import keras, tensorflow
    tensorflow.function(lambda x: x @ x)(tensorflow.ones([500, 500]))
    keras.config.set_dtype_policy("mixed_bfloat16")
    keras.utils.set_random_seed(9)
"""
WORK = """
    import nmt
    def work(run):
        nmt.prepare("pairs.tsv")
        nmt.train("small.yaml", run=run, set={"training.epochs": 1})
        nmt.evaluate([run], resamples=0)
        for export in (None, "./model"):
            with nmt.load(None if export else run, export=export) as translator:
                translator.translate(["im one two"] * 300)
                translator.translate(["im one two"] * 3, sample=True)
"""


def see_the_process(code: str, folder: Path) -> list[dict[str, Any]]:
    """Run a program that uses nmt in a process of its own. Return the states of the process that it prints."""
    program = "\n".join(map(textwrap.dedent, [PICTURE, code]))
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", program], cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", WITH_TENSORFLOW], ids=["alone", "beside a program in TensorFlow"])
def test_the_process_stays_as_it_was(before: str, trained_project: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    nmt("export", "--to", "ctranslate2", "--output", str(tmp_path / "model"), cwd=trained_project)
    write_tsv(tmp_path / "pairs.tsv", small_pairs(60))
    (tmp_path / "small.yaml").write_text(
        "model: {encoder_layers: 1, decoder_layers: 1, d_model: 32, d_ff: 32, heads: 4}"
    )
    first, then, last = see_the_process(
        f"{textwrap.dedent(before)}{textwrap.dedent(WORK)}"
        + textwrap.dedent("""
            KNOWN = dict(logging.root.manager.loggerDict)
            print(json.dumps(picture()))
            for run in ("first", "second"):
                work(run)
                time.sleep(0.5)
                print(json.dumps(picture()))
        """),
        tmp_path,
    )
    assert last == then
    assert {**last, "tasks": 0} == {**first, "tasks": 0}, "libraries start threads once"
