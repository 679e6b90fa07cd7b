"""Files of the web page, read once at start: no request opens a file."""

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8", ".json": "application/json", ".svg": "image/svg+xml",
    ".png": "image/png", ".ico": "image/x-icon", ".woff2": "font/woff2", ".txt": "text/plain; charset=utf-8",
}  # fmt: skip


class PageFile(NamedTuple):
    """File of the page."""

    content: bytes
    content_type: str


def read_page(folder: Path = FOLDER) -> dict[str, PageFile]:
    """Return the files of the page by their path below ``folder``, with slashes."""
    return {
        path.relative_to(folder).as_posix(): PageFile(path.read_bytes(), CONTENT_TYPES[path.suffix])
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in CONTENT_TYPES
    }
