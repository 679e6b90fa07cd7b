"""Translation of ordinary text, with a fake search that translates word by word."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nmt.config.data import DataConfig
from nmt.config.schema import Config, DecodingConfig
from nmt.decoding.translation import SearchOptions, Translation
from nmt.text.rewriting import Alignment
from nmt.text.translator import USUAL, TextOptions, Translator
from nmt.tokenizers.base import EOS
from nmt.tokenizers.registry import fit_tokenizer

TRAINED = ["The dog sleeps.", "A man runs.", "Bob sees the dog and a man.", "the dog of Bob runs and sleeps"] * 4
SUBWORDS = fit_tokenizer(TRAINED, DataConfig(tokenizer="subword", normalization="nfkc", vocabulary_size=310))
GERMAN = {"the": "der", "dog": "Hund", "sleeps": "schläft", "a": "ein", "man": "Mann", "runs": "rennt"}

NO_ENGINE: Any = SimpleNamespace(positions=None, only_greedy=False)


class WordByWord(Translator):
    """Translates word by word. An address loses its end, and the translation of "loop" does not end."""

    def __init__(self, split: bool = True, may_repeat: bool = False) -> None:
        decoding = DecodingConfig(ordinary_text="sentences" if split else "lines", beam_size=2)
        super().__init__(NO_ENGINE, SUBWORDS, SUBWORDS, Config(decoding=decoding), 1)
        self.may_repeat = may_repeat
        self.asked: list[list[str]] = []
        self.again: list[list[str]] = []
        self.options: list[SearchOptions] = []
        self.names: list[Sequence[str] | None] = []

    def search(  # type: ignore[override]
        self, texts: Sequence[str], options: SearchOptions, prefix: str, names: Sequence[str] | None,
        skip_too_long: bool, settings: DecodingConfig | None,
    ) -> list[list[Translation]]:  # fmt: skip
        if settings is not None:
            self.again.append([*texts])
            return [[self.translate_words(text, "for ever" not in text, options)] for text in texts]
        self.asked.append([*texts])
        self.options.append(options)
        self.names.append(names)
        return [[self.translate_words(text, text.count("loop") == 0, options)] * options.n_best for text in texts]

    def translate_words(self, text: str, finished: bool, options: SearchOptions) -> Translation:
        if "skipped" in text:
            return Translation("", [], False, [])
        core = text.rstrip(".!")
        words = [GERMAN.get(word.lower(), word.replace("://", ":/")) for word in core.split()]
        words[:1] = [words[0][:1].upper() + words[0][1:]] if words else []
        ids = [*range(5, 5 + len(words)), *([EOS] if finished else [])]
        return Translation(" ".join(words) + text[len(core) :], [], finished, ids, -1.0 if options.scored else None)

    def token_scores(self, texts: Sequence[str], translations: Sequence[list[int]]) -> list[np.ndarray]:
        return [np.zeros(len(ids)) for ids in translations]

    def __call__(self, *texts: str, options: TextOptions = USUAL) -> list[str]:
        return [best.text for best, *_ in self.find(texts, options)]


@pytest.fixture(autouse=True)
def aligned_word_by_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def align(_: Translator, texts: Sequence[str], translations: Sequence[Translation]) -> list[Alignment]:
        return [Alignment(np.eye(len(text.split()))) for text in texts]

    monkeypatch.setattr("nmt.text.translator.align", align)


def test_a_usual_sentence_is_searched_once_and_its_translation_is_not_changed() -> None:
    model = WordByWord()
    (translations,) = model.find(["The dog sleeps."], TextOptions(SearchOptions(scored=True)))
    assert translations == [Translation("Der Hund schläft.", [], True, [5, 6, 7, EOS], -1.0)]
    assert (model.asked, model.again) == ([["The dog sleeps."]], [])


@pytest.mark.parametrize(
    ("line", "translation"),
    [
        ("THE DOG SLEEPS.", "DER HUND SCHLÄFT."),
        ("The Dog Sleeps", "Der Hund schläft"),
        ("The dog SLEEPS.", "Der Hund SCHLÄFT."),
        ('"The dog sleeps."', '"Der Hund schläft."'),
        ("The dog sleeps.  A man runs!", "Der Hund schläft.  Ein Mann rennt!"),
        ('"The dog sleeps. A MAN RUNS."', '"Der Hund schläft. Ein Mann rennt."'),
        ("The dog 😀 sleeps. 😀", "Der Hund 😀 schläft. 😀"),
        ("The dog https://a.de/b sleeps.", "Der Hund https://a.de/b schläft."),
        ("  ", ""),
        ("?!", "?!"),
    ],
)
def test_a_line_of_ordinary_text(line: str, translation: str) -> None:
    if "A MAN RUNS" in line:
        translation = translation.replace("Ein Mann rennt", "EIN MANN RENNT")
    assert WordByWord()(line) == [translation]
    assert WordByWord()("A man runs.", line, "", line) == ["Ein Mann rennt.", translation, "", translation]


def test_sentences_have_the_name_of_their_line_and_their_scores_and_ids_are_joined() -> None:
    model = WordByWord()
    lines = ["The dog sleeps. A man runs.", "Bob runs."]
    (translation,), _ = model.find(lines, TextOptions(SearchOptions(scored=True)), names=["line 1", "line 2"])
    assert model.names == [["line 1", "line 1", "line 2"]]
    assert (translation.score, translation.finished, translation.ids) == (-2.0, True, [5, 6, 7, 5, 6, 7, EOS])
    assert translation.read == "The dog sleeps. A man runs."


def test_a_line_with_a_skipped_sentence_is_skipped() -> None:
    (translation,), _ = WordByWord().find(["The dog sleeps. This is skipped.", "A man runs."], skip_too_long=True)
    assert translation.is_skipped and translation.text == ""


def test_samples_and_n_best_lists_and_unsplit_lines_translate_the_whole_line() -> None:
    line = "The dog sleeps. A man runs."
    for model, options in (
        (WordByWord(), TextOptions(SearchOptions(sampled=True))), (WordByWord(), TextOptions(SearchOptions(n_best=2))),
        (WordByWord(False), USUAL),
    ):  # fmt: skip
        model(line, options=options)
        assert model.asked == [[line]]


def test_an_address_is_copied_if_the_model_loses_it() -> None:
    model = WordByWord()
    assert model("The dog sees www.a.de.", "A man runs.") == ["Der Hund sees www.a.de.", "Ein Mann rennt."]
    assert len(model.asked) == 1, "the model has kept it"
    assert model("The dog https://a.de sleeps.", "A man runs.")[0] == "Der Hund https://a.de schläft."
    assert model.asked[2:] == [["The dog sleeps."]]
    sampling = WordByWord()
    sampling("The dog https://a.de sleeps.", options=TextOptions(SearchOptions(sampled=True)))
    assert sampling.asked == [["The dog sleeps."]], "a sample is drawn once"


def test_a_placeholder_is_a_word_where_the_model_finds_that_likelier(monkeypatch: pytest.MonkeyPatch) -> None:
    model = WordByWord()
    assert model("A man {0} runs.") == ["Ein Mann {0} rennt."]
    assert model.asked == [["A man runs."], ["A man Michael runs.", "A man 6 runs."]]
    monkeypatch.setattr(
        model, "token_scores", lambda texts, _: [np.array([0.0 if "6" in text else -1.0]) for text in texts]
    )
    assert model("A man {0} runs.", "The dog sleeps.") == ["Ein Mann {0} rennt.", "Der Hund schläft."]
    assert model.find(["A man {0} runs."])[0][0].read == "A man 6 runs."


def test_a_placeholder_before_a_small_letter_is_a_word() -> None:
    model = WordByWord()
    assert model("{0} runs.", "%d sleeps") == ["{0} rennt.", "%d schläft"]
    assert model("{0}: A man runs.", "{0}") == ["{0}: Ein Mann rennt.", "{0}"]


def test_a_message_is_translated_branch_by_branch() -> None:
    model = WordByWord()
    text = "The {n, plural, one {dog sleeps} other {# dog}}. "
    (translation,), (plain,) = model.find([text, "A man runs."], names=["line 1", "line 2"])
    assert translation.text == "{n, plural, one {Der Hund schläft.} other {Der # Hund.}}"
    assert (translation.finished, plain.text) == (True, "Ein Mann rennt.")
    assert model("{n, plural, one {the dog} other {a man}") == ["{n, plural, one {the dog} other {a man}"]
    assert model("Room #5 {n, plural, other {a man}}") == ["Room #5 {n, plural, other {a man}}"]


@pytest.mark.parametrize(
    ("line", "translation"),
    [
        ("- The dog sleeps.", "- Der Hund schläft."), ("(A man runs)", "(Ein Mann rennt)"), ("12:45", "12:45"),
        ("1. The dog sleeps. 2. A man runs.", "1. Der Hund schläft. 2. Ein Mann rennt."),
        ("a) THE DOG SLEEPS.", "a) DER HUND SCHLÄFT."), ("The dog [sleeps](a.html).", "Der Hund [schläft](a.html)."),
        ("The **dog** sleeps.", "Der **Hund** schläft."), ("x" * 3_000, "x" * 3_000),
        ("The dog `a b` sleeps", "Der Hund `a b` schläft"),
        ("The dog sleeps.A man runs.", "Der Hund schläft. Ein Mann rennt."),
    ],
)  # fmt: skip
def test_marks_arrive_unchanged(line: str, translation: str) -> None:
    assert WordByWord()(line) == [translation]


def test_a_word_whose_translations_do_not_end_is_copied() -> None:
    model = WordByWord()
    endless = Translation("ein ein ein", [], False, [5] * 9)
    model.translate_words = lambda *_: endless  # type: ignore[method-assign]
    (word,), (short,), (words,) = model.find(["loop", "LOOP", "loop loop"])
    assert (word.text, word.finished, short.text) == ("loop", True, "LOOP")
    assert (words.text, words.finished) == ("ein ein ein", False)


def test_a_translation_that_does_not_end_is_replaced_by_the_next_that_ends() -> None:
    model = WordByWord()
    results = model.find(["The dog loop.", "A man runs.", "The dog loop for ever."])
    assert model.again == [["The dog loop.", "The dog loop for ever."], ["The dog loop for ever."]]
    assert [translations[0].finished for translations in results] == [True, True, False]


@pytest.mark.parametrize("options", [SearchOptions(), SearchOptions(n_best=2), SearchOptions(sampled=True)], ids=str)
@pytest.mark.parametrize("may_repeat", [False, True])
def test_usual_repeats_and_repeats_in_lists_and_samples_stay(options: SearchOptions, may_repeat: bool) -> None:
    model = WordByWord(may_repeat=may_repeat)
    repeating = Translation("der der der", [], True, [5, 5, 5, EOS])
    model.translate_words = lambda *_: repeating  # type: ignore[method-assign]
    [translations] = model.find(["The dog sleeps"], TextOptions(options))
    assert translations == [repeating] * len(translations)
    is_searched_again = options == SearchOptions() and not may_repeat
    assert model.again == [["The dog sleeps"]] * (2 if is_searched_again else 0)


def test_a_translation_without_an_end_is_searched_again_even_if_repeats_are_usual() -> None:
    model = WordByWord(may_repeat=True)
    assert model("The dog loop.") == ["Der Hund loop."]
    assert model.again == [["The dog loop."]]
