"""Plain text (.txt): each line is a text; empty lines, line breaks and white space stay."""

from nmt.documents.blocks import Block, Item
from nmt.documents.document import Document
from nmt.storage.text import decode_utf8
from nmt.tokenizers.sentences import LINE_BREAK


class PlainText(Document):
    """A text in UTF-8.

    A sentence does not continue on the next line, as in the files of lines that ``nmt translate`` reads.
    """

    SUFFIXES = (".txt",)

    def __init__(self, content: bytes, name: str) -> None:
        """Find the lines.

        Raises:
            DataError: if the text is not in UTF-8.
        """
        super().__init__(content, name)
        self._parts = LINE_BREAK.split(decode_utf8(content, name))
        """Lines, and the line breaks between them."""
        self._blocks = [Block([Item("text", line)]) for line in self._parts[::2]]
        self.texts = [block.text for block in self._blocks]

    def render(self, texts: list[str], source: str = "source", target: str = "target") -> bytes:
        """Return the text with these lines in place of ``texts``."""
        parts = self._parts.copy()
        for index, (block, text) in enumerate(zip(self._blocks, texts, strict=True)):
            if text != block.text:
                parts[2 * index] = "".join(item.value for item in block.read(text))
        return "".join(parts).encode()
