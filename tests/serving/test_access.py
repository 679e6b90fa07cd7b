"""Keys, host names and origins."""

from pathlib import Path

import pytest

from nmt.errors import NmtError
from nmt.serving.access import Access, ApiKeys, check_origin, read_api_keys


def test_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("# ours\nfirst\n\n second \n")
    keys = read_api_keys(path)
    assert [keys.accepts(key) for key in ("first", "second", "third", "", "# ours", "first ", "\ud800")] == [
        True, True, False, False, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("content", ["", "\n# none\n", "two words\n"])
def test_files_without_keys_are_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(content)
    with pytest.raises(NmtError):
        read_api_keys(path)


def test_a_loopback_service_answers_to_loopback_names_alone() -> None:
    access = Access(hosts=frozenset({"example.org"}))
    for host in ("127.0.0.1:5000", "127.9.9.9", "localhost", "LOCALHOST", "a.localhost", "[::1]:80", "example.org",
                 "EXAMPLE.ORG:443"):  # fmt: skip
        assert access.allows_host(host), host
    for host in ("evil.com", "127.0.0.1.evil.com", "", "[", "evil.com:5000", "127.0.0.1@evil.com", "0.0.0.0", "[::]",
                 "10.0.0.1", "localhost.example.org"):  # fmt: skip
        assert not access.allows_host(host), host
    assert Access(loopback=False).allows_host("any.name")
    assert not Access(loopback=False, hosts=frozenset({"a"})).allows_host("b")


def test_foreign_pages() -> None:
    access, host = Access(), "127.0.0.1:5000"
    assert access.allows_origin(None, None, host)
    assert access.allows_origin("http://127.0.0.1:5000", "same-origin", host)
    for origin in ("http://evil.com", "null", "http://127.0.0.1:81", "https://127.0.0.1.evil.com:5000", "http://["):
        assert not access.allows_origin(origin, None, host), origin
    assert not access.allows_origin(None, "cross-site", host)
    friendly = Access(origins=frozenset({check_origin("https://Example.org/")}))
    assert friendly.allows_origin("https://example.org", "cross-site", host)
    assert not friendly.allows_origin("http://example.org", "cross-site", host)
    assert Access(origins=frozenset("*")).allows_origin("http://evil.com", "cross-site", host)


@pytest.mark.parametrize("origin", ["example.org", "https://", "https://a/b", "https://a?b", "", "//a"])
def test_no_origins(origin: str) -> None:
    with pytest.raises(NmtError):
        check_origin(origin)


def test_no_key_is_kept() -> None:
    assert "secret" not in str(vars(ApiKeys(["secret"])))
