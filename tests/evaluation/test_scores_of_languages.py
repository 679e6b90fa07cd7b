"""Metrics fit the target language: BLEU, TER and the best validation."""

import importlib.util
from pathlib import Path

import pytest
import sacrebleu
import sentencepiece
from conftest import an_epoch, nmt
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.tokenizers import tokenizer_spm

from nmt.config.training import BestBy
from nmt.errors import NmtError
from nmt.evaluation.metrics import PACKAGES, WITH_MODEL, check_metrics, make_metric, tokenization_of
from nmt.evaluation.scoring import score_systems
from nmt.runs.metrics import LEAST_BLEU, best_of, measure_in_force

SENTENCES = {
    "zh": ["一个男人在公园里和他的狗玩。", "三个女孩在湖边跑步。"],
    "ja": ["男の人が公園で犬と遊んでいる。", "三人の女の子が湖のそばを走っています。"],
    "th": ["ผู้ชายคนหนึ่งกำลังเล่นกับสุนัขของเขา", "เด็กผู้หญิงสามคนวิ่งอยู่ริมทะเลสาบ"],
    "km": ["បុរសម្នាក់កំពុងលេងជាមួយឆ្កែ", "ក្មេងស្រីបីនាក់រត់"],
    "lo": ["ຜູ້ຊາຍກຳລັງຫຼິ້ນກັບໝາ", "ເດັກຍິງສາມຄົນແລ່ນ"],
    "my": ["လူတစ်ယောက်သည် ခွေးနှင့် ကစားနေသည်", "မိန်းကလေးသုံးယောက် ပြေးနေသည်"],
    "bo": ["མི་ཞིག་ཁྱི་དང་མཉམ་དུ་རྩེད་མོ་རྩེ།", "བུ་མོ་གསུམ་རྒྱུག"],
    "de": ["Ein Mann spielt mit seinem Hund.", "Drei Mädchen laufen am See!"],
    "ar": ["رجل يلعب مع كلبه في الحديقة.", "ثلاث فتيات يركضن بجانب البحيرة!"],
    "hi": ["एक आदमी अपने कुत्ते के साथ खेल रहा है।", "तीन लड़कियाँ झील के पास दौड़ रही हैं।"],
    "tr": ["Bir adam köpek ile parkta oynuyor.", "Bir köpek evde uyuyor!"],
}
HAS_MECAB = all(importlib.util.find_spec(module) for module in PACKAGES["ja-mecab"])
EXPECTED = {
    "zh": "zh", "ja": "ja-mecab" if HAS_MECAB else "char", **dict.fromkeys(["th", "km", "lo", "my", "bo"], "char"),
    **dict.fromkeys(["de", "ar", "hi", "tr"], "13a"),
}  # fmt: skip


@pytest.mark.parametrize("language", SENTENCES)
def test_the_tokenization_follows_the_language_or_else_the_script(language: str) -> None:
    assert tokenization_of(language) == tokenization_of(f"{language}-XX") == EXPECTED[language]
    assert tokenization_of("target", SENTENCES[language]) == EXPECTED[language]
    assert tokenization_of("target") == tokenization_of("target", ["123 !"]) == "13a"


@pytest.mark.parametrize("language", SENTENCES)
def test_half_right_translations_have_scores_between_nothing_and_all(language: str) -> None:
    """With 13a a sentence without spaces is a single word, so that half of it right counts for nothing."""
    references = SENTENCES[language] * 4
    half = [text[: max(1, 2 * len(text) // 3)] for text in references]
    tokenization = tokenization_of(language)
    scored = score_systems({"same": references, "half": half}, [references], ["bleu", "chrf", "ter"], tokenization)
    bleu, ter = ({name: scored.systems[name][metric].score for name in ("same", "half")} for metric in ("BLEU", "TER"))
    assert bleu["same"] == pytest.approx(100)
    assert ter["same"] == 0
    assert 10 < bleu["half"] < 100
    assert f"tok:{tokenization}" in scored.signatures["BLEU"]
    if language in {"zh", "ja"}:  # sacrebleu's TER separates these scripts alone
        assert "asian:yes" in scored.signatures["TER"]
        assert 0 < ter["half"] < 100


def test_the_metrics_are_those_of_sacrebleu() -> None:
    references = SENTENCES["zh"]
    half = [text[:9] for text in references]
    for name, theirs in {
        "bleu": sacrebleu.BLEU(tokenize="zh"), "ter": sacrebleu.TER(normalized=True, asian_support=True)
    }.items():  # fmt: skip
        ours = make_metric(name, "zh")
        assert ours.corpus_score(half, [references]).score == theirs.corpus_score(half, [references]).score
        assert str(ours.get_signature()) == str(theirs.get_signature())


@pytest.mark.parametrize("tokenization", PACKAGES)
def test_a_tokenization_without_its_package_is_refused(tokenization: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.evaluation.metrics.find_spec", lambda name: None)
    with pytest.raises(NmtError, match=rf"pip install 'sacrebleu\[{tokenization[:2]}\]'"):
        check_metrics([], tokenization)
    assert tokenization_of(tokenization[:2]) in {"char", "13a"}


MODELS = {"flores101": "sacrebleu_tokenizer_spm.model", "flores200": "flores200sacrebleuspm"}


@pytest.mark.parametrize("tokenization", WITH_MODEL)
def test_a_model_that_cannot_be_downloaded_is_named_with_its_place(
    tokenization: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download_file(url: str, path: str) -> None:
        raise OSError(f"no network for {url}")

    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", str(folder))
    monkeypatch.setattr(tokenizer_spm, "download_file", download_file)
    Path("a").write_text("ein Hund\n")
    command = ["evaluate", "--hypothesis", "a", "--reference", "a", "--tokenize", tokenization]
    message = " ".join(nmt(*command, cwd=folder, code=2).stderr.split())
    assert f"--tokenize {tokenization} needs a model of sacrebleu, which cannot be used: no network for" in message
    assert f"to {folder / 'models' / MODELS[tokenization]}. Put the file there" in message
    (folder / "models").mkdir()
    (folder / "models" / MODELS[tokenization]).write_bytes(b"damaged")
    assert "remove a damaged one" in nmt(*command, cwd=folder, code=2).stderr.replace("\n     ", " ")


@pytest.mark.parametrize("tokenization", WITH_MODEL)
def test_spbleu_is_computed_with_the_model_of_sacrebleu(
    tokenization: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", str(folder))
    (folder / "models").mkdir()
    (folder / "text").write_text("\n".join(text for texts in SENTENCES.values() for text in texts))
    sentencepiece.SentencePieceTrainer.train(
        input="text", model_prefix="small", vocab_size=250, character_coverage=1.0, minloglevel=2
    )
    Path("small.model").rename(folder / "models" / MODELS[tokenization])
    for texts in SENTENCES.values():
        assert check_metrics([], tokenization)
        scored = score_systems({"a": texts}, [texts], ["bleu"], tokenization)
        assert scored.systems["a"]["BLEU"].score == pytest.approx(100)
        assert f"tok:{tokenization}" in scored.signatures["BLEU"]


def test_the_best_validation_is_chosen_by_chrf_while_bleu_says_little() -> None:
    early = [
        an_epoch(1, validation_bleu=0.3, validation_chrf=12.0), an_epoch(2, validation_bleu=0.2, validation_chrf=15.0)
    ]  # fmt: skip
    assert measure_in_force(early, "bleu") == "chrf"
    assert best_of(early, "bleu") is early[1]
    later = [*early, an_epoch(3, validation_bleu=LEAST_BLEU, validation_chrf=14.0)]
    assert measure_in_force(later, "bleu") == "bleu"
    assert best_of(later, "bleu") is later[2]
    without = [an_epoch(1, validation_bleu=0.3), an_epoch(2, validation_bleu=0.2)]
    assert best_of(without, "bleu") is without[0]
    assert best_of(early, "accuracy") is early[0]


@pytest.mark.parametrize("by", ["bleu", "chrf"])
@pytest.mark.parametrize(
    ("score", "accuracy", "is_best"), [(28.0, 0.63, True), (28.0, 0.61, False), (29.5, 0.61, True), (27.0, 0.63, False)]
)
def test_between_scores_that_differ_by_chance_the_accuracy_decides(
    by: BestBy, score: float, accuracy: float, is_best: bool
) -> None:
    first, second = (
        an_epoch(number, validation_bleu=score, validation_chrf=score, validation_accuracy=accuracy)
        for number, (score, accuracy) in enumerate([(28.2, 0.62), (score, accuracy)], start=1)
    )
    assert best_of([first, second], by) is (second if is_best else first)


SCORES = st.floats(0, 12) | st.none()


@given(
    st.lists(st.tuples(SCORES, SCORES, st.floats(0, 1), st.floats(0, 9)), min_size=2, max_size=9),
    st.sampled_from(["bleu", "chrf", "loss", "accuracy"]),
)
def test_a_later_validation_never_makes_an_earlier_one_the_best(
    values: list[tuple[float | None, float | None, float, float]], by: BestBy
) -> None:
    epochs = [
        an_epoch(number, validation_bleu=bleu, validation_chrf=chrf, validation_accuracy=accuracy, validation_loss=loss)
        for number, (bleu, chrf, accuracy, loss) in enumerate(values, start=1)
    ]
    for count in range(1, len(epochs)):
        assert best_of(epochs[: count + 1], by) in (best_of(epochs[:count], by), epochs[count])
