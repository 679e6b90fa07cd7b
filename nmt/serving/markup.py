"""HTML: text nodes are translated, tags and all else are kept.

Each text node is translated by itself. A sentence with tags inside, such as ``<b>``, so becomes several: the words that
a tag encloses have no counterpart that a model could name.
"""

import re

from bs4 import BeautifulSoup, NavigableString, PageElement, Tag

from nmt.serving.protocol import RequestError

KEPT = frozenset({"script", "style", "template", "code", "kbd", "samp"})
"""Tags whose content is not translated."""
PREFORMATTED = frozenset({"pre", "textarea"})
MOST_DEPTH = 200
MOST_OPEN = 200
"""Tags without an end. Python's parser takes time for each of them that grows with the length of the text."""
_OPEN = re.compile(r"<[^<>]*(?=<)")
_WHITE_SPACE = re.compile(r"[ \t\n\r\f]+")


class Markup:
    """Parsed HTML."""

    def __init__(self, html: str) -> None:
        """Parse HTML, a page or a part of it.

        Raises:
            RequestError: for HTML that is nested too deeply, or damaged.
        """
        if sum(1 for _ in _OPEN.finditer(html)) > MOST_OPEN:
            raise RequestError(400, f"q is no HTML: more than {MOST_OPEN} tags have no end. Send format text.")
        try:
            self._soup = BeautifulSoup(html, "html.parser")
        except Exception as error:  # the parser has errors of several kinds
            raise RequestError(400, f"q is no HTML: {error}. Send format text.") from None
        self._nodes: list[NavigableString] = []
        self.texts: list[str] = []
        """Text of each node that is translated."""
        self._collect()

    def _collect(self) -> None:
        """Find the text nodes to translate, without recursion."""
        waiting: list[tuple[PageElement, int, bool, bool]] = [(self._soup, 0, True, False)]
        while waiting:
            node, depth, translated, preformatted = waiting.pop()
            if depth > MOST_DEPTH:
                raise RequestError(400, f"q has tags within {MOST_DEPTH} others. Send HTML with fewer levels.")
            if isinstance(node, Tag):
                translated, preformatted = _translated(node, translated), preformatted or node.name in PREFORMATTED
                waiting += [(child, depth + 1, translated, preformatted) for child in reversed(node.contents)]
            elif type(node) is NavigableString and translated and node.strip():  # no comment, no script
                self._nodes.append(node)
                self.texts.append(str(node) if preformatted else _WHITE_SPACE.sub(" ", node))

    def render(self, texts: list[str]) -> str:
        """Return the HTML with other texts in place of ``texts``, of equal number."""
        for place, text in enumerate(texts):
            node = NavigableString(text)
            self._nodes[place].replace_with(node)
            self._nodes[place] = node
        return str(self._soup.decode(formatter="minimal"))


def _translated(tag: Tag, inherited: bool) -> bool:
    """Return whether the text of a tag is translated: by its name, attribute or class, else as that around it."""
    if tag.name in KEPT:
        return False
    value = tag.get("translate")
    if isinstance(value, str) and value.lower() in ("no", "yes", ""):
        return value.lower() != "no"
    return inherited and "notranslate" not in (tag.get("class") or [])
