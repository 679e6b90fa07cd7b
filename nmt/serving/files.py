"""Translated documents, kept in memory until their clients fetch them."""

from typing import NamedTuple

MOST_OF_CLIENT, MOST_BYTES = 16, 256 * 2**20
"""Most documents of a client, and most bytes of all documents; older documents are removed."""


class _File(NamedTuple):
    """A translated document of a client."""

    client: str
    content: bytes


class Files:
    """The latest documents of all clients. A new document displaces its own client's documents first."""

    def __init__(self) -> None:
        """Create an empty store."""
        self._files: dict[str, _File] = {}

    def get(self, name: str) -> bytes | None:
        """Return the document with this name; None if it does not exist."""
        file = self._files.get(name)
        return None if file is None else file.content

    def add(self, client: str, name: str, content: bytes) -> None:
        """Keep a document.

        A client with too many documents loses its oldest ones. If all documents have too many bytes, the client with
        the most bytes loses its oldest ones.

        Args:
            client: address or API key of the client.
            name: name of the document, which cannot be guessed.
            content: the document.
        """
        self._files[name] = _File(client, content)
        own = [key for key, file in self._files.items() if file.client == client]
        for key in own[:-MOST_OF_CLIENT]:
            del self._files[key]
        while len(self._files) > 1 and sum(len(file.content) for file in self._files.values()) > MOST_BYTES:
            del self._files[self._oldest_of_largest()]

    def _oldest_of_largest(self) -> str:
        """Return the name of the oldest document of the client with the most bytes."""
        sizes: dict[str, int] = {}
        for file in self._files.values():
            sizes[file.client] = (sizes.get(file.client) or 0) + len(file.content)
        largest = max(sizes, key=lambda client: sizes[client])
        return next(key for key, file in self._files.items() if file.client == largest)
