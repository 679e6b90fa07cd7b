"""Packages of office programs: zip files whose parts in XML are read within limits and written again."""

import io
import zipfile
from abc import abstractmethod
from collections.abc import Collection
from typing import Any, ClassVar

from lxml import etree

from nmt.documents.document import Document
from nmt.documents.office.paragraphs import Story
from nmt.errors import DataError

MOST_UNPACKED = 64 * 2**20
"""Most bytes of all unpacked parts of a document."""
MOST_SIGNS = 1_000_000
"""Most tags and attributes of all parts. A book of a thousand pages has fewer; a file of 36 KB can have millions."""
# Entities and CDATA sections stay as they are. lxml refuses to nest more than 256 elements.
_OPTIONS: dict[str, bool] = {"resolve_entities": False, "strip_cdata": False, "no_network": True}


class Package:
    """A zip file in memory. Parts that do not change keep their bytes."""

    def __init__(self, content: bytes) -> None:
        """Open the file.

        Raises:
            ValueError: if the unpacked file is too large.
            zipfile.BadZipFile: if it is not a zip file.
        """
        self._content = content
        self._trees: dict[str, Any] = {}
        self._signs = 0
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            members = file.infolist()
        self.names = {member.filename for member in members}
        size = sum(member.file_size for member in members)
        if size > MOST_UNPACKED:
            raise ValueError(f"it unpacks to {size:,} bytes, and may have {MOST_UNPACKED:,}")

    def read(self, name: str) -> Any:
        """Return the root element of a part. Changes to it are saved.

        Raises:
            ValueError: if the parts that were read have too many tags and attributes.
            KeyError: if there is no such part.
            etree.XMLSyntaxError: if the part is not well-formed.
        """
        with zipfile.ZipFile(io.BytesIO(self._content)) as file:
            xml = file.read(name)
        self._signs += xml.count(b"<") + xml.count(b"=")
        if self._signs > MOST_SIGNS:
            raise ValueError(f"it has more than {MOST_SIGNS:,} tags and attributes")
        self._trees[name] = etree.ElementTree(etree.fromstring(xml, etree.XMLParser(**_OPTIONS)))
        return self._trees[name].getroot()

    def save(self, changed: Collection[str]) -> bytes:
        """Return the file with the changed parts written again."""
        if not changed:
            return self._content
        content = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(self._content)) as old, zipfile.ZipFile(content, "w") as new:
            for member in old.infolist():
                part = self._xml(member.filename) if member.filename in changed else old.read(member)
                new.writestr(member, part)  # in the same place, and packed as before
        return content.getvalue()

    def _xml(self, name: str) -> bytes:
        tree = self._trees[name]
        is_standalone = tree.docinfo.standalone
        xml: bytes = etree.tostring(tree, xml_declaration=True, encoding="UTF-8", standalone=is_standalone)
        return xml


class OfficeDocument(Document):
    """A document that is a package with paragraphs."""

    KIND: ClassVar[str]
    """Name of the format in messages, such as "a Word document"."""

    def __init__(self, content: bytes, name: str) -> None:
        """Find the paragraphs.

        Raises:
            DataError: if the file is damaged, or its unpacked parts are too large.
        """
        super().__init__(content, name)
        try:
            self._package = Package(content)
            self._stories = self.stories(self._package)
        except DataError:
            raise
        except Exception as error:  # errors of the zip file or the XML
            message = f"{name} is not {self.KIND}: {str(error)[:200]}. Save it as {self.SUFFIXES[0]}."
            raise DataError(message) from None
        for story in self._stories.values():
            self.left += story.left
            self.texts += story.texts

    @abstractmethod
    def stories(self, package: Package) -> dict[str, Story]:
        """Return the parts with paragraphs by name."""

    def render(self, texts: list[str], source: str = "source", target: str = "target") -> bytes:
        """Return the document with these texts in place of ``texts``."""
        start, changed = 0, set[str]()
        for name, story in self._stories.items():
            end = start + len(story.texts)
            if story.write(texts[start:end]):
                changed.add(name)
            start = end
        return self._package.save(changed)
