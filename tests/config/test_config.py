"""The configuration: defaults, files, overrides, and a message with the place of each mistake."""

import contextlib
import itertools
import json
import re
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Union, get_args

import pytest
import yaml
from conftest import ROOT
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nmt.config import loading as config_module
from nmt.config.data import DataConfig
from nmt.config.decoding import KEYS as KEYS_OF_DECODING
from nmt.config.loading import find_config, load_config, read_overrides
from nmt.config.schema import MODEL_CONFIGS, Config, DecodingConfig, TransformerConfig
from nmt.config.training import TrainingConfig
from nmt.errors import ConfigError, DataError

CONFIGS = ROOT / "configs"
QUICK = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
SECTIONS: dict[str, type] = {
    "data": DataConfig, "model": TransformerConfig, "training": TrainingConfig, "decoding": DecodingConfig,
}  # fmt: skip
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


def keys_of(text: str) -> list[tuple[str, str]]:
    """Return section and key of each value in YAML, in its order."""
    return [(section, key) for section, values in yaml.load(text, yaml.CSafeLoader).items() for key in values]


LAUGHS = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [{f'*{a}, ' * 9}]\n" for a, b in itertools.pairwise("abcdefghijklmn"))

# --- valid configurations of any kind

BASES: list[dict[str, dict[str, Any]]] = [  # keys that are valid together alone
    {},
    {"data": {"dataset": "v1.2_final", "train_share": 0.6, "validation_share": 0.3, "test_share": 0.1}},
    {"model": {"word_embedding": "sinusoidal", "tie_embeddings": "none"}},
    {"training": {"schedule": "cosine", "peak_learning_rate": 1e-300}},
]


NESTED: dict[str, list[Any]] = {
    "data.corpora": [{}, {"bt": {"files": ["a.en", "a.de"], "tag": True}, "web": {"reverse": True}}],
    "training.corpora": [{}, {"original": 0.5, "bt": 2}],
    "training.stages": [[{"until_epoch": 2, "corpora": {"original": 2}}, {"corpora": {"original": 1, "bt": 0}}]],
}


@st.composite
def valid(draw: st.DrawFn) -> Config:
    """Draw keys and values of the type and within the bounds that the schema gives; what contradicts is left out."""
    values = draw(st.sampled_from(BASES))
    for section, key in draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=20)):
        field = SECTIONS[section].model_fields[key]  # type: ignore[attr-defined]
        kinds = [kind for kind in get_args(field.annotation) if kind is not NoneType]
        kind = Union[*kinds] if NoneType in get_args(field.annotation) else field.annotation
        bounds = [bound for bound in field.metadata if not hasattr(bound, "multiple_of")]  # which Hypothesis knows not
        bounded = st.from_type(Annotated[kind, *bounds] if bounds else kind)
        if f"{section}.{key}" in NESTED:
            bounded = st.sampled_from(NESTED[f"{section}.{key}"])
        value = draw(bounded if kind is field.annotation else st.none() | bounded)
        more = {**values, section: {**values.get(section, {}), key: value}}
        with contextlib.suppress(ValueError):
            Config.model_validate(more)
            values = more
    return Config.model_validate(values)


@settings(QUICK, max_examples=200)
@given(valid())
@example(Config(data=DataConfig(source_column="\x85")))
@example(Config(data=DataConfig(source_column="a\u2028b\nc")))
def test_a_configuration_is_written_with_every_key_and_read_back(config: Config) -> None:
    text = config.to_yaml()
    assert load(text) == config
    assert keys_of(text) == KEYS


def test_a_name_that_looks_like_another_type_is_read_back_and_may_be_quoted() -> None:
    for name in ("null", "yes", "5", "0x1F", "1_000", "2024-01-01", "1e5", "1e-9"):
        config = Config(data=DataConfig(dataset=name))
        assert load(config.to_yaml()) == load(f"data: {{dataset: '{name}'}}") == config


# --- the schema and the files that come with it


def test_every_key_is_described() -> None:
    for section in [*SECTIONS.values(), *MODEL_CONFIGS.values()]:
        for key, field in section.model_fields.items():  # type: ignore[attr-defined]
            assert len(field.description or KEYS_OF_DECODING[key].help) > 10, key


# Where base.yaml is fitted to its corpus and batches, and not the paper to the letter; the size of a batch is left to
# its type.
TUNED_IN_BASE = {"training.batch_size": None, "training.learning_rate_scale": 0.5, "training.seed": 2}


def test_base_spells_out_every_key_with_its_default() -> None:
    text = (CONFIGS / "base.yaml").read_text(encoding="utf-8")
    assert keys_of(text) == KEYS
    written = yaml.safe_load(text)
    for section, key in KEYS:
        default = SECTIONS[section].model_fields[key].default  # type: ignore[attr-defined]
        default = TUNED_IN_BASE.get(f"{section}.{key}", default)
        assert (written[section][key], type(written[section][key])) == (default, type(default)), f"{section}.{key}"


def test_bahdanau_spells_out_every_key_of_a_recurrent_model() -> None:
    written = yaml.safe_load((CONFIGS / "bahdanau.yaml").read_text(encoding="utf-8"))
    assert list(written["model"]) == list(MODEL_CONFIGS["recurrent"].model_fields)


@pytest.mark.parametrize("name", sorted(path.name for path in CONFIGS.glob("*.yaml")))
def test_every_file_in_configs_is_found_from_any_folder_and_loads(name: str) -> None:
    path = find_config(name)
    config = load_config(path)
    said = yaml.safe_load(path.read_text(encoding="utf-8"))
    if name == "base.yaml":
        said["training"]["batch_size"] = 64  # null there, which is replaced
    found = config.model_dump(exclude_unset=True)
    assert {section: {key: found[section][key] for key in said[section]} for section in said} == said


def test_the_second_experiment_differs_from_the_first_in_the_split_alone() -> None:
    first, second = (load_config(CONFIGS / name) for name in ("book.yaml", "book-curves.yaml"))
    shares = {"train_share": 0.8, "validation_share": 0.1, "test_share": 0.1}
    changed = {**shares, "dataset": "english-german-curves"}
    assert second == first.model_copy(update={"data": first.data.model_copy(update=changed)})


def test_base_has_none_of_the_peculiarities_of_the_book() -> None:
    text = (CONFIGS / "book.yaml").read_text(encoding="utf-8")
    marked = re.findall(r"# PECULIAR.*\n(?: *#.*\n)* *(\w+):", text)
    assert " ".join(marked) == (
        "split head_size attention_scale word_embedding scale_embeddings share_decoder_norm source_bos reshuffle"
    )
    base, book = (load_config(CONFIGS / name) for name in ("base.yaml", "book.yaml"))
    for section, key in KEYS:
        is_equal = getattr(getattr(base, section), key) == getattr(getattr(book, section), key)
        assert not (key in marked and is_equal), f"{section}.{key}"


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


def test_a_whole_number_serves_where_a_fraction_is_asked_for() -> None:
    assert load("model:\n  dropout: 0\n").model.dropout == 0.0


# --- what is wrong

MISTAKES = [  # a file, and the key phrase of the message
    ("decoding:\n  zzz: 5", ", line 2: unknown key 'decoding.zzz' (known in decoding: beam_size, length_penalty, "),
    ("training:\n  heads: 5", ", line 2: unknown key 'training.heads' (it belongs to another section: 'model.heads')"),
    ("# own\nepochs: 5", ", line 2: unknown key 'epochs' (it belongs in a section: 'training.epochs')"),
    ("trainin:\n  epochs: 5", ", line 1: unknown key 'trainin' (did you mean 'training'?)"),
    ("zzz: 5", ", line 1: unknown key 'zzz' (known: data, model, training, decoding)"),
    ("training:\n  epochs: many", ", line 2: training.epochs is 'many', but must be a valid integer"),
    ("training:\n  epochs: 2.5", ", line 2: training.epochs is 2.5, but must be a valid integer"),
    ('training:\n  epochs: "5"', ", line 2: training.epochs is '5', but must be a valid integer"),
    ("training:\n  epochs: true", ", line 2: training.epochs is True, but must be a valid integer"),
    ("model:\n  dropout: 1.0", ", line 2: model.dropout is 1.0, but must be less than 1"),
    ("model:\n  dropout: .nan", ", line 2: model.dropout is nan, but must be a finite number"),
    ("model:\n  d_model: 9\n  heads: 3", ", line 2: model.d_model is 9, but must be a multiple of 2"),
    ("model:\n  d_model: 64\n  heads: 7", "heads must divide d_model unless head_size is set. Nearest: heads 8."),
    ("training:\n  augment:\n    upper: 2", ", line 3: training.augment.upper is 2, but must be less than"),
    ("training:\n  augment:\n    join: 0\n    join: 1", ", line 4 sets training.augment.join again"),
    ("training:\n  augment: 0.1", ", line 2: training.augment is 0.1, but must be a map, as {name: value}"),
    ("data:\n  split: source", ", line 2: data.split is 'source', but must be 'by_source' or 'random'"),
    ("training:\n  epochs: 1\ntraining:\n  seed: 2", ", line 3 sets training again"),
    ("- training", " holds no sections, but a list"),
    ("data:\n  dataset: 2024-13-01", " is not valid YAML: month must be in 1..12"),
    *((text, "is not valid YAML: ") for text in ("model: [", "model:\n\theads: 1", "a: b: c", "---\n---", "&", "\0")),
    # They ask for code.
    ("model: !!python/object/apply:os.mkdir [ran]", "is not valid YAML: could not determine a constructor"),
    ("model: !!python/name:os.system", "is not valid YAML: could not determine a constructor"),
    ("!!python/tuple [1]", "is not valid YAML: could not determine a constructor"),
    # Values that are not what their tag says.
    *(
        (f"training: {{epochs: {value}}}", "is not valid YAML: ")
        for value in ("!!int ''", "!!bool x", "!!timestamp x", "!!float ''", "!!int '-'", "!!null [x]")
    ),
    # Python would count for hours.
    *(
        (f"training: {{epochs: {value}}}", ", line 1, column 20 is not valid YAML: the integer has more than 40 ")
        for value in ("0x" + "f" * 9000, "1:" * 30_000 + "1", "9" * 5000, "0b" + "1" * 9000)
    ),
    (f"data: {{train_share: {'1:' * 2000}10.1}}", ""),
    # Aliases could grow without bound.
    ("model: &a\n  heads: *a", ", line 2, column 10 is not valid YAML: the alias *a repeats a value"),
    (LAUGHS, ", line 2, column 8 is not valid YAML: the alias *a repeats a value"),
    (
        LAUGHS.replace("[", "{<<: [").replace("]", "]}").replace("[x, x]", "[{x: 1}]"),
        ", line 2, column 13 is not valid YAML: the alias *a repeats a value",
    ),
    # No machine has such a size, and what counts in 32 or 64 bits would end in tracebacks.
    *(
        (text, "must be less than or equal to")
        for text in (
            "data: {n_sentences: 99999999999999999999}", "data: {source_column: 9999999999}",
            "model: {d_model: 20000000000, heads: 9999999999}", "model: {encoder_layers: 10000000}",
            "training: {batch_size: 99999999999999999999}", "decoding: {top_k: 2147483648}",
            "decoding: {max_length_ratio: 1e300}",
        )
    ),
    # Much is wrong.
    *(
        (text, "")
        for text in (
            "".join(f"k{n}: 1\n" for n in range(2000)), "data:\n" + "".join(f"  k{n}: 1\n" for n in range(2000)),
            f"data: {{dataset: {'x' * 9000}}}", f"data: {{dataset: [{'x, ' * 4000}]}}", f"? {'x' * 9000}\n: 1\n",
            "a: " + "!" * 9000,
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_told_in_short_with_its_place(folder: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    said = str(caught.value)
    assert said.startswith("own.yaml") and message in said
    assert len(said) < 9000 and max(map(len, said.split("\n"))) < 900
    assert "not valid YAML" not in said or "\n" not in said
    assert [entry.name for entry in folder.iterdir()] == ["own.yaml"]


# --- overrides


@pytest.mark.parametrize(
    ("override", "section", "key", "value"),
    [
        ("training.epochs = 5", "training", "epochs", 5),
        ("training.adam_epsilon=1e-7", "training", "adam_epsilon", 1e-7),
        ("training.max_to_keep=null", "training", "max_to_keep", None),
        ("training.max_to_keep=", "training", "max_to_keep", None),
        ("data.dataset='5'", "data", "dataset", "5"),
    ],
)
def test_an_override_sets_one_key(override: str, section: str, key: str, value: Any) -> None:
    before = load("training:\n  epochs: 3\n  max_to_keep: 2\n")
    after = load("training:\n  epochs: 3\n  max_to_keep: 2\n", override)
    assert getattr(getattr(after, section), key) == value
    changed = getattr(before, section).model_copy(update={key: value})
    assert after == before.model_copy(update={section: changed})


def test_overrides_are_taken_together_the_last_of_a_key_counts_and_mends_the_file() -> None:
    config = load("", "data.train_share=0.9", "data.validation_share=0.05", "data.test_share=0.05")
    assert (config.data.train_share, config.data.validation_share, config.data.test_share) == (0.9, 0.05, 0.05)
    assert load("training:\n  epochs: many\n", "training.epochs=5", "training.epochs=6").training.epochs == 6


NOT_YAML = ("[", "2024-13-01", "[" * 1000, "9" * 5000, "0b_")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        *((form, "has no section, key and value") for form in ("epochs=5", "training.epochs", "training.=5", "", "=")),
        *((f"data.seed={value}", "has a value that is not valid YAML") for value in NOT_YAML),
        ("training.heads=5", ": unknown key 'training.heads' (it belongs to another section: 'model.heads')."),
    ],
    ids=lambda text: text[:20],
)
def test_a_wrong_override_is_named_in_place_of_the_line(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load("training:\n  epochs: 3\n", override)
    assert caught.value.on_command_line().startswith((f"--set {override}{message}", f"--set {override!r} {message}"))


@pytest.mark.parametrize("name", ["join", "upper", "quotes"])
def test_a_map_is_set_whole_or_by_name(name: str) -> None:
    file = "training:\n  augment:\n    typos: 0.1\n    title: 0\n"
    assert load(file).training.augment == {"typos": 0.1}
    assert load(file, f"training.augment={{{name}: 0.2}}").training.augment == {name: 0.2}
    both = [load(file, f"training.augment.{name}=0.2"), load(f"training: {{augment: {{{name}: 0.2, typos: 0.1}}}}")]
    assert both[0] == both[1] and both[0].to_yaml() == both[1].to_yaml()
    assert both[0].training.augment == {"typos": 0.1, name: 0.2}


# --- keys that are no longer there

RETIRED = [
    ("data", "shard_tokens", 2**28, 1000), ("training", "sort_by_length", False, True),
    ("training", "reduction", "exact", "fastest"), ("training", "xla", False, True),
    ("training", "pad_to_longest", False, True), ("training", "decay_steps", None, 40),
    ("training", "muon_momentum", 0.95, 0.9), ("training", "trackers", [], ["trackio"]),
]  # fmt: skip


@pytest.mark.parametrize(("section", "key", "followed", "other"), RETIRED)
def test_a_retired_key_is_passed_over_and_noted_where_it_asked_for_more(
    section: str, key: str, followed: Any, other: Any
) -> None:
    for value, noted in ((followed, []), (other, [key])):
        for config in (load(yaml.safe_dump({section: {key: value}})), load("", f"{section}.{key}={json.dumps(value)}")):
            assert config.model_dump() == Config().model_dump() and key not in config.to_yaml()
            assert list(getattr(config, section).not_followed) == noted
    assert read_overrides([f"{section}.{key}=5", f"{section}.seed=3"]) == {f"{section}.seed": 3}


# --- older names of keys

OLDER = [
    ("data", "normalisation", "normalization", "nfkc", "nfkc"),
    ("model", "initialisation", "initializer", "small", "small"),
    ("model", "norm", "norm_placement", "pre", "pre"),
    ("training", "accumulate", "micro_batches", 2, 2),
    ("training", "accumulation_steps", "micro_batches", 2, 2),
    ("training", "pack", "remove_padding", False, False),
    ("training", "schedule", "schedule", "paper", "noam"),
    ("training", "trackers", "tensorboard", ["tensorboard"], True),
]


@pytest.mark.parametrize(("section", "older", "key", "written", "value"), OLDER)
def test_an_older_name_is_read(section: str, older: str, key: str, written: Any, value: Any) -> None:
    text = yaml.safe_dump({section: {older: written}})
    override = f"{section}.{older}={json.dumps(written)}"
    assert read_overrides([override]) == {f"{section}.{key}": value}
    for config in (load(text), load("", override)):
        assert getattr(getattr(config, section), key) == value
        assert config.to_yaml() == load(yaml.safe_dump({section: {key: value}})).to_yaml()


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        ("training: {micro_batches: 4}", ["training.accumulate=2"]),
        ("training: {accumulate: 4}", ["training.micro_batches=2"]),
        ("training: {accumulate: 4}", ["training.accumulate=2"]),
        ("training: {accumulation_steps: 4}", ["training.accumulate=2"]),
        ("", ["training.accumulate=3", "training.micro_batches=2"]),
    ],
)
def test_an_override_replaces_a_key_by_either_of_its_names(text: str, overrides: list[str]) -> None:
    assert load(text, *overrides).training.micro_batches == 2


# --- the format number


@pytest.mark.parametrize("number", [1, 2])
def test_a_format_number_of_today_or_before_is_read(number: int) -> None:
    assert load(f"format: {number}\ntraining: {{epochs: 3}}\n") == load("training: {epochs: 3}")


@pytest.mark.parametrize("number", ["0", "3", "2.0", "true", "null", "'2'", "[2]", "{a: 1}", "x" * 500])
def test_another_format_is_refused_in_words(number: str) -> None:
    with pytest.raises(DataError, match=r"^own\.yaml has format .{1,70}\. This version of nmt reads format 1 or 2\."):
        load(f"format: {number}\n")


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
