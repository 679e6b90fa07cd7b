"""Choice among several translations of a line, and what ``nmt synthesize`` makes of it."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import run_nmt, small_pairs
from stub_server import stub_server, translation

import nmt
from nmt.errors import NmtError
from nmt.teachers.choice import AGREEMENT, SCORE, chooser
from nmt.teachers.teacher import CUT_OFF, Candidate

TEXTS = ["ein Hund läuft", "ein Hund rennt", "Katze", "kein Hund lief"]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_agreement_takes_the_candidate_most_like_the_others() -> None:
    candidates = [Candidate(text) for text in TEXTS]
    [best] = chooser(AGREEMENT, forward=True)(["a dog runs"], [candidates])
    assert best.text.startswith("ein Hund")
    cut = [candidate._replace(problem=CUT_OFF) for candidate in candidates[:2]]
    [best] = chooser(AGREEMENT, forward=True)(["a dog runs"], [[*cut, candidates[2]]])
    assert best.text == "Katze", "candidates with a problem are not taken"
    assert chooser(AGREEMENT, forward=True)(["a"], [cut])[0].problem == CUT_OFF


def test_score_takes_the_highest_and_needs_scores() -> None:
    candidates = [Candidate(text, -number) for number, text in enumerate(TEXTS)]
    choose = chooser(SCORE, forward=True)
    assert choose(["a"], [candidates[::-1]])[0].text == TEXTS[0]
    assert choose(["a"], [[candidates[0]._replace(problem=CUT_OFF), *candidates[1:]]])[0].text == TEXTS[1]
    with pytest.raises(NmtError, match="one of the teachers gives none"):
        choose(["a"], [[*candidates, Candidate("x")]])


@pytest.fixture
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.chdir(project)
    (project / "mono.en").write_text("".join(f"{source}\n" for source, _ in small_pairs(30)))
    return project


def test_the_run_that_learns_prefers_what_it_finds_probable(here: Path) -> None:
    sources, targets = zip(*small_pairs(20), strict=True)
    candidates = [
        [Candidate("sieben sieben sieben"), Candidate(target), Candidate("x", problem="no")] for target in targets
    ]
    with nmt.load("base") as run:
        right, wrong = run.score(sources, targets), run.score(sources, ["sieben sieben sieben"] * 20)
    tokens = [[len(text.split()) + 1 for text in texts] for texts in (targets, ["sieben sieben sieben"] * 20)]
    expected = [right[index] / tokens[0][index] > wrong[index] / tokens[1][index] for index in range(20)]
    chosen = chooser("base", forward=True)(sources, candidates)
    assert [candidate.text == target for candidate, target in zip(chosen, targets, strict=True)] == expected
    assert any(expected)


@pytest.mark.slow
def test_several_teachers_vote(here: Path) -> None:
    with stub_server() as server:
        teachers = ["run:base", "run:base", f"libretranslate:{server.address}"]
        made = nmt.synthesize(
            "mono.en", "voted", teachers=teachers, forward=True,
            decoding={"source_language": "en", "target_language": "de"},
        )  # fmt: skip
    alone = nmt.synthesize("mono.en", "alone", run="base", forward=True)
    assert [row["target"] for row in rows(made.path)] == [row["target"] for row in rows(alone.path)], (
        "two of three agree"
    )


@pytest.mark.slow
def test_candidates_of_a_run_are_the_best_of_its_beam(here: Path) -> None:
    made = nmt.synthesize("mono.en", "scored", run="base", export="none", candidates=4, choose=SCORE, forward=True)
    with nmt.load("base", decoding={"beam_size": 4}) as run:
        beams = run.translate_n_best([row["source"] for row in rows(made.path)], 4)
    assert all(row["target"] in {best.text for best in beam} for row, beam in zip(rows(made.path), beams, strict=True))


def test_remarks_of_a_language_model_are_dropped_by_default(here: Path) -> None:
    (here / "mono.en").write_text("Hello {name}!\nHow are you?\nTranslation: no.\n")
    with stub_server() as server:
        (here / "chat.yaml").write_text(f"kind: chat\nwhere: {server.address}/v1\n")
        command = ["synthesize", "mono.en", "--teacher", "chat.yaml", "--from", "en", "--to", "de", "--forward"]
        result = run_nmt(*command, "--name", "made")
        assert result.code == 0, result.err
        assert "chat" not in result.out and "requests: 1" in result.err
        assert rows(Path("data/made.jsonl.gz"))[0] == {
            "source": "Hello {name}!",
            "target": translation("Hello {name}!"),
        }
        server.refused = {"How are you?"}
        result = run_nmt(*command, "--name", "refused")
        assert "Dropped: 1 x the teacher refused" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"teachers": ["run:base"], "run": "base"}, "replaces the run"),
        ({"choose": "agreement"}, "one teacher and one candidate"),
        ({"candidates": 0}, "from 1 to 100"),
        ({"teachers": ["libre:x"]}, "neither a file nor KIND:WHERE"),
        ({"teachers": ["libretranslate:http://127.0.0.1:1"]}, "languages"),
        ({"teachers": ["libretranslate:http://127.0.0.1:1"], "min_score": -1.0}, "servers give none"),
        (
            {"teachers": ["libretranslate:http://127.0.0.1:1"], "decoding": {"beam_size": 5}},
            "beam_size.*cannot be followed by a teacher of kind libretranslate",
        ),
        ({"teachers": ["chat:http://127.0.0.1:1"], "sample": True}, "sample=True cannot be followed"),
        ({"teachers": ["ctranslate2:nllb"], "decoding": {"mbr_candidates": 4}}, "mbr_candidates.*cannot be followed"),
        ({"filters": ["shifted"]}, "needs the whole corpus"),
        ({"filters": ["chater"]}, "did you mean 'chatter'"),
        ({"teachers": ["chat.yaml"]}, r"chat.yaml, line 2: a teacher has no key 'wher' \(did you mean 'where'\?\)"),
        ({"teachers": ["bad.yaml"]}, "bad.yaml, line 3: sentences is 0, but must be greater"),
        ({"teachers": ["marian:nowhere"]}, "nowhere"),
        ({"teachers": ["run:base"], "candidates": 2, "choose": "nobody"}, "nobody"),
        ({"candidates": 2, "choose": "confidence"}, "confidence.json"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_followed_is_refused_in_words(here: Path, arguments: dict[str, Any], message: str) -> None:
    (here / "chat.yaml").write_text("kind: chat\nwher: http://127.0.0.1:1\n")
    (here / "bad.yaml").write_text("kind: chat\nwhere: http://127.0.0.1:1\nsentences: 0\n")
    arguments = {"export": "none", **arguments} if "teachers" not in arguments else arguments
    with pytest.raises(NmtError, match=message):
        nmt.synthesize("mono.en", "made", **arguments)
    assert not Path("data/made.jsonl.gz").exists()
