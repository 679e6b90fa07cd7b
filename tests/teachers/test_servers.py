"""Teachers that are servers: failures, resumption, checks of answers, keys, limits, and our own service."""

import contextlib
import json
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, small_pairs
from stub_server import ANSWERS, NETWORK, StubServer, stub_server, translation

from nmt.config.teacher import TeacherConfig
from nmt.errors import DataError, NmtError
from nmt.teachers.chat import NO_LIST, ChatTeacher
from nmt.teachers.journal import Journal, Usage
from nmt.teachers.libretranslate import LibreTranslateTeacher
from nmt.teachers.requests import LONGEST_PAUSE, PAUSES, RefusedError, Requests
from nmt.teachers.server import REFUSED, ServerTeacher
from nmt.teachers.teacher import EMPTY, TOO_LONG, Candidate

KINDS = {"libretranslate": LibreTranslateTeacher, "chat": ChatTeacher}
SECRET = "sk-very-secret"
LINES = [f'Satz {number} sagt {{count}}, {{source}}, "Zitat" und \\n.' for number in range(200)]
LINES[7] = LINES[60] = "  "
HOSTILE = [
    'Er sagt: "Grüß Gott", {source} und {0}\\',
    "他说：“你好”，\\u4f60 {x}",
    "قال: «مرحبا» {ا} \\",
    "उसने कहा: 'नमस्ते' {अ} \\\\",
    'İğneyi "ışık" {ğ} \\t',
    "👩‍👩‍👧 🇩🇪 ]['\"`",
    "```json [1, 2]```",
]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    monkeypatch.setenv("no_proxy", "*")
    with stub_server() as server:
        yield server


def description(server: StubServer, kind: str, **values: Any) -> TeacherConfig:
    where = server.address + ("/v1" if kind == "chat" else "")
    usual = {"kind": kind, "where": where, "sentences": 5, "parallel": 8, "timeout": 20.0}
    return TeacherConfig.model_validate({**usual, **values})


@contextlib.contextmanager
def opened(server: StubServer, kind: str, candidates: int = 1, **values: Any) -> Iterator[ServerTeacher]:
    """Open a teacher without noticeable pauses."""
    config = description(server, kind, **values)
    teacher = KINDS[kind](config, ("de", "en"), candidates, Requests(config, pauses=[0.001] * len(PAUSES)))
    try:
        yield teacher
    finally:
        teacher.close()


def expected(lines: list[str], candidates: int = 1) -> list[list[Candidate]]:
    return [
        [Candidate(translation(line, rank)) for rank in range(candidates)] if line.strip()
        else [Candidate("", problem=EMPTY)]
        for line in lines
    ]  # fmt: skip


# --- failures


@pytest.mark.parametrize(
    ("kind", "failure"),
    [("libretranslate", failure) for failure in (*NETWORK, "chatter", "wrong count")]
    + [("chat", failure) for failure in (*NETWORK, *ANSWERS)],
)
def test_a_tenth_of_the_requests_fails_and_the_translations_are_the_same(
    server: StubServer, tmp_path: Path, kind: str, failure: str
) -> None:
    server.failures = [failure]
    # A stalled request is sent again after the timeout, which is long enough for a busy machine otherwise.
    timeout = 0.3 if failure == "stall" else 20.0
    with opened(server, kind, candidates=2, timeout=timeout) as teacher:
        assert teacher.translate(LINES, 4096, tmp_path / "journal") == expected(LINES, 2)
    assert server.failed[failure] > 0
    assert teacher.usage.dropped == 0
    assert (teacher.usage.repeated > 0) == (failure not in NETWORK)


@pytest.mark.parametrize("kind", KINDS)
def test_all_failures_at_once_change_nothing_in_two_blocks_at_once(
    server: StubServer, tmp_path: Path, kind: str
) -> None:
    chat = [failure for failure in ANSWERS if kind == "chat" or failure == "wrong count"]
    server.failures, server.rate = [*(kind for kind in NETWORK if kind != "stall"), *chat], 0.3
    found: dict[int, list[list[Candidate]]] = {}

    def translate(first: int) -> None:
        block = LINES[first : first + 100]
        found[first] = teacher.translate(block, first, tmp_path / f"journal-{first}")

    with opened(server, kind) as teacher:
        threads = [threading.Thread(target=translate, args=(first,)) for first in (0, 100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [*found[0], *found[100]] == expected(LINES)
    assert teacher.usage == Journal(tmp_path / "journal-0").usage.plus(Journal(tmp_path / "journal-100").usage)


def test_a_server_that_always_fails_is_named_with_its_last_answer(server: StubServer, tmp_path: Path) -> None:
    server.failures, server.rate = ["500"], 1.0
    with opened(server, "chat") as teacher, pytest.raises(NmtError) as failed:
        teacher.translate(["eins"], 0, tmp_path / "journal")
    assert "in 8 attempts. The last attempt ended with: 500 Internal Server Error: a failure." in str(failed.value)
    assert "answered before is kept. Repeat the command later" in str(failed.value)
    assert server.asked["eins"] == 8


def test_an_address_without_a_server_is_named_at_once(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        teacher = LibreTranslateTeacher(TeacherConfig(kind="libretranslate", where=address), ("de", "en"), 1)
        with pytest.raises(NmtError, match=r"cannot be reached: .*Connection refused\. A teacher that is a server"):
            teacher.translate(["eins"], 0, tmp_path / "journal")
    for where in ("localhost:5000", "file:///etc/passwd", "http://name:word@host", "http://host/a b"):
        with pytest.raises(NmtError, match="must be an address of HTTP"):
            Requests(TeacherConfig(kind="chat", where=where))


def test_a_redirection_does_not_send_the_key_to_another_server(
    server: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stub_server.Handler.do_POST", lambda self: self.answer(301, {}, {"Location": "http://b/c"}))
    with pytest.raises(RefusedError, match="301 Moved Permanently: http://b/c"):
        Requests(description(server, "chat")).post("/x", {}, {})


def test_requests_wait_for_their_turn_and_as_long_as_the_server_wants(
    server: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    config = description(server, "libretranslate", requests_per_minute=30)
    requests = Requests(config, clock=lambda: 100.0, sleep=waits.append)
    threads = [
        threading.Thread(target=requests.post, args=("/translate", {"q": ["eins"]}, {})) for _ in range(6)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(waits) == [0, 2, 4, 6, 8, 10]
    for header, wanted in (("7", 7), ("0", 1), ("99999", LONGEST_PAUSE), ("soon", 1)):
        waits.clear()
        answers = iter([(429, {"Retry-After": header}), (200, {})])

        def answer(handler: Any, answers: Any = answers) -> None:
            status, headers = next(answers)
            handler.answer(status, {}, headers)

        monkeypatch.setattr("stub_server.Handler.do_POST", answer)
        Requests(description(server, "chat"), sleep=waits.append).post("/x", {}, {})
        assert waits == [0, wanted, 0]


def test_closing_ends_a_pause(server: StubServer, tmp_path: Path) -> None:
    server.failures, server.rate = ["500"], 1.0
    config = description(server, "chat")
    teacher = ChatTeacher(config, ("de", "en"), 1, Requests(config, pauses=[600.0]))
    errors: list[BaseException] = []

    def translate() -> None:
        try:
            teacher.translate(LINES, 0, tmp_path / "journal")
        except NmtError as error:
            errors.append(error)

    thread = threading.Thread(target=translate)
    thread.start()
    while len(server.bodies) < config.parallel:
        thread.join(0.01)
    teacher.close()
    thread.join(10)
    assert "The translation was stopped" in str(errors[0])
    assert len(server.bodies) == config.parallel


# --- the journal


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_is_in_the_journal_is_asked_again(server: StubServer, tmp_path: Path, kind: str) -> None:
    server.most_requests, journal = 15, tmp_path / "journal"
    with opened(server, kind) as teacher, pytest.raises(NmtError, match="403 Forbidden: Enough for today"):
        teacher.translate(LINES, 300, journal)
    assert len(server.bodies) <= 15 + 8  # no request was sent after the first refusal
    kept = Journal(journal)
    assert len(kept.candidates) == 75
    # Another server: to the first one, cancelled requests of the first session may still be on their way.
    with stub_server() as later:
        with opened(later, kind) as teacher:
            assert teacher.translate(LINES, 300, journal) == expected(LINES)
        asked = {line for number, line in enumerate(LINES, 300) if line.strip() and number not in kept.candidates}
        assert later.asked == dict.fromkeys(asked, 1)
        assert teacher.usage.requests == 40
        earlier = Journal(journal).usage
        with opened(later, kind) as teacher:
            teacher.add_usage(Usage(*json.loads(json.dumps(earlier))))
            assert teacher.translate(LINES, 300, journal) == expected(LINES)
        assert later.asked == dict.fromkeys(asked, 1)
        assert teacher.usage.requests == 80


def test_a_divided_request_goes_on_with_its_single_sentences(server: StubServer, tmp_path: Path) -> None:
    server.refused, server.most_requests = {"zwei"}, 2
    lines, journal = ["eins", "zwei", "drei"], tmp_path / "journal"
    with opened(server, "chat") as teacher, pytest.raises(RefusedError):
        teacher.translate(lines, 0, journal)
    assert Journal(journal).candidates == {0: [Candidate(translation("eins"))]}
    server.most_requests, server.asked = None, server.asked.__class__()
    with opened(server, "chat") as teacher:
        found = teacher.translate(lines, 0, journal)
    assert found == [expected(["eins"])[0], [Candidate("", problem=REFUSED)], expected(["drei"])[0]]
    assert server.asked == {"zwei": 3, "drei": 1}
    # the list, the single sentences, and two repetitions
    assert teacher.usage[:1] + teacher.usage[3:] == (6, 5, 1)


def test_a_journal_cut_at_any_byte_loses_at_most_its_last_answer(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "whole")
    for number in range(3):
        candidates = [[Candidate(f"Ü{number}\n\u2028"), Candidate("", problem="p")], [Candidate(f"x{number}")]]
        journal.add([2 * number, 2 * number + 1], candidates, Usage(1, 10, 5, 2, 1))
    content = (tmp_path / "whole").read_bytes()
    assert json.loads(content.splitlines()[0])["format"] == 1
    cut = tmp_path / "cut"
    for end in range(len(content) + 1):
        cut.write_bytes(content[:end])
        read = Journal(cut)
        answers = content[:end].count(b"\n")
        assert read.candidates == {n: found for n, found in journal.candidates.items() if n < 2 * answers}
        assert read.usage == Usage(*(answers * n for n in (1, 10, 5, 2, 1)))
        if end % 50 == 0:
            read.add([9], [[Candidate("new")]], Usage(1))
            assert Journal(cut).candidates == read.candidates
            assert Journal(cut).usage == read.usage


def test_damaged_lines_of_a_journal_are_asked_again_and_other_formats_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    for number in range(8):
        journal.add([number], [[Candidate(f"x{number}")]], Usage(1))
    lines = path.read_bytes().splitlines()
    lines[1] = lines[1][:20] + lines[1]
    lines[2] = b"\x00\xff"
    lines[3] = b"[]"
    lines[4] = b"null"
    lines[5] = lines[5].replace(b"[5]", b"[5,6]")
    lines[6] = b""
    path.write_bytes(b"\n".join(lines) + b"\n")
    assert Journal(path).candidates == {number: journal.candidates[number] for number in (0, 7)}
    path.write_bytes(lines[0].replace(b'"format":1', b'"format":2') + b"\n")
    with pytest.raises(DataError, match=r"has format 2\. This version of nmt reads format 1"):
        Journal(path)


# --- keys


@pytest.mark.parametrize("kind", KINDS)
def test_the_key_reaches_the_server_alone(
    server: StubServer, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.key, journal = SECRET, tmp_path / "journal"
    monkeypatch.setenv("STUB_KEY", f"{SECRET}\n")
    with opened(server, kind, key_variable="STUB_KEY") as teacher:
        assert teacher.translate(LINES, 0, journal) == expected(LINES)
    shown = f"{teacher.identity} {teacher.name} {teacher.summary()} {teacher.estimate(10)}"
    assert SECRET not in journal.read_text() + shown
    server.key = "another"
    server.asked.clear()
    with opened(server, kind, key_variable="STUB_KEY") as teacher, pytest.raises(RefusedError) as refused:
        teacher.translate(LINES, 0, tmp_path / "other")
    assert "401 Unauthorized: " in str(refused.value)
    assert "***" in str(refused.value)
    assert SECRET not in str(refused.value)
    assert max(server.asked.values()) == 1
    assert len(server.asked) <= 8 * 5  # requests at the same time
    for value in ("", "schlüssel", "two\nlines"):
        monkeypatch.setenv("STUB_KEY", value)
        with pytest.raises(NmtError, match="STUB_KEY holds no key") as missing:
            Requests(description(server, kind, key_variable="STUB_KEY"))
        assert not value or value not in str(missing.value)


# --- texts, prompts and answers


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_many_scripts_arrive_unchanged(server: StubServer, tmp_path: Path, kind: str) -> None:
    with opened(server, kind, candidates=3) as teacher:
        assert teacher.translate(HOSTILE, 0, tmp_path / "journal") == expected(HOSTILE, 3)
    assert Journal(tmp_path / "journal").candidates == dict(enumerate(expected(HOSTILE, 3)))


def test_languages_and_alternatives_are_sent_as_they_are(server: StubServer, tmp_path: Path) -> None:
    with opened(server, "libretranslate") as teacher:
        teacher.translate(["eins"], 0, tmp_path / "a")
    with opened(server, "libretranslate", candidates=3) as teacher:
        teacher.translate(["eins"], 0, tmp_path / "b")
    body = {"q": ["eins"], "source": "de", "target": "en", "format": "text"}
    assert server.bodies == [body, {**body, "alternatives": 2}]
    for kind, teacher_of in KINDS.items():
        with pytest.raises(NmtError, match='Add source_language="en" and target_language="de"'):
            teacher_of(description(server, kind), ("de", None), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_that_is_too_long_is_a_problem_of_this_sentence_alone(
    server: StubServer, tmp_path: Path, kind: str
) -> None:
    lines = ["eins", "zu lang " * 300, "zwei"]
    with opened(server, kind) as teacher:
        found = teacher.translate(lines, 0, tmp_path / "journal")
    assert found == [*expected(["eins"]), [Candidate("", problem=TOO_LONG)], *expected(["zwei"])]
    assert teacher.usage.dropped == 1


def test_the_prompt_and_the_examples_are_sent_and_belong_to_the_identity(server: StubServer, tmp_path: Path) -> None:
    prompt, examples = tmp_path / "prompt.txt", tmp_path / "examples.tsv"
    prompt.write_text("{count} from {source_language} into {target_language}: {source_language}\n\n{source}")
    examples.write_text("ja {count}\tyes\n\nnein\tno\n")
    values = {"prompt": prompt, "examples": examples, "model": "m", "temperature": 0.5}
    with opened(server, "chat", candidates=2, **values) as teacher:
        teacher.translate(["{source} ü"], 0, tmp_path / "journal")
    [body] = server.bodies
    assert body == {
        "model": "m", "temperature": 0.5, "n": 2,
        "messages": [
            {"role": "user", "content": '2 from German into English: German\n\n["ja {count}", "nein"]'},
            {"role": "assistant", "content": '["yes", "no"]'},
            {"role": "user", "content": '1 from German into English: German\n\n["{source} ü"]'},
        ],
    }  # fmt: skip
    identities = []
    for changed in ({}, {"model": "n"}, {"temperature": 0.0}, {"sentences": 6}, {"prompt": None}, {"examples": None}):
        with opened(server, "chat", **{**values, **changed}) as other:
            identities.append(json.dumps(other.identity))
    assert len({*identities, json.dumps(teacher.identity)}) == 7
    with opened(server, "chat", **values, parallel=1, timeout=1.0, requests_per_minute=5.0, input_price=1.0) as other:
        assert json.dumps(other.identity) == identities[0]
    prompt.write_text("Translate {sauce}")
    with pytest.raises(DataError, match=r"prompt.txt has no \{source\}"):
        ChatTeacher(description(server, "chat", prompt=prompt), ("de", "en"), 1)
    examples.write_text("ja\tyes\nnein, no\n")
    with pytest.raises(DataError, match=r"examples.tsv, line 2 is 'nein, no'"):
        ChatTeacher(description(server, "chat", examples=examples), ("de", "en"), 1)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('["a", "b"]', ["a", "b"]),
        ('```json\n["a", "b"]\n```', ["a", "b"]),
        ('<think>["x", "y"]?</think>Here: ["a", "b"]. Anything else?', ["a", "b"]),
        ('["a\nb", "c\\nd\\u2028e"]', ["a b", "c d e"]),
        ('["I\'m sorry.", "b"]', ["I'm sorry.", "b"]),
        ('["a", 2]', NO_LIST),
        ('{"a": "b"}', NO_LIST),
        ('["\\ud800", "b"]', NO_LIST),
        ("[" * 100_000, NO_LIST),
        ("As an AI language model, I do not translate this.", REFUSED),
        ("Sorry, I cannot do that.", REFUSED),
    ],
)
def test_answers_are_read(
    server: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, found: Any
) -> None:
    answer = {"choices": [{"message": {"content": content}}]}
    monkeypatch.setattr("stub_server.Handler.do_POST", lambda handler: handler.answer(200, answer))
    lines = ["eins", "zwei"]
    with opened(server, "chat") as teacher:
        if isinstance(found, list):
            assert teacher.translate(lines, 0, tmp_path / "j") == [[Candidate(text)] for text in found]
        else:
            assert teacher.ask(lines).problem == found
            assert teacher.translate(lines, 0, tmp_path / "j") == [[Candidate("", problem=found)]] * 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "answer", [None, [], {}, {"choices": []}, {"choices": [{}]}, {"translatedText": "a"}, {"translatedText": ["", "b"]}]
)
def test_answers_of_another_shape_end_as_a_problem_of_each_sentence(
    server: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, answer: Any
) -> None:
    monkeypatch.setattr("stub_server.Handler.do_POST", lambda handler: handler.answer(200, answer))
    with opened(server, kind) as teacher:
        found = teacher.translate(["eins", "zwei"], 0, tmp_path / "journal")
    assert found == [[Candidate("", problem="no usable answer of the server")]] * 2
    assert teacher.usage.requests == 3 * 3
    assert teacher.summary() == "requests: 9; sentences asked again: 10; sentences without translation: 2"


def test_the_costs_are_estimated_after_the_first_answer_and_summed(server: StubServer, tmp_path: Path) -> None:
    with opened(server, "chat", input_price=2.0, output_price=10.0, requests_per_minute=60_000.0) as teacher:
        assert teacher.estimate(1000) == ""
        teacher.translate(LINES[:5], 0, tmp_path / "journal")
        assert teacher.usage == Usage(1, 100, 50)
        figures = "requests: 200,000; input tokens: 20,000,000; output tokens: 10,000,000; price: 140.0; minutes: "
        assert teacher.estimate(1_000_000).startswith(figures)
        assert teacher.summary() == "requests: 1; input tokens: 100; output tokens: 50; price: 0.001"
    with opened(server, "libretranslate", requests_per_minute=600.0) as teacher:
        teacher.translate(LINES[:5], 0, tmp_path / "other")
        assert teacher.estimate(30_000) == "requests: 6,000; minutes: 10"


# --- our own service


@pytest.mark.slow
def test_our_own_service_gives_the_translations_of_the_run(
    trained_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.syspath_prepend(ROOT / "tests" / "serving")
    from running_service import SERVE, started

    from nmt.api import load

    sources = [source for source, _ in small_pairs()]
    lines = [*sources, *(source.removeprefix("im ") for source in sources)][:500]
    shutil.copytree(trained_project, tmp_path / "project")
    with started([*SERVE, "base"], cwd=tmp_path / "project") as service:
        config = TeacherConfig(kind="libretranslate", where=service.url)
        teacher = LibreTranslateTeacher(config, ("en", "de"), 1)
        found = teacher.translate(lines, 0, tmp_path / "journal")
        several = LibreTranslateTeacher(config, ("en", "de"), 3).translate(lines[:20], 0, tmp_path / "several")
        long = teacher.translate(["im one", "im two " * 4000], 0, tmp_path / "long")
        wrong = LibreTranslateTeacher(config, ("en", "xx"), 1)
        with pytest.raises(RefusedError, match="400 Bad Request: xx is not supported"):
            wrong.translate(["im one"], 0, tmp_path / "wrong")
    with contextlib.chdir(tmp_path / "project"):
        translations = load("base").translate(lines)
    assert [[candidate.text for candidate in candidates] for candidates in found] == [[text] for text in translations]
    assert {len(candidates) for candidates in several} == {3}
    assert [candidates[0].problem for candidates in long] == ["", TOO_LONG]
