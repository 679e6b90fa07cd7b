"""Malformed, huge, slow and hostile requests: each is refused, or waited for, and the service lives on."""

import errno
import json
import random
import socket
import threading
from collections.abc import Callable, Iterator
from urllib.parse import quote_plus

import pytest
from running_service import RunningService, fake_service

MOST = 2_000
FEW, MANY = 300, 10_000
CLIENTS = 32  # at a time
PATIENCE = 3.0  # more than the service has for a request
STRANGE = [
    "", " ", "\n" * 500, "\0", "\ufeff", "\u202e", "\ud800", "é" * 300, "a" * 3_000, "😀" * 400, "<b>" * 600,
    "<" * 1_900,
    "<!--" * 400, "<a b='" * 300, "&#x110000;", "&amp" * 300, "[" * 900, "../../etc/passwd", "file:///etc/passwd",
    "%00%ff%", "\r\nx: y", "{{7*7}}", "${jndi:ldap://x}", "'; drop table", "\xa0“.[.A" * 80, "a. " * 600, "1" * 900,
]  # fmt: skip
VALUES = [
    None,
    True,
    0,
    -1,
    3,
    10**400,
    1e308,
    [],
    {},
    [[]],
    ["a", None],
    [""] * 100,
    "auto",
    "en",
    "de",
    "html",
    "text",
]
PATHS = [
    b"/translate",
    b"/details",
    b"/detect",
    b"/languages",
    b"/",
    b"/static/../x",
    b"/metrics",
    b"//",
    b"/%2e%2e",
    b"*",
]
TYPES = [
    b"application/json",
    b"application/x-www-form-urlencoded",
    b"multipart/form-data; boundary=x",
    b"text/xml",
    b"\xff",
]


@pytest.fixture(scope="module")
def service() -> Iterator[RunningService]:
    with fake_service(max_characters=MOST, max_queue=16, timeout=2.0, max_connections=40) as running:
        yield running


def value(dice: random.Random) -> object:
    return dice.choice(STRANGE) if dice.random() < 0.5 else dice.choice(VALUES)


def well_formed(dice: random.Random) -> bytes:
    """Return a request whose head is right, with strange parameters in a body of any kind."""
    parameters = {"q": "one. two", "source": "en", "target": "de"}
    strange: dict[str, object] = {
        **parameters,
        dice.choice(["q", "source", "target", "format", "alternatives", "x"]): value(dice),
    }
    if dice.random() < 0.3:
        strange["format"] = "html"
        strange["q"] = "".join(dice.choice(STRANGE) for _ in range(3))
    kind = dice.randrange(4)
    if kind == 0:
        body = "&".join(f"{name}={quote_plus(str(each), errors='replace')}" for name, each in strange.items()).encode()
    elif kind == 1:
        part = '--x\r\ncontent-disposition: form-data; name="{}"\r\n\r\n{}\r\n'
        body = "".join(part.format(*each) for each in strange.items()).encode(errors="replace") + b"--x--\r\n"
    else:
        body = json.dumps(strange).encode()
    right = [TYPES[1], TYPES[2], TYPES[0], TYPES[0]][kind]
    return message(
        dice.choice(PATHS[:3]), right if dice.random() < 0.9 else dice.choice(TYPES), damaged(dice, body, 0.2)
    )


def message(path: bytes, content_type: bytes, body: bytes, extra: bytes = b"") -> bytes:
    head = (
        b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-type: %b\r\ncontent-length: %d\r\n%bconnection: close\r\n\r\n"
    )
    return head % (path, content_type, len(body), extra) + body


def damaged(dice: random.Random, data: bytes, share: float) -> bytes:
    """Return bytes of which some are changed, removed or doubled."""
    if not data or dice.random() > share:
        return data
    place, length = dice.randrange(len(data)), dice.randrange(1, 20)
    with_ = dice.choice([b"", dice.randbytes(length), data[place : place + length] * 2, b"\0", b"\r\n", b'"'])
    return data[:place] + with_ + data[place + length :]


def malformed(dice: random.Random) -> bytes:
    """Return a request with damage anywhere, its head included."""
    return damaged(dice, well_formed(dice), 1.0)


def strange_head(dice: random.Random) -> bytes:
    method = dice.choice([b"GET", b"HEAD", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT", b"X", b"PRI"])
    headers = [
        b"host: localhost", b"host: evil.com", b"origin: http://evil.com", b"content-length: 99999999999999999999",
        b"content-length: 5", b"transfer-encoding: chunked", b"expect: 100-continue", b"upgrade: websocket",
        b"connection: upgrade, close", b"x: " + b"y" * dice.choice([1, 9_000, 20_000]), b"range: bytes=0-",
        b"accept-encoding: " + b"gzip," * 200, b"cookie: " + dice.randbytes(20).replace(b"\n", b"").replace(b"\r", b""),
    ]  # fmt: skip
    chosen = b"\r\n".join(dice.sample(headers, dice.randrange(1, 6)))
    return b"%b %b HTTP/1.%d\r\n%b\r\n\r\n" % (method, dice.choice(PATHS), dice.randrange(2), chosen)


def huge(dice: random.Random) -> bytes:
    body = json.dumps({"q": "a" * dice.choice([MOST + 1, 50_000, 500_000]), "source": "en", "target": "de"}).encode()
    return message(PATHS[0], TYPES[0], body)


def noise(dice: random.Random) -> bytes:
    return dice.randbytes(dice.randrange(1, 2_000))


def incomplete(dice: random.Random) -> bytes:
    """Return a part of a request: the client sends no more."""
    whole = well_formed(dice)
    return whole[: dice.randrange(1, len(whole))]


KINDS: list[Callable[[random.Random], bytes]] = [well_formed] * 8 + [malformed] * 4 + [strange_head] * 3 + [huge, noise]


def send(service: RunningService, dice: random.Random, seen: dict[str, int]) -> None:
    """Send a hostile request, and check the answer."""
    slow = dice.random() < 0.01
    data = incomplete(dice) if slow or dice.random() < 0.05 else dice.choice(KINDS)(dice)
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        answer = b""
        try:
            for piece in [data[:-20], *(bytes([byte]) for byte in data[-20:])] if slow else [data]:
                connection.sendall(piece)
            if dice.random() < 0.1:
                return  # the client leaves
            if dice.random() < 0.3:
                connection.shutdown(socket.SHUT_WR)
            connection.settimeout(PATIENCE)
            while piece := connection.recv(65536):
                answer += piece
        except (ConnectionError, TimeoutError):  # the service closes, or waits for more
            pass
        except OSError as error:  # the service has closed the connection
            assert error.errno == errno.ENOTCONN
    status = check(answer)
    seen[status] = seen.get(status, 0) + 1


def check(answer: bytes) -> str:
    """Return the status of an answer: JSON, or a page to whom it asks for one; of what is no HTTP, words."""
    while answer.startswith(b"HTTP/1.1 100 "):
        answer = answer.partition(b"\r\n\r\n")[2]
    if not answer:
        return "none"
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head.split(b" ")[1].decode()
    assert status in {"200", "206", "400", "403", "404", "405", "413", "416", "499", "503", "504"}, answer[:500]
    if status[0] in "45" and b"content-type: application/json" in head and body:
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        assert "error" in json.loads(body[:length]), answer[:500]
    return status


def attack(service: RunningService, count: int, seed: int) -> dict[str, int]:
    """Send hostile requests from several clients at a time, and return the number of answers by status."""
    seen: dict[str, int] = {}
    failures: list[BaseException] = []

    def client(number: int) -> None:
        dice = random.Random(seed + number)
        try:
            for _ in range(number, count, CLIENTS):
                send(service, dice, seen)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    return seen


def test_hundreds_of_hostile_requests(service: RunningService) -> None:
    seen = attack(service, FEW, seed=1)
    assert {"200", "400", "413"} <= set(seen)
    assert service.translate("one") == {"translatedText": "de:ONE"}


@pytest.mark.slow
def test_ten_thousand_hostile_requests_leave_memory_flat(service: RunningService) -> None:
    attack(service, MANY // 4, seed=100)
    before = service.memory()
    attack(service, MANY, seed=1_000)
    assert service.memory() - before < 20 * 2**20
    assert service.translate("one") == {"translatedText": "de:ONE"}
