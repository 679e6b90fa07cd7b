"""Messages with control characters, optional packages that are missing, the version of the package."""

import importlib.metadata

import pytest

from nmt.errors import DataError, NotFoundError
from nmt.extras import require
from nmt.version import version


def test_a_message_shows_what_a_terminal_would_obey() -> None:
    message = str(DataError("no member 'a\x1b[2J\r\0\x9b\u202e\ud800' of größer\nsecond line"))
    assert message == r"no member 'a\x1b[2J\r\x00\x9b\u202e\ud800' of größer" + "\nsecond line"
    message.encode()


def test_a_missing_package_is_named_with_its_extra() -> None:
    with pytest.raises(NotFoundError, match=r"package absent_package is not .* pip install 'nmt\[serve\]'"):
        require("serve", "json", "absent_package")


@pytest.mark.parametrize(("installed", "told"), [({"nmt": "1.2.3"}, "1.2.3"), ({}, "unknown")])
def test_the_version_is_that_of_the_installed_package(
    installed: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(name: str) -> str:
        if name not in installed:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(importlib.metadata, "version", find)
    assert version() == told
