"""Export to CTranslate2 and translation with it, compared with nmt for every option of the Transformer."""

import dataclasses
import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import EXPORT_SIZES, SHORT_SEARCH, MakeRun

from nmt.config.transformer import TransformerConfig
from nmt.decoding.ctranslate2_engine import CTranslate2Engine
from nmt.decoding.translation import SearchOptions
from nmt.errors import DataError, NmtError
from nmt.export.argos import ArgosExporter
from nmt.export.base import TrainedModel
from nmt.export.ctranslate2 import CTranslate2Exporter
from nmt.export.transformer_weights import SUPPORTED, TRAINING_ONLY
from nmt.runs.directory import Run
from nmt.runtime import tf
from nmt.text.translator import TextOptions, Translator
from nmt.tokenizers.base import BOS, EOS, PAD, tag_id

TEXTS = ["im one two three!", "im seven!", "im thirsty!", "", "im five five zz six!", "two im!"]
Variant = tuple[str, dict[str, Any]]
FAST: list[Variant] = [
    ("subword", {}),
    ("word", {"positions": "learned", "max_positions": 24}),
    ("subword", {"positions": "rotary", "position_base": 100.0}),
    ("subword", {"query_key_norm": True, "heads": 4}),
    ("separate", {"tie_embeddings": "none", "norm_placement": "pre"}),
    ("word", {"attention_scale": "projection", "activation": "swish", "output_bias": True}),
]
SLOW: list[Variant] = [
    ("subword", {"norm_placement": "pre", "query_key_norm": True, "head_size": 12}),
    ("subword", {"norm_placement": "pre"}),
    ("subword", {"tie_embeddings": "all"}),
    ("word", {"tie_embeddings": "none"}),
    ("char", {}),
    ("joint-words", {"tie_embeddings": "all"}),
    ("subword", {"head_size": 12, "heads": 3}),
    ("word", {"share_decoder_norm": True}),
    ("word", {"word_embedding": "sinusoidal", "tie_embeddings": "none"}),
    ("word", {"word_embedding": "sinusoidal", "tie_embeddings": "none", "position_base": 100.0}),
    ("subword", {"scale_embeddings": False, "source_bos": False}),
    ("word", {"layer_norm_epsilon": 1e-2, "decoder_layers": 3, "encoder_layers": 1}),
]


Pair = tuple[Translator, Translator]


def test_every_supported_key_has_a_variant_here_and_is_a_key_of_the_section() -> None:
    tried = EXPORT_SIZES.keys() | {key for _, options in (*FAST, *SLOW) for key in options}
    assert tried == SUPPORTED and TransformerConfig.model_fields.keys() > TRAINING_ONLY | SUPPORTED


def exported(run: Run, folder: Path) -> Pair:
    """Return the translator of a run and the translator of its export, both with ``ordinary_text: none``."""
    model, exporter = TrainedModel.of(run, None), CTranslate2Exporter()
    decoding = model.config.decoding.model_copy(update={"ordinary_text": "none"})
    model = dataclasses.replace(model, config=model.config.model_copy(update={"decoding": decoding}))
    exporter.check(model)
    exporter.write(model, folder)
    engine = CTranslate2Engine(folder, model.config, exporter.positions(model))
    return Translator.open(run, decoding=decoding), Translator(
        engine, model.source, model.target, model.config, model.epoch
    )


@pytest.fixture(scope="module")
def made() -> list[Pair]:
    return []


@pytest.fixture
def pair(make_run: MakeRun, made: list[Pair], tmp_path: Path) -> Pair:
    """Translators of a run on subwords and of its export, made once."""
    if not made:
        made.append(exported(make_run("subword"), tmp_path))
    return made[0]


def expected_scores(translator: Translator, sources: list[str], targets: list[str]) -> list[float]:
    """Return log P(target | source) among the tokens that search can generate, which excludes pad and bos."""
    scores = []
    for source, target in zip(sources, targets, strict=True):
        bos = [BOS] if translator.config.model.reads_bos else []
        ids = tf.constant([[*bos, *translator.source.encode(source), EOS]])
        whole = tf.constant([[BOS, *translator.target.encode(target), EOS]])
        logits = translator.engine.model(ids, whole[:, :-1]).numpy()[0].astype(np.float64)
        logits[:, [PAD, BOS]] = -np.inf
        chosen = logits[np.arange(len(logits)), whole.numpy()[0, 1:]]
        scores.append(float((chosen - np.log(np.exp(logits).sum(axis=1))).sum()))
    return scores


@pytest.mark.parametrize(
    ("tokenizer", "section"),
    [*FAST, *(pytest.param(*variant, marks=pytest.mark.slow) for variant in SLOW)],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_every_option_is_exported(make_run: MakeRun, tmp_path: Path, tokenizer: str, section: dict[str, Any]) -> None:
    ours, theirs = exported(make_run(tokenizer, **section), tmp_path)
    mine, other = (translator.find(TEXTS) for translator in (ours, theirs))
    assert [n_best[0]._replace(score=None) for n_best in other] == [n_best[0]._replace(score=None) for n_best in mine]
    targets = ["ich bin eins zwei drei schön", "ich", "ich bin durstig schön", "", "funf", "ich ich ich"]
    kept = [index for index, text in enumerate(TEXTS) if text]
    pairs = [TEXTS[index] for index in kept], [targets[index] for index in kept]
    assert theirs.score(*pairs) == pytest.approx(expected_scores(ours, *pairs), rel=1e-4)


@pytest.mark.parametrize("exporter", [CTranslate2Exporter(), ArgosExporter()], ids=["ctranslate2", "argos"])
def test_usage_warns_of_versions_that_translate_wrongly(make_run: MakeRun, exporter: CTranslate2Exporter) -> None:
    usages = [exporter.usage(TrainedModel.of(make_run("subword", query_key_norm=norm), None)) for norm in (False, True)]
    assert ["needs CTranslate2 4.7" in usage for usage in usages] == [False, True]


def test_a_tag_is_a_source_token_of_the_export(make_run: MakeRun, tmp_path: Path) -> None:
    ours, theirs = exported(make_run("tagged", {**SHORT_SEARCH, "tag": "bt"}), tmp_path)
    plain = ours.reconfigured(ours.config.decoding.model_copy(update={"tag": None}))
    mine, other, without = (translator.find(TEXTS) for translator in (ours, theirs, plain))
    ids = [[n_best[0].ids for n_best in found] for found in (mine, other, without)]
    assert ids[0] == ids[1] != ids[2]
    tag = tag_id(ours.source, "bt")
    assert theirs.encode(["im one", ""]) == [[tag, *ours.source.encode("im one")], []]
    assert theirs.engine._pieces([tag]) == ["<bt>"]  # type: ignore[attr-defined]
    with pytest.raises(NmtError, match="There is no tag 'web': the vocabulary has bt"):
        ours.reconfigured(ours.config.decoding.model_copy(update={"tag": "web"}))


@pytest.mark.parametrize("tokenizer", ["subword", "word"])
def test_beam_search_finds_the_same_with_our_scores(make_run: MakeRun, tmp_path: Path, tokenizer: str) -> None:
    pair = exported(make_run(tokenizer), tmp_path)
    decoding = pair[0].config.decoding.model_copy(update={"beam_size": 4, "length_penalty": 0.8})
    ours, theirs = (translator.reconfigured(decoding) for translator in pair)
    options = SearchOptions(n_best=4, scored=True)
    mine, other = (translator.find(TEXTS, TextOptions(options)) for translator in (ours, theirs))
    assert [n_best[0].ids for n_best in other] == [n_best[0].ids for n_best in mine]
    for n_best in mine + other:
        assert len({translation.text for translation in n_best}) == len(n_best)
    for text, n_best in zip(TEXTS, other, strict=True):
        scores = [translation.score for translation in n_best]
        assert scores == sorted(scores, reverse=True)
        for translation in n_best:
            if text and translation.finished and ours.target.encode(translation.text) == translation.ids[:-1]:
                [score] = expected_scores(ours, [text], [translation.text])
                assert translation.score == pytest.approx(score / ((5 + len(translation.ids)) / 6) ** 0.8, rel=1e-4)


def test_a_prefix_begins_every_translation(pair: Pair) -> None:
    mine, other = (translator.find(TEXTS, prefix="ich bin") for translator in pair)
    assert [n_best[0].ids for n_best in other] == [n_best[0].ids for n_best in mine]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_no_n_gram_is_written_twice(pair: Pair, beam_size: int) -> None:
    settings = {"beam_size": beam_size, "no_repeat_ngram_size": 2, "max_length_extra": 12}
    decoding = pair[0].config.decoding.model_copy(update=settings)
    mine, other = ([best.ids for [best] in translator.reconfigured(decoding).find(TEXTS)] for translator in pair)
    assert all(len({*itertools.pairwise(ids)}) == max(0, len(ids) - 1) for ids in mine + other)
    assert mine == other or beam_size > 1  # CTranslate2 divides the probability of masked tokens among the others


def test_attention_to_words_is_the_mean_over_the_heads_of_the_last_layer(pair: Pair) -> None:
    ours, theirs = pair
    texts = [text for text in TEXTS if text]
    translations = ours.translate_details(texts)
    for mine, other in zip(ours.attention(texts, translations), theirs.attention(texts, translations), strict=True):
        assert (other.source, other.target) == (mine.source, mine.target)
        words = slice(1, len(mine.source) - 1)
        expected = mine.weights[-1].mean(axis=0)[:, words]
        np.testing.assert_allclose(other.weights[0, 0][: len(expected), words], expected, atol=1e-4)
        assert other.alignment() == mine.alignment()


def test_several_threads_sample_each_by_its_seed(pair: Pair) -> None:
    decoding = pair[1].config.decoding
    seeded = [pair[1].reconfigured(decoding.model_copy(update={"seed": seed})) for seed in range(6)]
    drawn = TextOptions(SearchOptions(sampled=True))
    expected = [theirs.find(TEXTS, drawn) for theirs in seeded]
    with ThreadPoolExecutor(len(seeded)) as threads:
        found = list(threads.map(lambda theirs: theirs.find(TEXTS, drawn), seeded * 3))
    assert found == expected * 3 and len(set(map(str, expected))) > 1


def test_a_sentence_longer_than_the_positions_is_refused(make_run: MakeRun, tmp_path: Path) -> None:
    _, theirs = exported(make_run("char"), tmp_path)
    longest = "a" * (2048 - 2)
    assert len(theirs.encode([longest])[0]) == 2046
    with pytest.raises(DataError, match=r"sentence 2 has 2,047 tokens\. This model reads at most 2,046"):
        theirs.translate(["im one!", longest + "a"])


def test_a_word_that_is_spelled_as_a_special_token_stays_a_word(
    make_run: MakeRun, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nmt

    monkeypatch.chdir(prepared)
    rows = [f"</s> <unk> n{number}\t<s> <pad> n{number} </s>" for number in range(12)]
    (prepared / "marks.tsv").write_text("\n".join(rows) + "\n")
    keys = {"data.tokenizer": "word", "data.normalization": "none", "data.joint_vocabulary": False}
    nmt.prepare("marks.tsv", name="marks", set=keys, overwrite=True)
    ours, theirs = exported(make_run("marks"), tmp_path)
    texts = ["</s> <unk> n1", "n2 </s> </s> unseen"]
    mine, other = (translator.find(texts) for translator in (ours, theirs))
    assert [n_best[0].ids for n_best in other] == [n_best[0].ids for n_best in mine]
    assert theirs.score(texts, ["<s> n1", "</s>"]) == pytest.approx(
        expected_scores(ours, texts, ["<s> n1", "</s>"]), rel=1e-4
    )
