"""YAML reader and writer: safe, bounded, and with numbers as in YAML 1.2."""

import re
from typing import Any

import yaml

MAX_DEPTH = 20
"""Deepest nesting of values in the file of another program."""


class Loader(yaml.SafeLoader):
    """Safe loader that reads 1e-9 as a number, as YAML 1.2 does, and refuses aliases and very long integers.

    Aliases of aliases can make a value grow exponentially. Python needs minutes to print an integer with thousands of
    digits.
    """

    MAX_DIGITS = 40

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Refuse aliases."""
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            problem = f"the alias *{event.anchor} repeats a value. Aliases are not supported"
            raise yaml.MarkedYAMLError(None, None, problem, event.start_mark)
        return super().compose_node(parent, index)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """Refuse integers that are too long for any setting."""
        if node.tag == "tag:yaml.org,2002:int" and len(node.value) > self.MAX_DIGITS:
            problem = f"the integer has more than {self.MAX_DIGITS} characters"
            raise yaml.MarkedYAMLError(None, None, problem, node.start_mark)
        return super().construct_scalar(node)


def load_strings(text: str) -> Any:
    """Return maps and lists of strings: no value has a type, so that "yes" and "1" stay text.

    Uses libyaml where it is there: a vocabulary has 100,000 lines. It limits neither aliases nor depth, so the events
    are counted first.

    Raises:
        yaml.YAMLError: for what is no YAML, for an alias, and for values nested more than ``MAX_DEPTH`` deep.
    """
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError(f"the alias *{event.anchor} repeats a value. Aliases are not supported")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise yaml.YAMLError(f"values are nested over {MAX_DEPTH} deep")
    return yaml.load(text, Loader=loader)


class Dumper(yaml.SafeDumper):
    """Writer of YAML that ``Loader`` reads back unchanged: it quotes text that looks like a number with an exponent.

    It escapes text with line breaks and writes it on one line, since PyYAML reads U+0085, a line break, as a space.
    """

    LINE_BREAKS = re.compile("[\n\x85\u2028\u2029]")

    def represent_str(self, text: str) -> yaml.ScalarNode:
        """Write text with a line break in double quotes."""
        return self.represent_scalar("tag:yaml.org,2002:str", text, '"' if self.LINE_BREAKS.search(text) else None)


Dumper.add_representer(str, Dumper.represent_str)

for _class in (Loader, Dumper):
    _class.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"[-+]?(\d[\d_]*(\.[\d_]*)?|\.\d[\d_]*)[eE][-+]?\d+$"),
        list("-+.0123456789"),
    )
