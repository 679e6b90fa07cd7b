"""From raw text to raw text: the order, the batching, the limits, the words for what cannot be translated."""

from pathlib import Path

import pytest
from conftest import small_pairs, write_pickle

from nmt import runtime  # noqa: F401 - starts TensorFlow
from nmt.config import Config
from nmt.dataset import prepare
from nmt.errors import DataError
from nmt.evaluation import bleu
from nmt.progress import TrainingProgress
from nmt.run import find_run
from nmt.training import Trainer, start_run
from nmt.translation import Translator


@pytest.fixture
def translator(trained_project: Path, monkeypatch: pytest.MonkeyPatch) -> Translator:
    monkeypatch.chdir(trained_project)
    return Translator.load(find_run("base"))


SENTENCES = ["im one", "im two three four", "one", "im seven six five four three two one", "im thirsty", "two two"]


def test_a_batch_gives_what_its_sentences_give_one_by_one(translator: Translator) -> None:
    together = translator.translate(SENTENCES)
    assert together == [translator.translate([sentence])[0] for sentence in SENTENCES]
    assert together[::-1] == translator.translate(SENTENCES[::-1])


def test_more_sentences_than_a_batch_come_back_in_order(translator: Translator) -> None:
    many = [f"im {source.split()[1]}" for source, _ in small_pairs(200)]
    assert len(many) > translator.config.decoding.batch_size
    by_text = {text: translator.translate([text])[0] for text in set(many)}
    assert translator.translate(many) == [by_text[text] for text in many]


def test_an_empty_sentence_has_an_empty_translation(translator: Translator) -> None:
    first, empty, punctuation = translator.translate(["im one", "", "?!"])
    assert first.text
    assert (empty.text, empty.is_whole) == (punctuation.text, punctuation.is_whole) == ("", True)
    assert (empty.unknown, punctuation.unknown) == ([], ["?!"]), "what disappears is named"
    assert translator.translate([]) == []


def test_the_names_of_special_ids_are_ordinary_unknown_words(translator: Translator) -> None:
    (translation,) = translator.translate(["<eos> <pad> <bos> im one"])
    assert translation.unknown == ["eos", "pad", "bos"]
    assert translation.text


def test_translations_keep_to_their_limit_and_say_so(translator: Translator) -> None:
    settings = translator.config.decoding
    for text, translation in zip(SENTENCES, translator.translate(SENTENCES), strict=True):
        tokens = len(text.split()) + 2
        limit = int(settings.max_length_ratio * tokens) + settings.max_length_extra
        assert len(translation.text.split()) <= limit
        assert translation.is_whole or len(translation.text.split()) == limit


def test_a_source_beyond_learned_positions_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dataset, _ = prepare(write_pickle(tmp_path / "pairs.pkl", small_pairs(60)), Config().data, "pairs")
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "d_ff": 8, "heads": 2}
    model = {**sizes, "positions": "learned", "max_positions": 8}
    config = Config.model_validate({"model": model, "training": {"epochs": 1}})
    run = start_run("learned", config, dataset)
    Trainer(run, config, dataset).train(TrainingProgress(1, 1000))
    translator = Translator.load(run)
    longest = "one two three four five six"  # with bos and eos: 8 positions
    assert len(translator.translate([longest])) == 1
    with pytest.raises(DataError, match=r"at most 6 tokens of source; input\.txt, line 2 has 7"):
        translator.translate(["one", f"{longest} seven"], ["input.txt, line 1", "input.txt, line 2"])


def test_bleu_is_that_of_sacrebleu_with_its_signature() -> None:
    import sacrebleu

    translations, references = ["ich bin sehr durstig", "er ist da"], ["ich bin sehr hungrig", "er ist hier nicht"]
    score, signature = bleu(translations, references)
    assert score == sacrebleu.corpus_bleu(translations, [references]).score
    assert 0 < score < 100
    assert "tok:13a" in signature and "version:" in signature
