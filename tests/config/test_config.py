"""The configuration: defaults, files, overrides, and an exact message for each way to get one wrong."""

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from nmt.config import loading as config_module
from nmt.config.data import DataConfig
from nmt.config.decoding import DecodingConfig
from nmt.config.loading import find_config, load_config
from nmt.config.model import RecurrentConfig, TransformerConfig
from nmt.config.schema import Config
from nmt.config.training import TrainingConfig
from nmt.errors import ConfigError, DataError, NotFoundError

CONFIGS = ROOT / "configs"
QUICK = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
SECTIONS: dict[str, type] = {
    "data": DataConfig,
    "model": TransformerConfig,
    "training": TrainingConfig,
    "decoding": DecodingConfig,
}
KEYS = [(name, key) for name, section in SECTIONS.items() for key in section.model_fields]  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(text: str | bytes, *overrides: str) -> Config:
    """Load a configuration from its text."""
    path = Path("own.yaml")
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_config(path, list(overrides))


# --- valid configurations of any kind

FRACTIONS = st.floats(0, 1, exclude_max=True)
POSITIVE = st.floats(0, exclude_min=True, allow_infinity=False)
COUNTS = st.integers(1, 10**6)
SIZES = st.integers(1, 1000)
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def data_configs(draw: st.DrawFn) -> DataConfig:
    train = draw(st.floats(0.01, 0.9))
    validation = draw(st.floats(0.01, 0.98 - train if train < 0.9 else 0.05))
    return DataConfig(
        dataset=draw(st.none() | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)),
        n_sentences=draw(st.none() | st.integers(3, 10**9)),
        split=draw(st.sampled_from(["by_source", "random"])),
        train_share=train,
        validation_share=validation,
        test_share=1 - train - validation,
        seed=draw(SEEDS),
        normalization=draw(st.sampled_from(["none", "nfkc", "ascii-words"])),
        min_count=draw(COUNTS),
        joint_vocabulary=draw(st.booleans() | st.just("auto")),
        source_column=draw(st.none() | st.integers(1, 99) | st.text(min_size=1)),
        tokenizer=draw(st.sampled_from(["auto", "word", "char", "subword"])),
        max_tokens=draw(st.none() | COUNTS),
        max_length_ratio=draw(st.none() | st.floats(1, 1e6, exclude_min=True)),
        drop_empty=draw(st.booleans()),
    )


@st.composite
def model_configs(draw: st.DrawFn) -> TransformerConfig:
    heads = draw(st.integers(1, 16))
    norm = draw(st.sampled_from(["post", "pre"]))
    embedding = draw(st.sampled_from(["trained", "sinusoidal"]))
    head_size = draw(st.none() | SIZES)
    positions = ["sinusoidal", "learned", "rotary"]
    return TransformerConfig(
        encoder_layers=draw(SIZES),
        heads=heads,
        d_model=2 * heads * draw(st.integers(1, 100)),
        head_size=head_size,
        attention_scale=draw(st.sampled_from(["head", "projection"])),
        dropout=draw(FRACTIONS),
        attention_dropout=draw(FRACTIONS),
        feed_forward_dropout=draw(FRACTIONS),
        norm=norm,
        initializer=draw(st.sampled_from(["glorot", "small"])),
        layer_norm_epsilon=draw(st.floats(0, 1, exclude_min=True, exclude_max=True)),
        share_decoder_norm=norm == "post" and draw(st.booleans()),
        encoder_residual=draw(st.booleans()),
        encoder_norm=draw(st.booleans()),
        encoder_feed_forward=draw(st.booleans()),
        word_embedding=embedding,
        tie_embeddings="none" if embedding == "sinusoidal" else draw(st.sampled_from(["none", "output", "all"])),
        positions=draw(st.sampled_from(positions[:2] if head_size and head_size % 2 else positions)),
        position_base=draw(st.floats(1, 1e12, exclude_min=True)),
        source_bos=draw(st.booleans()),
    )


@st.composite
def training_configs(draw: st.DrawFn) -> TrainingConfig:
    schedule = draw(st.sampled_from(["noam", "inverse_sqrt", "cosine", "linear"]))
    peak = None if schedule == "noam" else draw(POSITIVE)
    falls = schedule in {"cosine", "linear"}
    return TrainingConfig(
        epochs=draw(COUNTS),
        batch_size=draw(st.just("auto") | st.integers(1, 2**24)),
        reshuffle=draw(st.booleans()),
        seed=draw(SEEDS),
        schedule=schedule,
        peak_learning_rate=peak,
        decay_steps=draw(st.none() | COUNTS) if falls else None,
        final_learning_rate=draw(st.floats(0, peak)) if falls and peak else 0.0,
        learning_rate_scale=draw(POSITIVE) if schedule == "noam" else 1.0,
        adam_beta_1=draw(FRACTIONS),
        adam_epsilon=draw(POSITIVE),
        weight_decay=draw(st.floats(0, allow_infinity=False)),
        clip_norm=draw(st.none() | POSITIVE),
        ema_decay=draw(st.none() | st.floats(0, 1, exclude_min=True, exclude_max=True)),
        skip_nonfinite=draw(st.integers(0, 10**6)),
        max_to_keep=draw(st.none() | COUNTS),
    )


DECODING_CONFIGS = st.builds(DecodingConfig, batch_size=COUNTS, max_length_ratio=st.floats(0, 1000, exclude_min=True))
VALID = st.builds(
    Config, data=data_configs(), model=model_configs(), training=training_configs(), decoding=DECODING_CONFIGS
)


def named(dataset: str) -> Config:
    """Return the default configuration with a name for the dataset."""
    return Config(data=DataConfig(dataset=dataset))


@QUICK
@given(VALID)
@example(named("null"))
@example(named("yes"))
@example(named("5"))
@example(named("0x1F"))
@example(named("1_000"))
@example(named("2024-01-01"))
@example(named("1e5"))
@example(named("1e-9"))
@example(Config(data=DataConfig(source_column="\x85")))
@example(Config(data=DataConfig(source_column="a\u2028b\nc")))
def test_a_configuration_is_read_back_as_written(config: Config) -> None:
    assert load(config.to_yaml()) == config


@QUICK
@given(VALID)
def test_a_written_configuration_holds_every_key(config: Config) -> None:
    written = yaml.safe_load(config.to_yaml())
    assert [(section, key) for section, values in written.items() for key in values] == KEYS


# --- the schema and the files that come with it


@pytest.mark.parametrize(("section", "key"), KEYS)
def test_every_key_is_described(section: str, key: str) -> None:
    description = SECTIONS[section].model_fields[key].description  # type: ignore[attr-defined]
    assert description is not None
    assert len(description) > 10


def test_the_defaults_are_those_of_the_base_model_of_the_paper() -> None:
    model, training = Config().model, Config().training
    assert (model.encoder_layers, model.decoder_layers, model.d_model, model.d_ff, model.heads) == (6, 6, 512, 2048, 8)
    assert (model.size_per_head, model.dropout, model.norm, model.attention_scale) == (64, 0.1, "post", "head")
    assert (training.warmup_steps, training.adam_beta_1, training.adam_beta_2, training.adam_epsilon) == (
        4000,
        0.9,
        0.98,
        1e-9,
    )


# Where base.yaml is fitted to its corpus and batches, and not the paper to the letter; the size of a batch is left to
# its type.
TUNED_IN_BASE = {"training.batch_size": None, "training.learning_rate_scale": 0.5, "training.seed": 2}


def test_base_spells_out_every_key_with_its_default() -> None:
    written = yaml.safe_load((CONFIGS / "base.yaml").read_text(encoding="utf-8"))
    assert [(section, key) for section, values in written.items() for key in values] == KEYS
    for section, key in KEYS:
        default = SECTIONS[section].model_fields[key].default  # type: ignore[attr-defined]
        default = TUNED_IN_BASE.get(f"{section}.{key}", default)
        assert (written[section][key], type(written[section][key])) == (default, type(default)), f"{section}.{key}"


def test_bahdanau_spells_out_every_key_of_a_recurrent_model() -> None:
    written = yaml.safe_load((CONFIGS / "bahdanau.yaml").read_text(encoding="utf-8"))
    assert list(written["model"]) == list(RecurrentConfig.model_fields)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_file_in_configs_loads(path: Path) -> None:
    config = load_config(path)
    said = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.name == "base.yaml":
        said["training"]["batch_size"] = 64  # null there, which is replaced
    assert {section: {key: getattr(getattr(config, section), key) for key in said[section]} for section in said} == said


def peculiarities() -> list[tuple[str, str]]:
    """Return the keys of book.yaml that stand directly below a comment marked PECULIAR."""
    keys, section, marked = [], "", False
    for line in (CONFIGS / "book.yaml").read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("#"):
            marked = marked or line.lstrip().startswith("# PECULIAR")
        elif line.strip():
            key = line.split(":")[0]
            if not key.startswith(" "):
                section = key
            elif marked:
                keys.append((section, key.strip()))
            marked = False
    return keys


def test_the_second_experiment_differs_from_the_first_in_the_split_alone() -> None:
    first, second = (load_config(CONFIGS / name) for name in ("book.yaml", "book-curves.yaml"))
    shares = {"train_share": 0.8, "validation_share": 0.1, "test_share": 0.1}
    changed = {**shares, "dataset": "english-german-curves"}
    assert second == first.model_copy(update={"data": first.data.model_copy(update=changed)})


def test_base_has_none_of_the_peculiarities_of_the_book() -> None:
    assert [".".join(key) for key in peculiarities()] == [
        "data.split",
        "model.head_size",
        "model.attention_scale",
        "model.word_embedding",
        "model.scale_embeddings",
        "model.share_decoder_norm",
        "model.source_bos",
        "training.reshuffle",
    ]
    base, book = load_config(CONFIGS / "base.yaml"), load_config(CONFIGS / "book.yaml")
    for section, key in peculiarities():
        assert getattr(getattr(base, section), key) != getattr(getattr(book, section), key), f"{section}.{key}"


def test_the_size_of_a_head_is_the_one_set_or_an_equal_share() -> None:
    assert TransformerConfig(d_model=512, heads=8).size_per_head == 64
    assert TransformerConfig(d_model=512, heads=8, head_size=5).size_per_head == 5
    assert TransformerConfig(d_model=512, heads=7, head_size=5).size_per_head == 5


@pytest.mark.parametrize(
    ("text", "overrides", "size"),
    [
        ("", [], 64),
        ("training: {batch_type: tokens}", [], 2048),
        ("training: {batch_type: tokens, batch_size: 64}", [], 64),
        ("training: {batch_size: null}", ["training.batch_type=tokens"], 2048),
        ("training: {batch_type: tokens, batch_size: 100}", ["training.batch_type=sentences"], 100),
    ],
)
def test_the_size_of_a_batch_not_set_is_one_for_its_type(text: str, overrides: list[str], size: int) -> None:
    assert load(text, *overrides).training.batch_size == size


def test_base_takes_batches_by_tokens_without_more_ado() -> None:
    config = load_config(CONFIGS / "base.yaml", ["training.batch_type=tokens"])
    assert config.training.batch_size == 2048


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Config().training.epochs = 5


# --- reading


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "data:\n", "data:\nmodel:\n", "{}"])
def test_what_a_file_leaves_out_has_its_default(text: str) -> None:
    assert load(text) == Config()


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter() -> None:
    assert load(b"\xef\xbb\xbftraining:\r\n  epochs: 3\r\n") == Config(training=TrainingConfig(epochs=3))


@pytest.mark.parametrize("written", ["1e-9", "1E-9", "1.e-9", "1.0e-9", "0.000000001", "+1e-9", ".1e-8", "1_0e-10"])
def test_numbers_with_an_exponent_are_numbers(written: str) -> None:
    assert load(f"training:\n  adam_epsilon: {written}\n").training.adam_epsilon == pytest.approx(1e-9, rel=1e-12)


def test_words_that_look_like_exponents_are_words_when_quoted() -> None:
    assert load("data:\n  dataset: '1e5'\n").data.dataset == "1e5"


def test_a_whole_number_serves_where_a_fraction_is_asked_for() -> None:
    assert load("model:\n  dropout: 0\n").model.dropout == 0.0


# --- what is wrong, in words

REMEDY = "Change the value, or leave the key out."
WRONG = {
    "misspelt key": (
        "training:\n  epochs: 5\n  bacth_size: 5\n",
        "{path}, line 3: unknown key 'training.bacth_size' (did you mean 'batch_size'?).",
    ),
    "unknown key": (
        "decoding:\n  zzz: 5\n",
        "{path}, line 2: unknown key 'decoding.zzz' "
        "(known in decoding: batch_size, precision, beam_size, "
        "length_penalty, coverage_penalty, temperature, top_k, top_p, seed, max_length_ratio, max_length_extra).",
    ),
    "key of another section": (
        "training:\n  heads: 5\n",
        "{path}, line 2: unknown key 'training.heads' (it belongs to another section: 'model.heads').",
    ),
    "key outside sections": (
        "# own\nepochs: 5\n",
        "{path}, line 2: unknown key 'epochs' (it belongs in a section: 'training.epochs').",
    ),
    "misspelt section": (
        "trainin:\n  epochs: 5\n",
        "{path}, line 1: unknown key 'trainin' (did you mean 'training'?).",
    ),
    "unknown section": ("zzz: 5\n", "{path}, line 1: unknown key 'zzz' (known: data, model, training, decoding)."),
    "word for an integer": (
        "training:\n  epochs: many\n",
        "{path}, line 2: training.epochs is 'many', but must be a valid integer. " + REMEDY,
    ),
    "fraction for an integer": (
        "training:\n  epochs: 2.5\n",
        "{path}, line 2: training.epochs is 2.5, but must be a valid integer. " + REMEDY,
    ),
    "quoted integer": (
        'training:\n  epochs: "5"\n',
        "{path}, line 2: training.epochs is '5', but must be a valid integer. " + REMEDY,
    ),
    "truth for an integer": (
        "training:\n  epochs: true\n",
        "{path}, line 2: training.epochs is True, but must be a valid integer. " + REMEDY,
    ),
    "integer for truth": (
        "training:\n  reshuffle: 1\n",
        "{path}, line 2: training.reshuffle is 1, but must be a valid boolean. " + REMEDY,
    ),
    "word for a number": (
        "model:\n  dropout: high\n",
        "{path}, line 2: model.dropout is 'high', but must be a valid number. " + REMEDY,
    ),
    "number for a name": (
        "data:\n  dataset: 2024\n",
        "{path}, line 2: data.dataset is 2024, but must be a valid string, in quotes where it looks like another "
        "type. " + REMEDY,
    ),
    "too small": (
        "training:\n  epochs: 0\n",
        "{path}, line 2: training.epochs is 0, but must be greater than or equal to 1. " + REMEDY,
    ),
    "too large": (
        "model:\n  dropout: 1.0\n",
        "{path}, line 2: model.dropout is 1.0, but must be less than 1. " + REMEDY,
    ),
    "not a number": (
        "model:\n  dropout: .nan\n",
        "{path}, line 2: model.dropout is nan, but must be a finite number. " + REMEDY,
    ),
    "paper's schedule with a peak": (
        "training:\n  peak_learning_rate: 0.001\n",
        "{path}, line 1: training: schedule is noam and peak_learning_rate is 0.001. noam computes its peak from "
        "d_model and warmup_steps. Set schedule to inverse_sqrt, which falls likewise, to cosine or to linear; or "
        "scale the peak of noam with learning_rate_scale.",
    ),
    "another schedule without a peak": (
        "training:\n  schedule: cosine\n",
        "{path}, line 1: training: schedule is cosine and peak_learning_rate is null. All schedules but noam need a "
        "peak. Set it, for example to 0.0005, or set schedule to noam.",
    ),
    "decay of a schedule that has none": (
        "training:\n  schedule: inverse_sqrt\n  peak_learning_rate: 0.001\n  decay_steps: 100\n",
        "{path}, line 1: training: schedule is inverse_sqrt and decay_steps is 100. Only cosine and linear fall to a "
        "final learning rate. Leave the key out, or set schedule to cosine or linear.",
    ),
    "final rate of a schedule that has none": (
        "training:\n  final_learning_rate: 0.001\n",
        "{path}, line 1: training: schedule is noam and final_learning_rate is 0.001. Only cosine and linear fall to a "
        "final learning rate. Leave the key out, or set schedule to cosine or linear.",
    ),
    "schedule that falls upwards": (
        "training:\n  schedule: linear\n  peak_learning_rate: 0.001\n  final_learning_rate: 0.01\n",
        "{path}, line 1: training: final_learning_rate is 0.01 and peak_learning_rate is 0.001. The learning rate "
        "falls from the peak to the final value. Lower final_learning_rate.",
    ),
    "scale on a peak that is given": (
        "training:\n  schedule: cosine\n  peak_learning_rate: 0.001\n  learning_rate_scale: 0.5\n",
        "{path}, line 1: training: schedule is cosine and learning_rate_scale is 0.5. Only noam has a scale; the peak "
        "of the others is peak_learning_rate. Set training.learning_rate_scale=1, and the intended peak as "
        "peak_learning_rate.",
    ),
    "average that never moves": (
        "training:\n  ema_decay: 1.0\n",
        "{path}, line 2: training.ema_decay is 1.0, but must be less than 1. " + REMEDY,
    ),
    "norm of nothing": (
        "training:\n  clip_norm: 0.0\n",
        "{path}, line 2: training.clip_norm is 0.0, but must be greater than 0. " + REMEDY,
    ),
    "odd width": (
        "model:\n  d_model: 9\n  heads: 3\n",
        "{path}, line 2: model.d_model is 9, but must be a multiple of 2. " + REMEDY,
    ),
    "unknown choice": (
        "data:\n  split: source\n",
        "{path}, line 2: data.split is 'source', but must be 'by_source' or 'random'. " + REMEDY,
    ),
    "key set twice": (
        "training:\n  epochs: 1\n  seed: 1\n  epochs: 1\n",
        "{path}, line 4 sets training.epochs again. A key is set once. Remove one of the two lines.",
    ),
    "section set twice": (
        "training:\n  epochs: 1\ntraining:\n  seed: 2\n",
        "{path}, line 3 sets training again. A key is set once. Remove one of the two lines.",
    ),
    "heads do not divide": (
        "model:\n  d_model: 64\n  heads: 9\n",
        "{path}, line 1: model: heads is 9 and d_model is 64. heads must divide d_model unless head_size is set. "
        "Nearest: heads 8.",
    ),
    "shares": (
        "data:\n  train_share: 0.7\n",
        "{path}, line 1: data: train_share + validation_share + test_share is 0.7 + 0.1 + 0.1 = 0.9. The three shares "
        "add up to 1. Change another share too.",
    ),
    "tied sinusoids": (
        "model:\n  word_embedding: sinusoidal\n",
        "{path}, line 1: model: word_embedding is 'sinusoidal' and tie_embeddings is 'output'. A fixed embedding "
        "cannot be tied to a trained output layer. Set tie_embeddings: none.",
    ),
    "shared norm before blocks": (
        "model:\n  norm: pre\n  share_decoder_norm: true\n",
        "{path}, line 1: model: share_decoder_norm is true and norm is 'pre'. share_decoder_norm needs norm: post. "
        "Set norm: post, or share_decoder_norm: false.",
    ),
    "a list": (
        "- training\n",
        "{path} holds no sections, but a list. A configuration holds the sections data, model, training, decoding. "
        "Start from one of the files in configs/.",
    ),
    "a word": (
        "training\n",
        "{path} holds no sections, but a str. A configuration holds the sections data, model, training, decoding. "
        "Start from one of the files in configs/.",
    ),
    "nested": (
        "[" * 1000,
        "{path} is nested too deeply. A configuration is four flat sections. Start from one of the files in configs/.",
    ),
    "impossible date": (
        "data:\n  dataset: 2024-13-01\n",
        "{path} is not valid YAML: month must be in 1..12. Correct it, or put text in quotes.",
    ),
    "two mistakes": (
        "training:\n  epochs: 0\ndecoding:\n  batch_size: x\n",
        "{path}, line 2: training.epochs is 0, but must be greater than or equal to 1. " + REMEDY + "\n"
        "{path}, line 4: decoding.batch_size is 'x', but must be a valid integer. " + REMEDY,
    ),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_told_with_its_place_and_remedy(folder: Path, text: str, message: str) -> None:
    path = folder / "own.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value) == message.format(path=path)


@pytest.mark.parametrize(
    "text", ["model: [\n", "model:\n\theads: 1\n", "a: b: c\n", "---\na: 1\n---\nb: 1\n", "&", "\0"]
)
def test_text_that_is_not_yaml_is_told_so_on_one_line(text: str) -> None:
    says = r"^own\.yaml(, line \d+, column \d+)? is not valid YAML: "
    with pytest.raises(ConfigError, match=says) as caught:
        load(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["model: !!python/object/apply:os.mkdir [ran]\n", "model: !!python/name:os.system\n", "!!python/tuple [1]"]
)
def test_yaml_that_asks_for_code_is_refused_unrun(folder: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="is not valid YAML"):
        load(text)
    assert [entry.name for entry in folder.iterdir()] == ["own.yaml"]


def test_a_file_of_bytes_is_told_to_be_no_text(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"^own\.yaml, line 2 is not UTF-8: it holds the byte 0x80"):
        load(bytes(range(256)))
    with pytest.raises(ConfigError, match=r" cannot be read: Is a directory\. "):
        load_config(folder)


LAUGHS = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [{f'*{a}, ' * 9}]\n" for a, b in itertools.pairwise("abcdefghijklmn"))


@pytest.mark.parametrize(
    "text",
    [
        "model: &a\n  heads: *a\n",
        LAUGHS,
        LAUGHS.replace("[", "{<<: [").replace("]", "]}").replace("[x, x]", "[{x: 1}]"),
    ],
    ids=["itself", "billion laughs", "merged laughs"],
)
def test_aliases_which_can_grow_without_bound_are_refused(text: str) -> None:
    says = r"own\.yaml, line 2, column \d+ is not valid YAML: the alias \*a repeats a value"
    with pytest.raises(ConfigError, match=says):
        load(text)


@pytest.mark.parametrize("value", ["0x" + "f" * 9000, "1:" * 30_000 + "1", "9" * 5000, "0b" + "1" * 9000])
def test_an_integer_of_thousands_of_digits_is_refused(value: str) -> None:
    with pytest.raises(
        ConfigError, match=r"own\.yaml, line 1, column 20 is not valid YAML: the integer has more than 40 "
    ):
        load(f"training: {{epochs: {value}}}")


@pytest.mark.parametrize("value", ["!!int ''", "!!bool x", "!!timestamp x", "!!float ''", "!!int '-'", "!!null [x]"])
def test_a_value_that_is_not_what_its_tag_says_is_told(value: str) -> None:
    with pytest.raises(ConfigError, match=r"^own\.yaml.* is not valid YAML: |must be a valid"):
        load(f"training: {{epochs: {value}}}")


def test_a_base_60_number_beyond_floats_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"own\.yaml"):
        load(f"data: {{train_share: {'1:' * 2000}10.1}}")


@pytest.mark.parametrize(
    "text",
    [
        "data: {n_sentences: 99999999999999999999}", "data: {source_column: 9999999999}",
        "model: {d_model: 20000000000, heads: 9999999999}", "model: {encoder_layers: 10000000}",
        "training: {batch_size: 99999999999999999999}", "decoding: {top_k: 2147483648}",
        "decoding: {max_length_ratio: 1e300}",
    ],
)  # fmt: skip
def test_a_size_that_no_machine_has_is_refused(text: str) -> None:
    """They end in loops of hours and in tracebacks of what counts in 32 or 64 bits."""
    with pytest.raises(ConfigError, match="must be less than or equal to"):
        load(text)


def test_a_file_too_long_for_a_configuration_is_not_read() -> None:
    with pytest.raises(ConfigError, match=r"^own\.yaml is too long\. A configuration has at most 131,072 bytes\."):
        load("#" * (2**17 + 1))


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"k{n}: 1\n" for n in range(5000)), "data:\n" + "".join(f"  k{n}: 1\n" for n in range(5000)),
        f"data: {{dataset: {'x' * 9000}}}", f"data: {{dataset: [{'x, ' * 9000}]}}", f"? {'x' * 9000}\n: 1\n",
        "a: " + "!" * 9000,
    ],
    ids=["keys", "keys of a section", "text", "list", "key", "tag"],
)  # fmt: skip
def test_a_message_stays_short_however_much_is_wrong(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert len(str(caught.value)) < 9000
    assert all(len(line) < 900 for line in str(caught.value).split("\n"))


@pytest.mark.parametrize("name", ["../x", "a b", "-rf", "", "x" * 101])
def test_a_name_no_dataset_can_have_is_told_with_its_place(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(f"data:\n  seed: 1\n  dataset: {name!r}\n")
    assert str(caught.value).startswith("own.yaml, line ")
    assert "data" in str(caught.value)
    assert f"{name!r} cannot be the name of a dataset" in str(caught.value)


@QUICK
@given(st.integers(1, 64), st.integers(1, 130))
@example(256, 7)
def test_the_heads_named_as_nearest_are_the_nearest(half_width: int, heads: int) -> None:
    assume((2 * half_width) % heads)
    with pytest.raises(ConfigError) as caught:
        load(f"model:\n  d_model: {2 * half_width}\n  heads: {heads}\n")
    named = re.search(r"Nearest: heads (\d+)", str(caught.value))
    assert named is not None
    divisors = [count for count in range(1, 2 * half_width + 1) if (2 * half_width) % count == 0]
    assert int(named[1]) in divisors
    assert abs(int(named[1]) - heads) == min(abs(count - heads) for count in divisors)


# --- overrides


@pytest.mark.parametrize(
    ("override", "section", "key", "value"),
    [
        ("training.epochs=5", "training", "epochs", 5),
        ("training.epochs = 5", "training", "epochs", 5),
        ("training.adam_epsilon=1e-7", "training", "adam_epsilon", 1e-7),
        ("training.reshuffle=false", "training", "reshuffle", False),
        ("training.max_to_keep=null", "training", "max_to_keep", None),
        ("training.max_to_keep=", "training", "max_to_keep", None),
        ("data.split=random", "data", "split", "random"),
        ("data.dataset='5'", "data", "dataset", "5"),
        ("model.head_size=64", "model", "head_size", 64),
    ],
)
def test_an_override_sets_one_key(override: str, section: str, key: str, value: Any) -> None:
    before = load("training:\n  epochs: 3\n  max_to_keep: 2\n")
    after = load("training:\n  epochs: 3\n  max_to_keep: 2\n", override)
    assert getattr(getattr(after, section), key) == value
    changed = getattr(before, section).model_copy(update={key: value})
    assert after == before.model_copy(update={section: changed})


def test_the_last_override_of_a_key_counts() -> None:
    assert load("", "training.epochs=5", "training.epochs=6").training.epochs == 6


def test_overrides_that_fit_together_are_taken_together() -> None:
    config = load("", "data.train_share=0.9", "data.validation_share=0.05", "data.test_share=0.05")
    assert (config.data.train_share, config.data.validation_share, config.data.test_share) == (0.9, 0.05, 0.05)


def test_an_override_mends_the_value_in_the_file() -> None:
    assert load("training:\n  epochs: many\n", "training.epochs=5").training.epochs == 5


@pytest.mark.parametrize("override", ["epochs=5", "training.epochs", "training.=5", "training", "", "="])
def test_an_override_of_another_form_is_refused(override: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load("", override)
    assert str(caught.value) == (
        f"--set {override!r} has no section, key and value. Write --set section.key=value, as in --set "
        "training.epochs=5."
    )


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.epoch=5", "--set training.epoch=5: unknown key 'training.epoch' (did you mean 'epochs'?)."),
        ("trainin.epochs=5", "--set trainin.epochs=5: unknown key 'trainin' (did you mean 'training'?)."),
        (
            "training.heads=5",
            "--set training.heads=5: unknown key 'training.heads' (it belongs to another section: 'model.heads').",
        ),
        (
            "training.epochs=x",
            "--set training.epochs=x: training.epochs is 'x', but must be a valid integer. " + REMEDY,
        ),
        ("training.epochs=[", "--set 'training.epochs=[' has a value that is not valid YAML. Put the value in quotes."),
    ],
)
def test_a_wrong_override_is_named_in_place_of_the_line(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load("training:\n  epochs: 3\n", override)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "override",
    ["data.dataset=2024-13-01", "data.dataset=" + "[" * 1000, "data.seed=" + "9" * 5000, "data.seed=0b_"],
    ids=["impossible date", "nested", "thousands of digits", "no digits"],
)
def test_a_value_that_yaml_cannot_hold_is_refused_in_an_override(override: str) -> None:
    with pytest.raises(ConfigError, match="--set"):
        load("", override)


# --- older names of keys

OLDER = [
    ("data", "normalisation", "normalization", "nfkc", "nfkc"),
    ("model", "initialisation", "initializer", "small", "small"),
    ("training", "accumulate", "micro_batches", 2, 2),
    ("training", "accumulation_steps", "micro_batches", 2, 2),
    ("training", "pack", "remove_padding", False, False),
    ("training", "schedule", "schedule", "paper", "noam"),
]


@pytest.mark.parametrize(("section", "older", "key", "written", "value"), OLDER)
def test_an_older_name_is_read(section: str, older: str, key: str, written: Any, value: Any) -> None:
    text = yaml.safe_dump({section: {older: written}})
    for config in (load(text), load("", f"{section}.{older}={str(written).lower()}")):
        assert getattr(getattr(config, section), key) == value
        assert config.to_yaml() == load(yaml.safe_dump({section: {key: value}})).to_yaml()


RENAMED = [case for case in OLDER if case[1] != case[2]]


@pytest.mark.parametrize(("section", "older", "key", "written", "value"), RENAMED)
def test_an_older_name_beside_that_of_today_is_refused(
    section: str, older: str, key: str, written: Any, value: Any
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(f"{section}:\n  {older}: {str(written).lower()}\n  {key}: {str(value).lower()}\n")
    assert str(caught.value) == (
        f"own.yaml, line 1: {section}: {key} is set twice, once by its older name {older}. Leave out {older}."
    )


@pytest.mark.parametrize(("section", "older", "key", "written", "value"), RENAMED)
def test_a_wrong_value_is_told_with_the_line_of_the_older_name(
    section: str, older: str, key: str, written: Any, value: Any
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(f"{section}:\n  seed: 1\n  {older}: [1]\n" if section != "model" else f"model:\n\n  {older}: [1]\n")
    assert str(caught.value).startswith(
        f"own.yaml, line 3: {section}.{older}, now called {section}.{key}, is [1], but must be "
    )
    with pytest.raises(ConfigError) as caught:
        load("", f"{section}.{older}=[1]")
    assert str(caught.value).startswith(f"--set {section}.{older}=[1]: {section}.{older}, now called {section}.{key},")


@pytest.mark.parametrize(
    ("text", "overrides", "steps"),
    [
        ("training: {micro_batches: 4}", ["training.accumulate=2"], 2),
        ("training: {accumulate: 4}", ["training.micro_batches=2"], 2),
        ("training: {accumulate: 4}", ["training.accumulate=2"], 2),
        ("training: {accumulation_steps: 4}", ["training.accumulate=2"], 2),
        ("", ["training.accumulate=3", "training.micro_batches=2"], 2),
        ("", ["training.micro_batches=3", "training.accumulate=2"], 2),
    ],
)
def test_an_override_replaces_a_key_by_either_of_its_names(text: str, overrides: list[str], steps: int) -> None:
    assert load(text, *overrides).training.micro_batches == steps


def test_a_misspelt_older_name_is_told_with_the_names_of_today() -> None:
    with pytest.raises(ConfigError, match=r"^own\.yaml, line 1: unknown key 'training\.micro_batche' \(did you mean"):
        load("training: {micro_batche: 4}")


@pytest.mark.parametrize("section", SECTIONS)
def test_the_known_keys_of_a_section_are_those_of_its_record(section: str) -> None:
    assert config_module.known_keys(section) == [key for name, key in KEYS if name == section]
    assert config_module.known_keys(section, {"seed": 1}) == config_module.known_keys(section, None)


# --- the format number


@pytest.mark.parametrize("number", [1, 2])
def test_a_format_number_of_today_or_before_is_read(number: int) -> None:
    assert load(f"format: {number}\ntraining: {{epochs: 3}}\n") == load("training: {epochs: 3}")


@pytest.mark.parametrize("number", ["0", "3", "2.0", "true", "null", "'2'", "[2]", "{a: 1}", "x" * 500])
def test_another_format_is_refused_in_words(number: str) -> None:
    with pytest.raises(DataError) as caught:
        load(f"format: {number}\n")
    assert re.fullmatch(
        r"own\.yaml has format .{1,70}\. This version of nmt reads format 1 or 2\. Update nmt, or use the version that "
        r"wrote the file\.", str(caught.value)
    )  # fmt: skip


# --- where a configuration is looked for


def test_a_configuration_is_taken_as_said_then_from_configs_then_from_the_package(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_module, "PACKAGE_CONFIGS", folder / "package")
    monkeypatch.setattr(config_module, "CHECKOUT_CONFIGS", folder / "checkout")
    places = [Path("own.yaml"), Path("configs/own.yaml"), folder / "package/own.yaml", folder / "checkout/own.yaml"]
    for place in places:
        place.parent.mkdir(exist_ok=True)
        place.touch()
    for place in places:
        assert find_config("own.yaml") == place
        place.unlink()
    with pytest.raises(NotFoundError, match=r"^There is no configuration 'own\.yaml'") as caught:
        find_config("own.yaml")
    for place in places:
        assert str(place) in str(caught.value)


def test_the_configurations_that_come_with_the_project_are_found_from_any_folder() -> None:
    assert load_config(find_config("base.yaml")) == Config(training=TrainingConfig(learning_rate_scale=0.5, seed=2))
