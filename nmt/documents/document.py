"""What every document format offers: the texts of a document, and the document with other texts in their place."""

from abc import ABC, abstractmethod
from collections import Counter
from typing import ClassVar

from nmt.errors import counted


class Document(ABC):
    """A document in memory."""

    SUFFIXES: ClassVar[tuple[str, ...]]
    """Suffixes of file names in lower case, such as ".html"."""

    def __init__(self, content: bytes, name: str) -> None:
        """Find the texts.

        Args:
            content: content of the file.
            name: name of the file in messages.

        Raises:
            DataError: if the document is damaged.
        """
        self.texts: list[str] = []
        """Texts of the document, with marks in place of tags."""
        self.left = Counter[str]()
        """Number of things with text that the translation leaves as they are, by their name, such as "comment"."""
        self.needs_review = False
        """Whether translations are marked for a review, if the format has such a mark."""

    @abstractmethod
    def render(self, texts: list[str], source: str = "source", target: str = "target") -> bytes:
        """Return the document with these texts in place of ``texts``.

        Args:
            texts: as many texts as ``self.texts`` has, in the language ``target``.
            source, target: language codes; "source" and "target" if they are unknown.
        """

    @property
    def note(self) -> str:
        """One line about everything with text that stays untranslated; empty if there is nothing."""
        things = [counted(number, thing) for thing, number in self.left.items() if number]
        return f"Not translated: {', '.join(things)}." if things else ""
