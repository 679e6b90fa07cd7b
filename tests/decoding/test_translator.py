"""Translation of raw text: order, batches, limits, and messages about text that cannot be translated."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import MakeRun, small_pairs

from nmt import runtime
from nmt.config.loading import change_decoding
from nmt.config.schema import DecodingConfig
from nmt.decoding.tensorflow_engine import FEW_STEPS, TensorFlowEngine
from nmt.decoding.translation import BEST, CrossAttention, Hypothesis, SearchOptions
from nmt.errors import DataError
from nmt.runs.directory import Run
from nmt.text.translator import TextOptions, Translator
from nmt.tokenizers.base import BOS, EOS


@pytest.fixture(scope="module")
def translator(trained_project: Path) -> Translator:
    return Translator.open(Run(trained_project / "checkpoints" / "base"))


SENTENCES = ["im one", "im two three four", "one", "im seven six five four three two one", "im thirsty", "two two"]


def with_settings(translator: Translator, few_steps: int = FEW_STEPS, **settings: Any) -> Translator:
    """Return a translator of the same model with other settings; ``few_steps`` 0 compiles every search."""
    config = translator.config.model_copy(update={"decoding": change_decoding(translator.config.decoding, settings)})
    engine = TensorFlowEngine(translator.engine.model, config, few_steps)  # type: ignore[attr-defined]
    return Translator(engine, translator.source, translator.target, config, translator.epoch)


@pytest.mark.parametrize(
    "options",
    [SearchOptions(scored=True), SearchOptions(n_best=3, scored=True), SearchOptions(sampled=True, scored=True)],
    ids=str,
)
def test_neither_batches_nor_compilation_change_translations(translator: Translator, options: SearchOptions) -> None:
    settings = {"beam_size": 3 if options.n_best > 1 else 1, "temperature": 2.0, "coverage_penalty": 0.2}
    together = with_settings(translator, 10**6, **settings).find(SENTENCES, TextOptions(options))
    in_parts = with_settings(translator, 0, **settings, batch_size=2).find(SENTENCES, TextOptions(options))
    for n_best, expected in zip(together, in_parts, strict=True):
        unscored = [[translation._replace(score=None) for translation in part] for part in (n_best, expected)]
        scores = [[translation.score for translation in part] for part in (n_best, expected)]
        assert unscored[0] == unscored[1]
        np.testing.assert_allclose(*scores, rtol=1e-4)
        assert len(n_best) == options.n_best
        assert scores[0] == sorted(scores[0], reverse=True)


class FixedBeam(TensorFlowEngine):
    """Engine that returns a fixed beam, in which some hypotheses have the same text."""

    def __init__(self, beam: list[Hypothesis]) -> None:
        self.beam = beam

    def search(self, rows: Any, limits: Any, options: SearchOptions, prefix: Any) -> list[list[Hypothesis]]:
        return [self.beam[: options.n_best] if ids else [] for ids in rows]


def test_the_n_best_translations_have_different_texts(make_run: MakeRun) -> None:
    trained = Translator.open(make_run("subword"))
    config = trained.config.model_copy(update={"decoding": DecodingConfig(beam_size=6)})
    short, long = trained.target.encode("ich bin eins"), trained.target.encode("ich bin")
    again = next(ids for seed in range(50) for ids in trained.target.sample(["ich bin eins"], seed) if ids != short)
    beam = [short, again, long, [*short, *long], long, again]
    engine = FixedBeam([Hypothesis([*ids, EOS], -float(rank)) for rank, ids in enumerate(beam)])
    translator = Translator(engine, trained.source, trained.target, config, trained.epoch)
    for n_best, ranks in ((1, [0]), (2, [0, 2]), (3, [0, 2, 3]), (6, [0, 2, 3])):
        translations, empty = translator.translate_n_best(["im one", ""], n_best)
        assert [translation.score for translation in translations] == [-float(rank) for rank in ranks]
        assert [translation.text for translation in empty] == [""]


@pytest.mark.slow
def test_the_seed_decides_the_samples(translator: Translator) -> None:
    texts = ["im one two"] * 6
    first, repeated, different = (
        with_settings(translator, seed=seed, temperature=3.0).translate(texts, sample=True) for seed in (1, 1, 2)
    )
    assert first == repeated != different
    assert len({*first}) > 1, "equal sentences at different indices are sampled independently"
    likeliest = with_settings(translator, top_k=1, ordinary_text="none")
    assert likeliest.translate(texts, sample=True) == likeliest.translate(texts)


def test_the_score_of_a_translation_equals_the_score_of_the_pair(translator: Translator) -> None:
    pairs = zip(SENTENCES, translator.translate_details(SENTENCES), strict=True)
    finished = [(text, translation) for text, translation in pairs if translation.finished]
    texts = [text for text, _ in finished]
    translations = [translation.text for _, translation in finished]
    scores = [translation.score for _, translation in finished]
    for scorer in (translator, with_settings(translator, batch_size=2)):
        np.testing.assert_allclose(scorer.score(texts, translations), scores, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_prefix_begins_every_translation(translator: Translator, beam_size: int) -> None:
    translator = with_settings(translator, beam_size=beam_size)
    assert all(text.startswith("sieben sechs") for text in translator.translate(SENTENCES, prefix="sieben sechs"))
    with pytest.raises(DataError, match=r"'sieben hundert' contains the word 'hundert'"):
        translator.translate(SENTENCES, prefix="sieben hundert")


def test_attention_has_a_weight_for_every_pair_of_tokens_and_gives_an_alignment(translator: Translator) -> None:
    texts = ["im one two three", "", "one"]
    translations = translator.translate_details(texts)
    first, empty, last = translator.attention(texts, translations)
    shape = (translator.config.model.decoder_layers, translator.config.model.heads)
    assert first.weights.shape == (*shape, len(translations[0].ids), 6)  # bos, four words, eos
    assert last.weights.shape == (*shape, len(translations[2].ids), 3)
    for attention in (first, last):
        np.testing.assert_allclose(attention.weights.sum(axis=-1), 1, rtol=1e-5)
    assert empty.alignment() == []
    pairs = first.alignment()
    assert [j for _, j in pairs] == list(range(len(translations[0].text.split())))
    assert {i for i, _ in pairs} <= {0, 1, 2, 3}
    (single,) = translator.attention(texts[2:], translations[2:])
    np.testing.assert_allclose(single.weights, last.weights, rtol=1e-4, atol=1e-6)


def test_alignment_follows_the_strongest_attention_of_the_last_layer_except_to_bos_and_eos() -> None:
    weights = np.zeros([2, 2, 3, 4], np.float32)
    weights[0, :, :, 1] = 1  # the first layer does not count
    weights[1, 0] = [[0.9, 0.0, 0.1, 0.0], [0.2, 0.5, 0.3, 0.0], [0.0, 0.0, 0.0, 1.0]]
    weights[1, 1] = [[0.9, 0.05, 0.0, 0.0], [0.2, 0.1, 0.7, 0.0], [0.0, 0.0, 0.0, 1.0]]
    assert CrossAttention([BOS, 7, 8, EOS], [5, 6, EOS], weights).alignment() == [(1, 0), (1, 1)]


def test_an_empty_sentence_has_an_empty_translation(translator: Translator) -> None:
    plain = with_settings(translator, ordinary_text="none")
    first, empty, punctuation = plain.translate_details(["im one", "", "?!"])
    assert first.text
    assert (empty.text, empty.finished) == (punctuation.text, punctuation.finished) == ("", True)
    assert (empty.unknown, punctuation.unknown) == ([], ["?!"]), "dropped text is named"
    assert translator.translate([]) == []


def test_the_names_of_special_ids_are_ordinary_unknown_words(translator: Translator) -> None:
    plain = with_settings(translator, ordinary_text="none")
    (translation,) = plain.translate_details(["<eos> <pad> <bos> im one"])
    assert translation.unknown == ["eos", "pad", "bos"]
    assert translation.text


def test_translations_respect_their_length_limit_and_report_it(translator: Translator) -> None:
    settings = translator.config.decoding
    for text, translation in zip(SENTENCES, translator.translate_details(SENTENCES), strict=True):
        tokens = len(text.split()) + 2
        limit = int(settings.max_length_ratio * tokens) + settings.max_length_extra
        assert len(translation.text.split()) <= limit
        assert translation.finished or len(translation.text.split()) == limit


@pytest.mark.slow
def test_a_source_beyond_learned_positions_is_refused_by_name(make_run: MakeRun) -> None:
    run = make_run("word", positions="learned", max_positions=8)
    translator = Translator.open(run, decoding={"ordinary_text": "none"})
    longest = "one two three four five six"  # with bos and eos: 8 positions
    halves = Translator.open(run).translate(["one two three", "four five six seven"])
    assert Translator.open(run).translate([f"{longest} seven"]) == [" ".join(halves)], "ordinary text is cut"
    assert len(translator.translate([longest])) == 1
    with pytest.raises(DataError, match=r"input\.txt, line 2 has 7 tokens\. This model reads at most 6"):
        translator.translate(["one", f"{longest} seven"], names=["input.txt, line 1", "input.txt, line 2"])
    details = translator.translate_details(["one", f"{longest} seven", "", longest], skip_too_long=True)
    expected = [*translator.translate(["one"]), "", "", *translator.translate([longest])]
    assert [translation.is_skipped for translation in details] == [False, True, False, False]
    assert [translation.text for translation in details] == expected
    assert details[1].unknown == []
    eins = " ".join(["eins"] * 7)  # with bos: 8 positions
    assert translator.score(["one"], [eins])[0] < 0
    with pytest.raises(DataError, match=r"translation of pair 2 has 8 tokens\. This model writes at most 7 tokens"):
        translator.score(["one", "one"], [eins, f"{eins} eins"])


@pytest.mark.slow
def test_several_threads_get_the_results_of_a_single_thread(translator: Translator) -> None:
    """Threads that request a search at the same time compile it once; their sentences and options differ."""
    kinds = [SearchOptions(n_best=2), SearchOptions(scored=True), SearchOptions(sampled=True)]
    translations = [small_pairs()[number][1] for number in range(len(SENTENCES))]

    def work(own: Translator, number: int) -> Any:
        texts = SENTENCES[number % 3 :]
        if number % 5 < 3:
            return own.find(texts, TextOptions(kinds[number % 5]))
        if number % 5 == 3:
            return own.score(texts, translations[number % 3 :])
        return [attention.alignment() for attention in own.attention(texts, own.translate_details(texts))]

    own, fresh = (with_settings(translator, 0, beam_size=2) for _ in range(2))
    fresh.engine._compiled = {}  # type: ignore[attr-defined] # engines of a model share what they compile
    expected = [work(own, number) for number in range(10)]
    with ThreadPoolExecutor(10) as threads:
        results = list(threads.map(lambda number: work(fresh, number), range(10)))
    assert results == expected
    assert len(fresh.engine._compiled) == 4  # type: ignore[attr-defined] # three searches, and attention


@pytest.mark.parametrize("options", [SearchOptions(n_best=2, scored=True), SearchOptions(sampled=True)], ids=str)
def test_parallel_batches_give_the_results_of_sequential_batches(
    translator: Translator, options: SearchOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = with_settings(translator, 0, beam_size=options.n_best, batch_size=2)
    searching, peak, lock, find = 0, 0, threading.Lock(), own.engine.search_batch

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal searching, peak
        with lock:
            searching += 1
            peak = max(peak, searching)
        time.sleep(0.05)  # lets the other threads begin
        try:
            return find(*args, **kwargs)
        finally:
            with lock:
                searching -= 1

    own.engine.search_batch = counted  # type: ignore[method-assign]
    results = []
    for cores in (1, 2, 3):
        peak = 0
        monkeypatch.setattr(runtime, "cores", lambda cores=cores: cores)
        results.append(own.find(SENTENCES * 3, TextOptions(options)))
        assert peak == cores
    assert results[0] == results[1] == results[2]


def test_scores_and_attention_do_not_depend_on_the_number_of_cores(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = with_settings(translator, 0, batch_size=3).engine
    sources = [translator.source.encode(source) for source, _ in small_pairs(20)]
    targets = [translator.target.encode(target) for _, target in small_pairs(20)]
    results = []
    for cores in (1, 3):
        monkeypatch.setattr(runtime, "cores", lambda cores=cores: cores)
        results.append([engine.token_scores(sources, targets), engine.cross_attention(sources, targets)])
    for one, several in zip(*results, strict=True):
        assert len(one) == len(several) == 20
        for expected, found in zip(one, several, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("sentences", "cores", "sizes"), [(64, 2, [32, 32]), (9, 4, [8, 1]), (200, 2, [64, 64, 64, 8])]
)
def test_every_core_gets_a_batch(
    translator: Translator, sentences: int, cores: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "cores", lambda: cores)
    engine = with_settings(translator, 0, batch_size=64).engine
    found: list[int] = []
    search = engine.search_batch

    def counted(source: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        found.append(len(source))
        return search(source, *args, **kwargs)

    monkeypatch.setattr(engine, "search_batch", counted)
    engine.search([[5]] * sentences, np.full(sentences, 3, np.int32), BEST)
    assert sorted(found, reverse=True) == sizes


def test_an_error_in_a_parallel_batch_is_raised(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "cores", lambda: 2)
    own = with_settings(translator, 0)
    monkeypatch.setattr(own.engine, "search_batch", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        own.translate([source for source, _ in small_pairs(300)])


def test_a_given_translation_ends_with_eos_and_fits_the_positions_that_the_decoder_reads(make_run: MakeRun) -> None:
    translator = Translator.open(make_run("word", positions="learned", max_positions=3))
    ids = translator.target.encode("eins zwei")
    assert translator.given_translation("Eins, zwei!").ids == [*ids, EOS]  # reads bos, eins, zwei
    with pytest.raises(DataError, match=r"'eins zwei drei' has 3 tokens\. This model writes at most 2 tokens"):
        translator.given_translation("eins zwei drei")
