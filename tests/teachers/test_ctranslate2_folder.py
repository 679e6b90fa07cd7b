"""Converted models of the public families as teachers: layout of tokens, languages, scores and damaged folders.

``NMT_CONSUMERS`` names the Python of an environment with CTranslate2, PyTorch and transformers, as ``.ci/run`` makes
it. They make small models with random weights of each family, convert them, and translate with them.
"""

import dataclasses
import io
import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from conftest import MakeRun
from marian_models import safetensors_folder

from nmt.config.schema import DecodingConfig
from nmt.config.teacher import TeacherConfig
from nmt.decoding.ctranslate2_engine import CTranslate2Engine
from nmt.decoding.translation import SearchOptions
from nmt.errors import DataError
from nmt.export.base import TrainedModel
from nmt.export.ctranslate2 import CTranslate2Exporter
from nmt.teachers.ctranslate2_folder import FolderTeacher, fitting_tokens
from nmt.teachers.teacher import CUT_OFF, EMPTY, TOO_LONG, Candidate
from nmt.text.translator import TextOptions, Translator

PYTHON = os.environ.get("NMT_CONSUMERS")
JOURNAL = Path("unused")
WORDS = {
    "de": "der hund läuft schnell über das grüne gras und eine große katze schläft nicht im schönen haus",
    "zh-Hans": "今天 天气 很好 我们 去 公园 看 花 他 喜欢 学习 新 的 语言",
    "ar": "مرحبا بالعالم كيف حالك اليوم أنا أحب القراءة في المكتبة الكبيرة مع أصدقائي",
    "hi": "नमस्ते दुनिया आप कैसे हैं आज मौसम बहुत अच्छा है और हम बाज़ार जा रहे",
    "tr": "güzel bir gün öğretmen çocuğa İstanbul şehrini anlatıyor ve ağaçlar çiçek açıyor",
}
UNKNOWN = [" 😀", "«"]
"""Ends of sentences with characters that the sentencepiece models do not know."""
ENDS = ["", "", "!", "?", " 3,5 %", " (x)", "  .", "'", *UNKNOWN]
LIMIT = 60
"""Most tokens of a translation."""
Tokens = dict[str, str]


def sentences(language: str, count: int = 40) -> list[str]:
    """Return sentences of random words of a language."""
    dice, words = random.Random(language), WORDS[language].split()
    space = "" if language.startswith("zh") else " "
    return [space.join(dice.choices(words, k=dice.randint(1, 12))) + dice.choice(ENDS) for _ in range(count)]


def write_sentencepiece(path: Path, **options: Any) -> sentencepiece.SentencePieceProcessor:
    """Write a sentencepiece model of the words of all languages."""
    texts = [text for language in WORDS for text in sentences(language) if not text.endswith(tuple(UNKNOWN))]
    model = io.BytesIO()
    settings = {"vocab_size": 300, "hard_vocab_limit": False, "minloglevel": 2, "num_threads": 1, **options}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=model, **settings)
    path.write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


# --- equality with the models' own tokenizers ------------------------------------------------------------------------

REFERENCE = r"""
import json, os, sys
from pathlib import Path
os.environ["HF_HUB_OFFLINE"] = "1"
import ctranslate2, sentencepiece, torch, transformers
from ctranslate2.converters import TransformersConverter
from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES as M2M
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as NLLB

family, folder, texts, limit, alpha = json.load(sys.stdin)
NLLB_CODES = {"de": "deu_Latn", "zh-Hans": "zho_Hans", "ar": "arb_Arab", "hi": "hin_Deva", "tr": "tur_Latn"}
PREFIX = {"nllb": ["eng_Latn"], "m2m": ["__en__"]}.get(family, [])
MARK = {"madlad": "<2en> ", "marian": ">>fra<< "}.get(family, "")
SHAPE = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_position_embeddings": 80, "init_std": 0.3,
    "tie_word_embeddings": False,
}

def make():
    if family == "nllb":
        tokenizer = transformers.NllbTokenizer.from_pretrained(folder, extra_special_tokens=[*NLLB])
        tokenizer.save_pretrained(folder)
        config = transformers.M2M100Config(vocab_size=len(tokenizer), **SHAPE)
        return tokenizer, transformers.M2M100ForConditionalGeneration(config)
    if family == "m2m":
        model = sentencepiece.SentencePieceProcessor(model_file=folder + "/sentencepiece.bpe.model")
        pieces = ["<s>", "<pad>", "</s>", "<unk>", *(model.id_to_piece(id_) for id_ in range(3, len(model)))]
        Path(folder, "vocab.json").write_text(json.dumps({piece: id_ for id_, piece in enumerate(pieces)}))
        special = {"additional_special_tokens": [f"__{code}__" for code in M2M["m2m100"]]}
        Path(folder, "tokenizer_config.json").write_text(json.dumps(special | {"tokenizer_class": "M2M100Tokenizer"}))
        tokenizer = transformers.M2M100Tokenizer.from_pretrained(folder)
        config = transformers.M2M100Config(vocab_size=len(pieces) + 108, **SHAPE)
        return tokenizer, transformers.M2M100ForConditionalGeneration(config)
    tokenizer = transformers.T5Tokenizer.from_pretrained(folder, extra_ids=0)
    tokenizer.save_pretrained(folder)
    config = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0,
        feed_forward_proj="gated-gelu", tie_word_embeddings=False,
    )
    return tokenizer, transformers.T5ForConditionalGeneration(config)

def score(source, tokens):
    [result] = translator.score_batch([source], [tokens[:-1]])
    scores = result.log_probs[len(PREFIX):]
    return sum(scores) / len(scores)

def text_of(tokens):
    words = [token for token in tokens if not token.startswith(">>")]
    return tokenizer.decode(tokenizer.convert_tokens_to_ids(words), skip_special_tokens=True)

torch.manual_seed(1)
if family != "marian":
    tokenizer, model = make()
    with torch.no_grad():
        model.lm_head.weight.normal_(0, 1)
        tokens = tokenizer.convert_ids_to_tokens([*range(len(model.lm_head.weight))])
        words = {*tokens} - {*NLLB, "<pad>", "<unk>", "<s>", "<mask>"}
        for id_, token in enumerate(tokens):
            if token not in words or token.startswith(("__", "<2", "madeup")):
                model.lm_head.weight[id_] = 0
        model.lm_head.weight[tokenizer.eos_token_id] *= 3
    model.save_pretrained(folder)
copied = [path.name for path in Path(folder).iterdir() if path.suffix in (".spm", ".model")]
TransformersConverter(folder, copy_files=copied).convert(folder + "-converted")

tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
translator = ctranslate2.Translator(folder + "-converted")
answer = {}
for language, lines in texts.items():
    tokenizer.src_lang = {"nllb": NLLB_CODES[language], "m2m": language[:2]}.get(family)
    ids = [tokenizer.encode(MARK + line) for line in lines]
    sources = list(map(tokenizer.convert_ids_to_tokens, ids))
    for beam, penalty in ((1, 0), (4, alpha)):
        results = translator.translate_batch(
            sources, target_prefix=[PREFIX] * len(sources), beam_size=beam, num_hypotheses=beam, length_penalty=penalty,
            max_decoding_length=limit + len(PREFIX), min_decoding_length=0, return_end_token=True,
        )
        answer[f"{language} {beam}"] = [
            [
                [text_of(tokens[len(PREFIX):]), score(source, tokens) if tokens[-1] == "</s>" else None]
                for tokens in result.hypotheses
            ]
            for source, result in zip(sources, results)
        ]
    own, options = [], {"forced_bos_token_id": tokenizer.convert_tokens_to_ids(PREFIX[0])} if PREFIX else {}
    for row in ids[:20]:  # of each language, since it takes long
        with torch.inference_mode():
            [output] = model.generate(
                torch.tensor([row]), num_beams=1, do_sample=False, max_new_tokens=limit + len(PREFIX), **options
            )
        own.append(text_of(tokenizer.convert_ids_to_tokens(output.tolist())))
    answer[f"{language} own"] = own
Path(sys.argv[1]).write_text(json.dumps(answer))
"""


def model_folder(family: str, folder: Path) -> Path:
    """Return a folder with the files from which the reference makes a model."""
    if family == "marian":
        texts = [text for language in WORDS for text in sentences(language)]
        return safetensors_folder(folder, list(zip(texts, reversed(texts), strict=True)))
    folder.mkdir()
    if family == "madlad":
        (folder / "config.json").write_text('{"model_type": "t5"}')
        special = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
        write_sentencepiece(folder / "spiece.model", user_defined_symbols=["<2en>", "<2de>", "<2zh>"], **special)
    else:
        (folder / "config.json").write_text('{"model_type": "m2m_100"}')
        write_sentencepiece(folder / "sentencepiece.bpe.model", model_type="bpe")
    return folder


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON, reason="needs NMT_CONSUMERS, the Python of an environment with transformers")
@pytest.mark.parametrize("family", ["nllb", "m2m", "madlad", "marian"])
def test_translations_equal_those_with_the_tokenizer_of_transformers(family: str, folder: Path) -> None:
    original = model_folder(family, folder / family)
    texts = {language: sentences(language) for language in WORDS}
    alpha = DecodingConfig().length_penalty
    done = subprocess.run(
        [str(PYTHON), "-c", REFERENCE, "answer.json"], text=True, capture_output=True, check=False, timeout=900,
        input=json.dumps([family, str(original), texts, LIMIT, alpha]),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = json.loads(Path("answer.json").read_text())
    config = TeacherConfig(kind="ctranslate2", where=f"{original}-converted")
    target = "fr" if family == "marian" else "en"
    for beam in (1, 4):
        decoding = DecodingConfig(beam_size=beam, max_length_ratio=1e-3, max_length_extra=LIMIT)
        count = ended = own = 0
        for language, lines in texts.items():
            teacher = FolderTeacher(config, decoding, (language, target), beam, False)
            found = teacher.translate(lines, 0, JOURNAL)
            teacher.close()
            for index, (candidates, expected) in enumerate(zip(found, answer[f"{language} {beam}"], strict=True)):
                for candidate, (text, score) in zip(candidates, expected, strict=True):
                    assert candidate.text.strip() == text.strip(), lines[index]
                    assert candidate.problem == (CUT_OFF if score is None else "")
                    assert score is None or candidate.score == pytest.approx(score, abs=1e-4)
                    ended += score is not None
                count += 1
            by_transformers = answer[f"{language} own"]
            ours = [candidates[0].text.strip() for candidates in found]
            own += sum(text == other.strip() for text, other in zip(ours, by_transformers, strict=False))
        print(f"{family}, beam {beam}: {count} sentences equal, {ended} candidates ended, {own} as by transformers")
        assert count == 200 and ended > 10
        assert beam > 1 or own >= 99  # of 100; rounding may change a greedy translation


# --- layout of tokens -------------------------------------------------------------------------------------------------

LANGUAGE_TOKENS = {
    "m2m": ["__de__", "__en__", "__zh__", "__no__", "__he__"],
    "nllb": ["deu_Latn", "eng_Latn", "zho_Hans", "zho_Hant", "nob_Latn", "heb_Hebr", "srp_Cyrl"],
    "madlad": ["<2de>", "<2en>", "<2en_xx_simple>", "<2zh>", "<2no>", "<2iw>"],
    "opus": [">>deu<<", ">>cmn<<", ">>cmn_Hans<<", ">>pt_BR<<", ">>por<<"],
    "bilingual": [],
}


class Recorder:
    """Stands for a CTranslate2 translator: keeps the arguments of calls, and answers with given tokens."""

    def __init__(self, answer: list[str], score: float = -6.0) -> None:
        self.answer, self.score = answer, score
        self.sources: list[list[str]] = []
        self.settings: dict[str, Any] = {}

    def translate_batch(self, sources: list[list[str]], prefixes: list[list[str]], **settings: Any) -> list[Any]:
        self.sources += sources
        self.settings = settings
        count = settings["num_hypotheses"]
        answers = [[*prefix, *self.answer] for prefix in prefixes]
        return [Pending([answer] * count, [self.score] * count) for answer in answers]

    def unload_model(self) -> None:
        pass


@dataclasses.dataclass
class Pending:
    """Stands for a result of CTranslate2 that is being computed."""

    hypotheses: list[list[str]]
    scores: list[float]

    def result(self) -> "Pending":
        return self


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentencepiece model; that of MADLAD is beside it."""
    folder = tmp_path_factory.mktemp("pieces")
    write_sentencepiece(folder / "plain.model")
    write_sentencepiece(folder / "madlad.model", user_defined_symbols=LANGUAGE_TOKENS["madlad"])
    return folder


@pytest.fixture
def made(pieces: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes a folder of a family, and opens it as a teacher with a recorder as its model."""

    def make(
        family: str, languages: tuple[str | None, str | None], *, answer: tuple[str, ...] = ("▁haus", "</s>"),
        decoding: DecodingConfig | None = None, candidates: int = 1, config: Any = None, **tokens: str,
    ) -> tuple[FolderTeacher, Recorder]:  # fmt: skip
        recorder = Recorder([*answer])
        monkeypatch.setattr(FolderTeacher, "_load", lambda teacher, batches: recorder)
        model = pieces / ("madlad.model" if family == "madlad" else "plain.model")
        Path("spiece.model").write_bytes(model.read_bytes())
        vocabulary = ["<s>", "</s>", "<unk>", "▁haus", *LANGUAGE_TOKENS[family]]
        Path("shared_vocabulary.json").write_text(json.dumps(vocabulary))
        Path("config.json").write_text(json.dumps({"eos_token": "</s>", **(config or {})}))
        Path("model.bin").write_bytes(b"weights")
        described = TeacherConfig(kind="ctranslate2", where=str(folder), **tokens)
        return FolderTeacher(described, decoding or DecodingConfig(), languages, candidates, False), recorder

    return make


@pytest.mark.parametrize(
    ("family", "languages", "begin", "prefix"),
    [
        ("m2m", ("de", "zh-Hans"), ["__de__"], ["__zh__"]),
        ("m2m", ("nb", "iw"), ["__no__"], ["__he__"]),
        ("nllb", ("deu", "zh-Hant"), ["deu_Latn"], ["zho_Hant"]),
        ("nllb", ("no", "en-US"), ["nob_Latn"], ["eng_Latn"]),
        ("madlad", (None, "en"), ["<2en>"], []),
        ("madlad", ("de", "he"), ["<2iw>"], []),
        ("opus", ("en", "zh"), [">>cmn<<"], []),
        ("opus", ("en", "pt-BR"), [">>pt_BR<<"], []),
        ("bilingual", (None, None), [], []),
    ],
)
def test_tokens_of_the_languages_stand_where_the_family_has_them(
    made: Any, pieces: Path, family: str, languages: Any, begin: list[str], prefix: list[str]
) -> None:
    teacher, recorder = made(family, languages)
    line = "der hund läuft"
    [[candidate]] = teacher.translate([line], 0, JOURNAL)
    own = sentencepiece.SentencePieceProcessor(model_file=str(pieces / "plain.model")).encode(line, out_type=str)
    expected = [*begin, *(["▁", *own[1:]] if family == "madlad" and own[0] == "▁" else own), "</s>"]
    assert recorder.sources == [expected]
    assert candidate == Candidate("haus", round(-6.0 / 2, 4))
    assert teacher.identity["tokens"] == begin + prefix
    # CTranslate2 adds eos to the sources of models that Marian and fairseq have trained.
    teacher, recorder = made(family, languages, config={"add_source_eos": True})
    teacher.translate([line], 0, JOURNAL)
    assert recorder.sources == [expected[:-1]]


def test_a_variety_stands_for_its_language_but_no_script_for_another() -> None:
    known = {token: token for token in LANGUAGE_TOKENS["nllb"]}
    for code, tokens in {
        "zh": ["zho_Hans", "zho_Hant"], "zh-CN": ["zho_Hans", "zho_Hant"], "zho_Hans": ["zho_Hans"],
        "sr": ["srp_Cyrl"], "sr-Latn": [], "de-AT": ["deu_Latn"], "xx": [], "": [],
    }.items():  # fmt: skip
        assert fitting_tokens(code, known) == tokens, code
    assert fitting_tokens("pt", {">>por<<": "por", ">>pt<<": "pt", ">>pt_BR<<": "pt_BR"}) == [
        ">>por<<", ">>pt<<", ">>pt_BR<<",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("family", "languages", "tokens", "problem"),
    [
        (
            "nllb",
            ("zh", "en"),
            {},
            "source language is zh, and the model has several tokens for it.*zho_Hans, zho_Hant",
        ),
        ("nllb", ("de", "quechua"), {}, "the target language is quechua, and the model has no token.*deu_Latn, eng_"),
        ("m2m", (None, "de"), {}, "the source language is unknown.*__de__, __en__.*key source_token in the teacher's"),
        ("madlad", ("de", None), {}, "the target language is unknown.*<2de>"),
        ("nllb", ("de", "en"), {"target_token": "eng_Ltn"}, "eng_Ltn.*no token.*did you mean 'eng_Latn'.*target_tok"),
        ("bilingual", (None, None), {"source_token": "en_XX"}, "language is en_XX, and the model has no token for it"),
    ],
)
def test_a_language_without_one_token_is_refused(
    made: Any, family: str, languages: Any, tokens: Tokens, problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        made(family, languages, **tokens)


def test_the_description_may_name_the_tokens(made: Any) -> None:
    teacher, recorder = made("nllb", ("zh", None), source_token="zho_Hant", target_token="deu_Latn")
    teacher.translate(["haus"], 0, JOURNAL)
    assert recorder.sources[0][0] == "zho_Hant" and teacher.identity["tokens"] == ["zho_Hant", "deu_Latn"]


def test_lines_without_words_and_unfinished_translations_have_a_problem(made: Any) -> None:
    decoding = DecodingConfig(max_length_ratio=1.0, max_length_extra=3)
    teacher, recorder = made("nllb", ("de", "en"), answer=("▁haus", "<unk>", "deu_Latn", "▁haus"), decoding=decoding)
    empty, cut, white = teacher.translate(["", "haus", " \u3000 "], 0, JOURNAL)
    assert empty == white == [Candidate("", problem=EMPTY)]
    assert cut == [Candidate("haus haus", -1.5, CUT_OFF)]
    assert len(recorder.sources) == 1
    assert recorder.settings["max_decoding_length"] == len(recorder.sources[0]) + 3 + 1
    assert recorder.settings["beam_size"] == 1 and recorder.settings["length_penalty"] == 0
    json.dumps(teacher.identity)
    assert teacher.summary() == "" and not teacher.close()


def test_the_beam_holds_all_candidates_and_scores_are_without_its_penalties(made: Any) -> None:
    teacher, recorder = made("nllb", ("de", "en"), candidates=3)
    [candidates] = teacher.translate(["haus"], 0, JOURNAL)
    alpha = recorder.settings["length_penalty"]
    assert recorder.settings["beam_size"] == 3 and alpha > 0
    assert candidates == [Candidate("haus", round(-6.0 * 3**alpha / 2, 4))] * 3
    teacher, _ = made("nllb", ("de", "en"), decoding=DecodingConfig(beam_size=2, coverage_penalty=0.2))
    assert teacher.translate(["haus"], 0, JOURNAL) == [[Candidate("haus", None)]]


def test_a_folder_has_one_sentencepiece_model_or_one_for_each_side(made: Any, folder: Path) -> None:
    made("bilingual", (None, None))
    config = TeacherConfig(kind="ctranslate2", where=str(folder))

    def reopen() -> FolderTeacher:
        return FolderTeacher(config, DecodingConfig(), (None, None), 1, False)

    model = Path("spiece.model").rename("source.spm")
    first = reopen().identity
    Path("other.model").write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"It has: other\.model, source\.spm\. Copy.*sentencepiece\.bpe\.model"):
        reopen()
    Path("target.spm").write_bytes(model.read_bytes())
    assert reopen().identity != first
    model.unlink()
    Path("target.spm").unlink()
    with pytest.raises(DataError, match=r"other\.model is no sentencepiece model"):
        reopen()
    Path("other.model").unlink()
    with pytest.raises(DataError, match="It has: none"):
        reopen()


# --- a model of CTranslate2 -------------------------------------------------------------------------------------------


@pytest.fixture
def export(make_run: MakeRun, tmp_path: Path) -> tuple[Path, Translator]:
    """An export to CTranslate2 that reads at most 24 tokens, and nmt's translator of it."""
    model = TrainedModel.of(make_run("subword", positions="learned", max_positions=24), None)
    exporter = CTranslate2Exporter()
    decoding = model.config.decoding.model_copy(update={"ordinary_text": "none", "batch_size": 1})
    model = dataclasses.replace(model, config=model.config.model_copy(update={"decoding": decoding}))
    (tmp_path / "export").mkdir()
    exporter.write(model, tmp_path / "export")
    engine = CTranslate2Engine(tmp_path / "export", model.config, exporter.positions(model))
    return tmp_path / "export", Translator(engine, model.source, model.target, model.config, model.epoch)


def test_a_model_translates_as_with_the_engine_of_nmt(export: tuple[Path, Translator]) -> None:
    folder, translator = export
    long = " ".join(["seven"] * 40)
    lines = ["im one two three!", "", "im seven!", long, "im thirsty!", "two im!"]
    config = TeacherConfig(kind="ctranslate2", where=str(folder))
    decoding = translator.config.decoding
    teacher = FolderTeacher(config, decoding, ("en", "de"), 1, False)
    found = teacher.translate(lines, 0, JOURNAL)
    options = TextOptions(SearchOptions(scored=True))
    expected = [best for [best] in translator.find(lines, options, skip_too_long=True)]
    assert [candidate.text for [candidate] in found] == [translation.text for translation in expected]
    for [candidate], translation in zip(found, expected, strict=True):
        if translation.ids:
            assert candidate.score == pytest.approx(translation.score / len(translation.ids), abs=1e-4)
            assert candidate.problem == ("" if translation.finished else CUT_OFF)
    assert [found[index][0].problem for index in (1, 3)] == [EMPTY, TOO_LONG]
    assert teacher.translate(lines[:3], 0, JOURNAL) == found[:3]
    assert FolderTeacher(config, decoding, ("en", "de"), 1, False).identity == teacher.identity

    # A sample depends on the seed and the number of its line.
    sampling = FolderTeacher(config, decoding, (None, None), 3, True)
    samples = sampling.translate(lines, 7, JOURNAL)
    assert samples == sampling.translate(lines, 7, JOURNAL) != sampling.translate(lines, 8, JOURNAL)
    assert len(samples[0]) == 3 and samples[3] == [Candidate("", problem=TOO_LONG)]

    impossible = decoding.model_copy(update={"top_k": 2**20})
    with pytest.raises(DataError, match=r"CTranslate2 cannot translate with .*sampling_topk"):
        FolderTeacher(config, impossible, (None, None), 1, True).translate(lines, 0, JOURNAL)
    (folder / "model.bin").write_bytes((folder / "model.bin").read_bytes()[:999])
    with pytest.raises(DataError, match=r"CTranslate2 cannot load .*export.*Give the folder of a converted model"):
        FolderTeacher(config, decoding, (None, None), 1, False)
