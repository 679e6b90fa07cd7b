"""``nmt bench`` as a user types it, and what its measures count. Nothing here looks at a time."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from conftest import Outcome, run_nmt

from nmt.benchmark import measure as benchmark
from nmt.benchmark.measure import BenchmarkReport, endless_batches, measure_decoding, measure_training, training_step
from nmt.cli.commands.bench import describe
from nmt.config.decoding import DecodingConfig
from nmt.config.schema import Config
from nmt.data.synthetic import generate_split
from nmt.decoding.search import Hypotheses
from nmt.models.accounting import Flops
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, PAD
from nmt.training.input_pipeline import InputPipeline
from nmt.training.state import TrainState


def nmt_bench(folder: Path, arguments: str) -> Outcome:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmark, "MATMUL_SIZES", (16, 64))
        return run_nmt("bench", *arguments.split(), cwd=folder)


@pytest.fixture(scope="module")
def report_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("bench")
    smaller = "model.encoder_layers=1 model.decoder_layers=1 training.batch_size=8"
    sets = "".join(f" --set {setting}" for setting in [*smaller.split(), "decoding.batch_size=8"])
    done = nmt_bench(folder, f"--config tiny.yaml --generated --vocabulary 50 --seconds 0 --json{sets}")
    assert done.code == 0 and not list(folder.iterdir())
    return done.out


def test_the_report_agrees_with_itself(report_text: str) -> None:
    report = BenchmarkReport.model_validate_json(report_text)
    training = report.training
    assert report.vocabulary == {"source": 50, "target": 50}
    assert training.steps == benchmark.FEWEST_RUNS
    assert {one.precision for one in report.matmul} >= {training.precision, "float32", "bfloat16"}
    if training.traced_step_seconds is not None:
        assert training.seconds_by_phase is not None
        assert training.seconds_by_kind is not None
        assert {"forward", "backward", "optimizer"} < set(training.seconds_by_phase)
        assert {"matrix products", "layer norms", "dropout", "softmax", "optimizer"} < set(training.seconds_by_kind)
        for parts in (training.seconds_by_phase, training.seconds_by_kind):
            assert sum(parts.values()) == pytest.approx(training.traced_step_seconds)
    for one in report.decoding:  # an untrained model ends next to none of the sentences before its limit
        assert 13 < one.target_tokens_per_second / one.sentences_per_second < 20


def test_the_table_shows_what_was_measured(report_text: str) -> None:
    report = BenchmarkReport.model_validate_json(report_text)
    table = describe(report)
    assert f"{report.training.target_tokens_per_second:,.0f} tokens/s" in table
    assert f"{report.training.share_of_matmul:.1%}" in table
    assert f"{report.decoding[0].sentences_per_second:,.1f} sentences/s" in table
    unknown = dict.fromkeys(["peak_memory_bytes", "traced_step_seconds", "seconds_by_phase", "seconds_by_kind"])
    training = report.training.model_copy(update=unknown)
    bare = describe(report.model_copy(update={"training": training, "decoding": []}))
    assert not any(word in bare for word in ("None", "memory", "trace", "Decoding"))


@pytest.mark.slow
def test_a_prepared_dataset_can_be_measured(trained_project: Path) -> None:
    table = nmt_bench(trained_project, "--seconds 0").out
    assert "Data: dataset english-german-both, " in table
    assert "Decoding in float32, greedy" in table


@pytest.mark.parametrize("option", ["--vocabulary 4", "--seconds inf"])
def test_numbers_out_of_bounds_are_refused(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.cli.commands.bench._measure", None)
    done = nmt_bench(tmp_path, f"--generated {option}")
    assert option.split(maxsplit=1)[0] in done.err and (done.code, done.out) == (2, "")


class NoProducts:
    """In the place of matrix products, which take their time."""

    precision = "float32"

    def measure(self, seconds: float) -> float:
        return 1e9


def test_training_counts_real_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "TRACED_STEPS", 1)
    source = tf.constant([[BOS, 5, EOS, PAD], [BOS, 5, 6, EOS]])
    target = tf.constant([[BOS, 7, EOS, PAD, PAD, PAD], [BOS, 7, 8, 9, 10, EOS]])
    counted, stepped = [], []

    def count(source_lengths: np.ndarray, target_lengths: np.ndarray) -> Flops:
        counted.append((source_lengths.tolist(), target_lengths.tolist()))
        return Flops(10)

    speed = measure_training(
        stepped.append, itertools.repeat([(source, target)]), count, [NoProducts()],  # type: ignore[arg-type,list-item]
        precision="float32", seconds=0,
    )  # fmt: skip
    assert counted == [([3, 4], [2, 5])] * speed.steps
    assert len(stepped) == benchmark.WARM_UP + speed.steps + 1
    assert speed.target_tokens_per_step == 7
    assert (speed.source_padding, speed.target_padding) == (1 / 8, 3 / 10)
    assert speed.useful_flops_per_second / speed.target_tokens_per_second == pytest.approx(3 * 10 / 7)
    assert speed.share_of_matmul == pytest.approx(speed.useful_flops_per_second / 1e9)


def test_decoding_gives_every_sentence_the_length_of_its_reference() -> None:
    split = generate_split(30, 20, seed=1)
    config = Config(decoding=DecodingConfig(batch_size=8))
    seen = []

    class Scripted:
        """In the place of a search."""

        def find(self, source: np.ndarray, limits: np.ndarray) -> Hypotheses:
            seen.extend(zip(np.count_nonzero(source, axis=1).tolist(), limits.tolist(), strict=True))
            tokens = np.where(np.arange(limits.max()) < limits[:, np.newaxis], 7, PAD)
            return Hypotheses(tf.constant(tokens)[:, tf.newaxis], tf.zeros([len(tokens), 1]))

    speed = measure_decoding("any", Scripted(), split, config, precision="float32", seconds=1e6)  # type: ignore[arg-type]
    assert (speed.sentences, speed.runs) == (30, benchmark.DECODING_RUNS)
    wanted = sorted(zip((split.source.lengths + 2).tolist(), (split.target.lengths + 1).tolist(), strict=True))
    assert sorted(seen[-30:]) == wanted
    mean = sum(limit for _, limit in wanted) / 30
    assert speed.target_tokens_per_second / speed.sentences_per_second == pytest.approx(mean)


def test_a_step_is_that_of_training_with_all_its_batches_epoch_after_epoch() -> None:
    config = Config.model_validate({
        "model": {"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "d_ff": 8, "heads": 1},
        "training": {"batch_size": 4, "micro_batches": 2},
    })  # fmt: skip
    state, pipeline = (
        TrainState(config, {"source": 20, "target": 20}),
        InputPipeline(config, generate_split(10, 20, seed=1)),
    )
    batches, step = endless_batches(pipeline), training_step(state, pipeline)
    for count in (2, 1, 2, 1):
        step_batches = next(batches)
        assert len(step_batches) == count
        step(step_batches)
    assert state.position.step == int(state.train_step.optimizer.steps.numpy()) == 4
