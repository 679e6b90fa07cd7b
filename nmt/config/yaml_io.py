"""YAML as it is read and written here: safe, within bounds, with the numbers of YAML 1.2."""

import re
from typing import Any

import yaml


class Loader(yaml.SafeLoader):
    """A safe loader that reads 1e-9 as a number, as YAML 1.2 does and PyYAML does not, and refuses what can grow.

    An alias repeats a value in three characters, so that aliases of aliases make any amount of it; an integer of
    thousands of digits takes Python minutes to write down again.
    """

    MAX_DIGITS = 40

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Refuse aliases."""
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.MarkedYAMLError(
                None, None, f"a value is written where it is needed; *{event.anchor} repeats another", event.start_mark
            )
        return super().compose_node(parent, index)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """Refuse integers that no setting has."""
        if node.tag == "tag:yaml.org,2002:int" and len(node.value) > self.MAX_DIGITS:
            raise yaml.MarkedYAMLError(
                None, None, f"an integer has at most {self.MAX_DIGITS} characters", node.start_mark
            )
        return super().construct_scalar(node)


class Dumper(yaml.SafeDumper):
    """Writes what ``Loader`` reads: it quotes text that looks like such a number."""


for _class in (Loader, Dumper):
    _class.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"[-+]?(\d[\d_]*(\.[\d_]*)?|\.\d[\d_]*)[eE][-+]?\d+$"),
        list("-+.0123456789"),
    )
