"""The model contract: an architecture of a few lines, registered here, trains, resumes, decodes, is scored and shown.

The tests add it to two tables of the package, as an architecture in the package would be.
"""

import json
import re
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pytest
from conftest import run_nmt, small_pairs

import nmt
from nmt.config.schema import MODEL_CONFIGS, Config, ModelConfig
from nmt.data.token_arrays import generate_split
from nmt.errors import ConfigError, NotFoundError
from nmt.models.base import Seq2SeqModel, StepOutput
from nmt.models.build import ARCHITECTURES, build_model
from nmt.models.layers.basic import Dropout, Linear, TokenEmbedding
from nmt.models.layers.ops import Projection, sizes
from nmt.models.layers.unpadding import BeamLayout, Unpadding
from nmt.plotting.style import empty_figure
from nmt.plotting.trained import draw_positions
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, PAD
from nmt.training.input_pipeline import InputPipeline
from nmt.training.optimization.build import build_update


class ToyConfig(ModelConfig):
    """A bag of source words, and the last two target words."""

    architecture: Literal["toy"] = "toy"
    """Architecture of the model."""
    width: int = 16
    """Width D of the embeddings."""

    @property
    def schedule_width(self) -> int:
        return self.width


class Bag(NamedTuple):
    mean: tf.Tensor  # [B, D]


class LastWord(NamedTuple):
    ids: tf.Tensor  # int32 [B, K]: the token before the token that a step reads

    def reorder(self, parents: tf.Tensor) -> "LastWord":
        return LastWord(tf.gather(self.ids, parents, batch_dims=1))

    def select(self, rows: tf.Tensor) -> "LastWord":
        return LastWord(tf.gather(self.ids, rows))


class Toy(Seq2SeqModel):
    """Predicts a word from the mean of the source and the two words before it."""

    config: ToyConfig

    def __init__(self, config: ToyConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        self.config = config
        self.source = TokenEmbedding(source_vocabulary, config.width, scaled=False, name="source")
        self.target = TokenEmbedding(target_vocabulary, config.width, scaled=False, name="target")
        self.output_layer = Linear(3 * config.width, target_vocabulary, blocks=None, name="output")

    def encode(self, source: tf.Tensor, *, remove_padding: bool = True, dropout_seed: tf.Tensor | None = None) -> Bag:
        real = tf.cast(tf.not_equal(source, PAD), self.compute_dtype)[..., tf.newaxis]
        return Bag(tf.reduce_sum(self.source(source) * real, axis=1) / tf.reduce_sum(real, axis=1))

    def _states(self, bag: Bag, before: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
        mean = tf.tile(bag.mean[:, tf.newaxis], [1, sizes(tokens)[1], 1])
        return tf.concat([mean, self.target(before), self.target(tokens)], axis=-1)

    def decode_states(
        self,
        target: tf.Tensor,
        encoded: Bag,
        *,
        unpadding: Unpadding | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        before = tf.pad(target[:, :-1], [[0, 0], [1, 0]], constant_values=BOS)
        states = self._states(encoded, before, target)
        return states if unpadding is None else unpadding.flatten(states)

    def output_projection(self) -> Projection:
        return self.output_layer.projection()

    def initial_state(self, encoded: Bag, beams: int) -> LastWord:
        return LastWord(tf.fill([sizes(encoded.mean)[0], beams], BOS))

    def step(self, tokens: tf.Tensor, encoded: Bag, state: LastWord, *, attention: bool = False) -> StepOutput:
        states = BeamLayout.of(tokens).flatten(self._states(encoded, state.ids, tokens))
        logits = self.output_projection().logits(states)
        return StepOutput(logits, None, LastWord(tokens))


class TwoOfAName(Toy):
    """A toy with two layers of one name."""

    def __init__(self, config: ToyConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__(config, source_vocabulary, target_vocabulary)
        self.again = TokenEmbedding(source_vocabulary, config.width, scaled=False, name="source")


class TwoDropoutsOfAName(Toy):
    """A toy with two dropouts that would draw the same numbers."""

    def __init__(self, config: ToyConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__(config, source_vocabulary, target_vocabulary)
        self.dropout, self.again = Dropout(0.1, "words"), Dropout(0.2, "words")


TOY = """
data: {tokenizer: word, normalization: ascii-words}
model: {architecture: toy, width: 32}
training: {epochs: 3, batch_size: 16, schedule: inverse_sqrt, peak_learning_rate: 0.03, warmup_steps: 20, samples: 1,
  decode_validation: 5}
"""
SENTENCE = "im one two three"


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder, with the architecture registered."""
    monkeypatch.setitem(MODEL_CONFIGS, "toy", ToyConfig)
    monkeypatch.setitem(ARCHITECTURES, "toy", Toy)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in small_pairs(200)))
    (tmp_path / "toy.yaml").write_text(TOY)
    nmt.prepare("pairs.tsv", config="toy.yaml")
    return tmp_path


def test_it_trains_resumes_and_is_translated_with_scored_and_described(toy: Path) -> None:
    whole = nmt.train("toy.yaml", run="whole")
    nmt.train("toy.yaml", run="halves", set={"training.epochs": 1})
    halves = nmt.train(run="halves", set={"training.epochs": 3})
    assert halves.weights_path(3).read_bytes() == whole.weights_path(3).read_bytes()
    losses = [epoch.validation_loss for epoch in whole.epochs()]
    assert losses == sorted(losses, reverse=True)
    assert whole.epochs()[-1].validation_bleu is not None

    greedy = nmt.load("whole").translate([SENTENCE, "im one", ""])
    assert greedy[0] and not greedy[2]
    assert nmt.load("whole", decoding={"beam_size": 1}).translate([SENTENCE]) == greedy[:1]
    beam = nmt.load("whole", decoding={"beam_size": 4}).translate_n_best([SENTENCE], 3)[0]
    assert [hypothesis.score for hypothesis in beam] == sorted((hypothesis.score for hypothesis in beam), reverse=True)
    details = nmt.load("whole").translate_details([SENTENCE])
    np.testing.assert_allclose(
        nmt.load("whole").score([SENTENCE], [details[0].text]), [details[0].score], rtol=1e-4, atol=1e-5
    )
    assert nmt.load("whole").translate([SENTENCE], sample=True)
    assert nmt.evaluate(["whole"]).record.scores.systems["whole"]

    bench = ("bench", "--config", "toy.yaml", "--generated", "--vocabulary", "50", "--seconds", "0")
    plot = ("plot", "losses", "--run", "whole")
    done = [run_nmt(*arguments) for arguments in (("info", "--run", "whole"), bench, plot, ("average", "--last", "2"))]
    assert [outcome.code for outcome in done] == [0, 0, 0, 0]
    assert re.search(r"^output +[\d,]+  kernel \[96, ", done[0].out, re.M) and "architecture: toy" in done[0].out
    assert "Model: toy, " in done[1].out and "products in its precision" not in done[1].out


def test_what_it_cannot_do_is_refused_in_words(toy: Path) -> None:
    run = nmt.train("toy.yaml", run="toy", set={"training.epochs": 1})
    details = json.loads(run_nmt("translate", "--run", "toy", "--json", SENTENCE).out)
    assert details["translations"][0]["alignment"] is None, "the model has no attention"
    with pytest.raises(NotFoundError, match="no position embedding"):
        draw_positions(empty_figure(), run)
    with pytest.raises(ConfigError, match="known in model: architecture, width"):
        nmt.train("toy.yaml", run="refused", set={"model.heads": 4})


CONTRACT = {"encode", "decode_states", "output_projection", "initial_state", "step", "teacher_forcing"}


def test_the_contract_has_abstract_methods_and_training_uses_no_others(toy: Path) -> None:
    assert Seq2SeqModel.__abstractmethods__ == CONTRACT - {"teacher_forcing"}
    with pytest.raises(TypeError, match="abstract"):
        Seq2SeqModel()
    update = build_update(Config(model=ToyConfig()), {"source": 20, "target": 20})
    pipeline = InputPipeline(Config(model=ToyConfig()), generate_split(40, 20, seed=1))
    [batches] = pipeline.step_batches(1)
    update.take(batches, 0.01, 1)
    assert update.optimizer.steps.numpy() == pipeline.steps(1) == 1
    assert build_model(ToyConfig(), 20, 20, "bfloat16", trained=True).compute_dtype == "bfloat16"


def test_weights_that_share_a_name_are_a_mistake_of_the_architecture(
    toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ARCHITECTURES, "toy", TwoOfAName)
    with pytest.raises(ValueError, match=r"two weights of TwoOfAName are called 'source/matrix'"):
        build_model(ToyConfig(), 20, 20)


def test_dropouts_that_share_a_name_are_a_mistake_of_the_architecture(
    toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ARCHITECTURES, "toy", TwoDropoutsOfAName)
    with pytest.raises(ValueError, match="dropout 'words' drops the same elements"):
        build_model(ToyConfig(), 20, 20)


def test_the_training_flag_of_keras_is_refused_in_words(toy: Path) -> None:
    model, ids = build_model(ToyConfig(), 20, 20), tf.constant([[4, 5]])
    for call in (lambda: model(ids, ids, training=True), lambda: model.target(ids, training=True)):
        with pytest.raises(TypeError, match="dropout draws from a seed"):
            call()
    np.testing.assert_array_equal(model(ids, ids, training=False), model(ids, ids))
