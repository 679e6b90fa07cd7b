"""``nmt translate --input DOCUMENT --output DOCUMENT``."""

import re
from pathlib import Path

from conftest import nmt

PAGE = b"<!doctype html>\r\n<title>im thirsty</title><ul><LI>im <b class=x>one</b> two<li><code>im</code></ul>\n"


def test_a_text_is_a_document_with_an_output_and_lines_without(project: Path) -> None:
    (project / "a.txt").write_text("  im one\n\nim thirsty\n")
    lines = nmt("translate", "--run", "base", "--input", "a.txt", cwd=project).stdout
    nmt("translate", "--run", "base", "--input", "a.txt", "--output", "b.txt", cwd=project)
    assert (project / "b.txt").read_text() == f"  {lines}"


def test_a_document_is_translated_and_its_tags_stay(project: Path) -> None:
    (project / "page.html").write_bytes(PAGE)
    nmt("translate", "--run", "base", "--input", "page.html", "--output", "page.de.html", cwd=project)
    written = (project / "page.de.html").read_bytes()
    assert written != PAGE
    assert sorted(re.findall(rb"<[^>]*>|\s$", written)) == sorted(re.findall(rb"<[^>]*>|\s$", PAGE))
    [title] = re.findall(r"<title>(.*)</title>", written.decode())
    assert nmt("translate", "--run", "base", "im thirsty", cwd=project).stdout == f"{title}\n"
