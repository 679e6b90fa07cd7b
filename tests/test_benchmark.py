"""``nmt bench`` on the command line, and the counts of its workloads. No test depends on measured times."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Outcome, run_nmt

from nmt import benchmark
from nmt.benchmark import BenchmarkReport, Workload, measure, search_workload, training_workload
from nmt.cli.commands.bench import describe
from nmt.config.schema import Config, DecodingConfig
from nmt.data.token_arrays import generate_split
from nmt.decoding.search import Hypotheses
from nmt.runtime import tf
from nmt.tokenizers.base import PAD
from nmt.training.input_pipeline import InputPipeline
from nmt.training.optimization.build import build_update


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
    assert report.vocabulary == {"source": 50, "target": 50}
    names = [speed.name for speed in report.matmul]
    precision = report.training.name.removeprefix("step in ")
    assert [name.partition(" product in ")[2] for name in names][:2] == ["float32", "bfloat16"]
    [product] = [speed for speed in report.matmul if speed.name.endswith(f" {precision}")]
    assert report.training.flops_per_second / product.flops_per_second == report.share_of_matmul  # type: ignore[operator]
    for speed in report.decoding:  # an untrained model ends next to none of the sentences before its limit
        assert 10 < speed.target_tokens_per_second / speed.sentences_per_second < 25  # type: ignore[operator]


def test_the_table_shows_the_measurements(report_text: str) -> None:
    report = BenchmarkReport.model_validate_json(report_text)
    text = describe(report, "generated ids")
    for speed in [*report.matmul, report.training, *report.decoding]:
        [row] = [line for line in text.splitlines() if line.startswith(speed.name)]
        for rate in (speed.target_tokens_per_second, speed.flops_per_second and speed.flops_per_second / 1e9):
            assert rate is None or f" {rate:,.0f}" in row
    assert f" {report.share_of_matmul:.1%} " in text and "None" not in text


@pytest.mark.slow
def test_a_prepared_dataset_can_be_measured(trained_project: Path) -> None:
    text = nmt_bench(trained_project, "--seconds 0").out
    assert "Data: dataset english-german-both, " in text
    assert "\ngreedy in float32 " in text


def test_workloads_run_in_turns_and_a_rate_is_the_median_of_the_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ran = [0.0], []
    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: clock[0])

    def workload(name: str, seconds: list[float], time: float) -> Workload:
        def run() -> float:
            ran.append(name)
            clock[0] += seconds[min(ran.count(name), len(seconds)) - 1]
            return 6.0

        return Workload(run, lambda amount: {"target_tokens": amount}, time)

    workloads = {"quick": workload("quick", [9, 1, 1, 2, 2, 3, 3], 1.5), "slow": workload("slow", [9, 5], 0.0)}
    quick, slow = measure(workloads, 3, lambda _: None)
    assert ran == ["quick", "slow", *["quick", "quick", "slow"] + ["quick", "slow"] * 2]
    assert (quick.seconds, quick.seconds_range, quick.target_tokens_per_second) == (2, (1, 2), 3)
    assert (slow.seconds, slow.target_tokens_per_second, slow.flops_per_second) == (5, 6 / 5, None)


def test_decoding_gives_every_sentence_the_length_of_its_reference() -> None:
    split = generate_split(30, 20, seed=1)
    seen = []

    class Scripted:
        """Substitute for an engine."""

        config = Config(decoding=DecodingConfig(batch_size=8))

        def search_batch(self, source: np.ndarray, limits: np.ndarray) -> Hypotheses:
            seen.extend(zip(np.count_nonzero(source, axis=1).tolist(), limits.tolist(), strict=True))
            tokens = np.where(np.arange(limits.max()) < limits[:, np.newaxis], 7, PAD)
            return Hypotheses(tf.constant(tokens)[:, tf.newaxis], tf.zeros([len(tokens), 1]))

    workload = search_workload(Scripted(), split, 0.0)  # type: ignore[arg-type]
    counts = [workload.counts(workload.run()) for _ in range(4)]
    wanted = sorted(zip((split.source.lengths + 2).tolist(), (split.target.lengths + 1).tolist(), strict=True))
    assert sorted(seen) == wanted
    assert sum(count["sentences"] for count in counts) == 30
    assert sum(count["target_tokens"] for count in counts) == sum(limit for _, limit in wanted)


def test_a_training_workload_takes_all_batches_of_epoch_after_epoch() -> None:
    config = Config.model_validate({
        "model": {"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "d_ff": 8, "heads": 1},
        "training": {"batch_size": 4, "micro_batches": 2},
    })  # fmt: skip
    split, sizes = generate_split(10, 20, seed=1), {"source": 20, "target": 20}
    update = build_update(config, sizes)
    workload = training_workload(update, InputPipeline(config, split), sizes, 0.0)
    read, written = split.source.lengths + 1 + config.model.reads_bos, split.target.lengths + 1
    for _ in range(2):
        steps = [workload.run() for _ in range(2)]
        assert [len(batches) for batches in steps] == [2, 1]
        counts = [workload.counts(batches) for batches in steps]
        assert sum(count["target_tokens"] for count in counts) == (split.target.lengths + 1).sum()
        products = sum(config.model.multiplications(int(s), int(t), 20) for s, t in zip(read, written, strict=True))
        assert sum(count["flops"] for count in counts) == 3 * 2 * products
    assert update.optimizer.steps.numpy() == 4


@pytest.mark.slow
def test_minutes_to_quality_are_those_of_whole_commands(project: Path) -> None:
    arguments = ["bench", "--quality", "2", "--config", "base.yaml", "--json"]
    result = run_nmt(*arguments, cwd=project)
    assert result.code == 0, result.err
    first, second, median = json.loads(result.out)
    assert [run["name"] for run in (first, second, median)] == ["base-seed-1", "base-seed-2", "median"]
    for run in (first, second):
        assert run["minutes"] > run["minutes_of_steps"] > 0 and run["steps"] > 0
        assert run["scores"].keys() == {"BLEU", "chrF2", "TER"}
    assert first["scores"] != second["scores"], "seeds differ"
    assert median["minutes"] == (first["minutes"] + second["minutes"]) / 2
    again = run_nmt(*arguments, cwd=project)
    assert again.code == 2 and "checkpoints/base-seed-1 exists" in again.err
    failing = run_nmt(*arguments, "--set", "training.epochs=many", cwd=project)
    assert failing.code == 2


def test_quality_is_measured_by_training(project: Path) -> None:
    result = run_nmt("bench", "--quality", "1", "--run", "base", cwd=project)
    assert result.code == 2 and "received --run too" in result.err
