"""``nmt evaluate`` on the command line: scores, comparisons and files of translations."""

import gzip
import json
from datetime import date
from pathlib import Path

import pytest
import sacrebleu
from conftest import nmt, small_pairs

DATA = Path("data") / "english-german-both"


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_a_run_is_scored_on_its_own_test_split(project: Path) -> None:
    written = ("-o", "out.txt", "--report", "r.html")
    done = nmt("evaluate", "--json", "--resamples", "20", "--by-length", *written, cwd=project)
    record = json.loads(done.stdout)
    translations, references = lines(project / "out.txt"), lines(project / DATA / "test.target.txt")
    source = str(DATA / "test.source.txt")
    assert translations == nmt("translate", "--input", source, cwd=project).stdout.splitlines()
    for metric in (sacrebleu.BLEU(), sacrebleu.CHRF(), sacrebleu.TER()):
        expected = metric.corpus_score(translations, [references])
        assert record["scores"]["systems"]["base"][expected.name]["score"] == pytest.approx(expected.score)
    assert record["test_set"] | {"sha256": {}} == {
        "dataset": "english-german-both", "source": source, "references": [str(DATA / "test.target.txt")],
        "sentences": len(references), "sha256": {},
    }  # fmt: skip
    system = record["systems"][0]
    assert (system["name"], system["run"], system["epoch"]) == ("base", "base", 2)
    assert system["decoding"]["beam_size"] == 1
    assert system["decoding"]["precision"] == "float32"
    assert system["sentences_per_second"] > 0
    assert record["overlap"] == {"checked": {"english-german-both": 0}, "unchecked": [], "numbers": []}
    assert record["without_overlap"] is None
    report = (project / "r.html").read_text()
    figures = [*record["scores"]["signatures"].values(), *record["test_set"]["sha256"].values()]
    figures.append(f"max_length_ratio {system['decoding']['max_length_ratio']}")
    assert all(text in report for text in [*translations, *figures])
    (project / "scores.json").write_text(done.stdout)
    nmt("plot", "by-length", "scores.json", "-o", "lengths.svg", cwd=project)
    details = f"test split of english-german-both · 30 sentences · {date.today().isoformat()}"
    assert details in (project / "lengths.svg").read_text()


@pytest.mark.slow
def test_epochs_and_files_are_compared_on_sentences_some_of_which_were_trained_on(project: Path) -> None:
    test = [lines(project / DATA / f"test.{side}.txt")[:6] for side in ("source", "target")]
    held_out = {line for name in ("test", "validation") for line in lines(project / DATA / f"{name}.source.txt")}
    trained_on = next(pair[0] for pair in small_pairs() if pair[0] not in held_out)
    unseen = lines(project / DATA / "validation.source.txt")[0]
    sources = [*test[0], trained_on, "", "im flabbergasted", unseen]
    references = [*test[1], "egal", "", "verblufft", "egal"]
    for name, content in (("s.gz", sources), ("r1.gz", references), ("r2.gz", references[::-1]), ("h.gz", references)):
        (project / name).write_bytes(gzip.compress("".join(f"{line}\n" for line in content).encode()))
    arguments = [
        "--run", "base:1", "--run", "base", "--hypothesis", "h.gz", "--source", "s.gz", "--reference", "r1.gz",
        "--reference", "r2.gz", "--epoch", "last", "--beam", "2", "--batch-size", "3",
        "--set", "decoding.precision=bfloat16",
        "--resamples", "20", "--metric", "chrf++", "--metric", "BLEU", "--tokenize", "char",
    ]  # fmt: skip
    done = nmt("evaluate", *arguments, "--json", cwd=project)
    record = json.loads(done.stdout)
    assert [(system["name"], system["epoch"]) for system in record["systems"]] == [
        ("base:1", 1), ("base", 2), ("h.gz", None),
    ]  # fmt: skip
    decoding = record["systems"][1]["decoding"]
    assert (decoding["beam_size"], decoding["batch_size"], decoding["precision"]) == (2, 3, "bfloat16")
    assert record["systems"][0]["with_unknown_words"] == 1
    assert list(record["scores"]["signatures"]) == ["chrF2++", "BLEU"]
    assert (
        "nrefs:2|bs:20" in record["scores"]["signatures"]["BLEU"]
        and "tok:char" in record["scores"]["signatures"]["BLEU"]
    )
    assert record["scores"]["systems"]["base:1"]["BLEU"]["p_value"] is None
    assert record["scores"]["systems"]["h.gz"]["BLEU"] | {"p_value": 0, "mean": 0} == {
        "score": pytest.approx(100), "ci": pytest.approx(0), "p_value": 0, "mean": 0,
    }  # fmt: skip
    assert record["overlap"]["numbers"] == [7]
    assert record["without_overlap"]["sentences"] == 9
    worst = {name: len(picked["worst"]) for name, picked in record["examples"].items()}
    assert worst == {"base:1": 3, "base": 3, "h.gz": 3}


@pytest.mark.slow
def test_the_stress_test_says_what_is_kept_of_the_score(project: Path) -> None:
    command = ["evaluate", "--stress", "--resamples", "0", "--metric", "bleu"]
    systems = ["--run", "base", "--hypothesis", str(DATA / "test.target.txt")]
    record = json.loads(nmt(*command, *systems, "--json", cwd=project).stdout)
    rows = {row["variant"]: row for row in record["stress"].pop("base")}
    assert not record["stress"]  # translations of a file have no variants
    assert rows["plain"]["bleu"] == record["scores"]["systems"]["base"]["BLEU"]["score"]
    assert (rows["plain"]["sentences"], rows["join"]["sentences"], rows["join_three"]["sentences"]) == (30, 15, 10)
    assert rows["upper"]["share"] == pytest.approx(100 * rows["upper"]["bleu"] / rows["plain"]["bleu"])
    assert rows["url"]["copied"] == 100  # the model knows some words alone; addresses are carried over
    assert rows["single_words"]["bleu"] is None
    table = [line.split() for line in nmt(*command, "--report", "r.html", cwd=project).stdout.splitlines()]
    cells = ["plain", "30", f"{rows['plain']['bleu']:.1f}", "100.0"]
    assert cells in [line[:4] for line in table]
    assert ">single_words<" in (project / "r.html").read_text()


def test_translations_alone_are_scored_and_said_in_a_table(project: Path) -> None:
    reference = str(DATA / "test.target.txt")
    table = nmt(
        "evaluate", "--hypothesis", reference, "--reference", reference, "--report", "p.html", cwd=project
    ).stdout
    assert "100.0 (100.0 ± 0.0)" in table
    assert "Not compared with training" in table
    assert "tok:13a|smooth:exp" in table
    assert (project / "p.html").read_text().count('<tr id="line-') == len(lines(project / reference))


def test_scores_in_lower_case_have_names_of_their_own_in_every_table(folder: Path) -> None:
    texts = [f"Ein Satz mit {number} {'Hunden ' * (1 + number // 20)}im Park." for number in range(40)]
    for name, written in (("r", texts), ("h", list(map(str.upper, texts)))):
        (folder / name).write_text("".join(f"{text}\n" for text in written))
    files = ["--hypothesis", "r", "--hypothesis", "h", "--reference", "r", "--source", "r"]
    command = ["evaluate", *files, "--by-length", "--report", "p.html", "--resamples", "20"]
    cased = json.loads(nmt(*command, "--json", cwd=folder).stdout)
    record = json.loads(nmt(*command, "--lowercase", "--json", cwd=folder).stdout)
    assert (cased["lowercase"], record["lowercase"]) == (False, True)
    assert cased["scores"]["systems"]["h"]["BLEU"]["score"] < 50
    for scores in (record["scores"], *(bucket["scores"] for bucket in record["by_length"])):
        assert [name.removesuffix(" lc") for name in scores["signatures"]][:2] == ["BLEU", "chrF2"]
        assert all("case:lc" in signature for signature in scores["signatures"].values())
        assert not {"BLEU", "chrF2"} & {*scores["signatures"], *scores["systems"]["h"]}
        assert {round(score["score"], 6) for score in scores["systems"]["h"].values()} <= {0, 100}
    assert {score["p_value"] for score in record["scores"]["systems"]["h"].values()} == {1.0}
    assert record["examples"]["h"]["worst"][0]["chrf"] == 100
    table = nmt(*command, "--lowercase", cwd=folder).stdout
    (folder / "scores.json").write_text(json.dumps(record))
    nmt("plot", "by-length", "scores.json", "-o", "lengths.svg", cwd=folder)
    for shown in (table, *((folder / name).read_text() for name in ("p.html", "lengths.svg"))):
        assert "BLEU lc" in shown and "chrF2 lc" in shown
        assert "BLEU ↑" not in shown and ">BLEU<" not in shown


def test_a_single_sentence_can_be_scored(project: Path) -> None:
    (project / "one").write_text("ein satz\n")
    table = nmt("evaluate", "--hypothesis", "one", "--reference", "one", "--source", "one", cwd=project).stdout
    assert "1 sentence, one reference each" in table
    assert "A single sentence cannot be resampled" in table
    assert "±" not in table


def test_without_its_dataset_a_run_is_scored_on_files(project: Path) -> None:
    (project / DATA).rename(project / "elsewhere")
    arguments = ["--source", "elsewhere/test.source.txt", "--reference", "elsewhere/test.target.txt", "--json"]
    record = json.loads(nmt("evaluate", *arguments, cwd=project).stdout)
    assert record["overlap"]["checked"] == {}
    assert "is not in data/" in record["overlap"]["unchecked"][0]
