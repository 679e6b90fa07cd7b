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


def test_the_version_is_that_of_the_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", {"nmt": "1.2.3"}.__getitem__)
    assert version() == "1.2.3"


def test_without_an_installed_package_the_version_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert version() == "unknown"
