"""API keys, host names and origins."""

import socket
from pathlib import Path

import pytest

from nmt.errors import NmtError
from nmt.serving.guard import Access, check_origin, digest, read_api_keys


def test_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("# ours\nfirst\n\n second \n")
    keys = read_api_keys(path)
    assert [digest(key) in keys for key in ("first", "second", "third", "", "# ours", "first ")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
    assert "second" not in repr(Access(api_keys=keys))


LOOPBACK = ["127.0.0.1:5000", "127.9.9.9", "localhost", "LOCALHOST", "a.localhost", "[::1]:80"]
NAMES = ["evil.com", "127.0.0.1.evil.com", "", "[", "evil.com:5000", "127.0.0.1@evil.com", "localhost.example.org"]
ADDRESSES = ["0.0.0.0", "[::]", "10.0.0.1:5000"]
OWN = ["service.example", f"{socket.gethostname()}:80"]


@pytest.mark.parametrize(
    ("host", "answered", "refused"),
    [
        ("127.0.0.1", LOOPBACK, NAMES + ADDRESSES + OWN),
        ("localhost", LOOPBACK, NAMES + ADDRESSES + OWN),
        ("0.0.0.0", LOOPBACK + ADDRESSES + OWN[1:], NAMES + OWN[:1]),
        ("service.example", LOOPBACK + ADDRESSES + OWN, NAMES),
    ],
)
def test_a_service_answers_only_to_its_own_names(host: str, answered: list[str], refused: list[str]) -> None:
    access = Access(host, hosts=frozenset({"example.org"}))
    for name in [*answered, "example.org", "EXAMPLE.ORG:443"]:
        assert access.allows_host(name), name
    for name in refused:
        assert not access.allows_host(name), name


def test_pages_of_other_sites() -> None:
    access, host = Access(), "127.0.0.1:5000"
    assert access.allows_origin(None, host)
    assert access.allows_origin("http://127.0.0.1:5000", host)
    for origin in ("http://evil.com", "null", "http://127.0.0.1:81", "https://127.0.0.1.evil.com:5000", "http://["):
        assert not access.allows_origin(origin, host), origin
    friendly = Access(origins=frozenset({check_origin("https://Example.org/")}))
    assert friendly.allows_origin("https://example.org", host)
    assert not friendly.allows_origin("http://example.org", host)
    assert Access(origins=frozenset({check_origin("*")})).allows_origin("http://evil.com", host)


@pytest.mark.parametrize("origin", ["example.org", "https://", "https://a/b", "https://a?b", "", "//a", "a:b"])
def test_wrong_origins_are_refused(origin: str) -> None:
    with pytest.raises(NmtError):
        check_origin(origin)
