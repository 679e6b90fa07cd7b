"""The version is that of the installed package."""

import importlib.metadata

import pytest

from nmt.version import version


def test_the_version_is_that_of_the_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", {"nmt": "1.2.3"}.__getitem__)
    assert version() == "1.2.3"


def test_without_an_installed_package_the_version_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert version() == "unknown"
