"""Malformed, huge, slow and hostile requests: the service refuses them or waits for them, and keeps running."""

import errno
import json
import random
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote_plus

import pytest
from running_service import RunningService, fake_service

MOST = 2_000
CLIENTS = 32  # clients at a time
PATIENCE = 1.5  # seconds; longer than the timeout of the service
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
PATHS = b"/translate /details /detect /translate_file /languages / /static/../x /metrics // /%2e%2e *".split()
TYPES = [
    b"application/json",
    b"application/x-www-form-urlencoded",
    b"multipart/form-data; boundary=x",
    b"text/xml",
    b"\xff",
]


@pytest.fixture(scope="module")
def service() -> Iterator[RunningService]:
    with fake_service(max_characters=MOST, max_queue=16, timeout=1.0, max_connections=40) as running:
        yield running


def well_formed(dice: random.Random) -> bytes:
    """Return a request with a valid head, and strange parameters in a body of any content type."""
    strange: dict[str, object] = {"q": "one. two", "source": "en", "target": "de"}
    strange[dice.choice(["q", "source", "target", "format", "alternatives", "x"])] = dice.choice(
        dice.choice([STRANGE, VALUES])
    )
    if dice.random() < 0.3:
        strange |= {"format": "html", "q": "".join(dice.choice(STRANGE) for _ in range(3))}
    kind = dice.choice([*TYPES[:3], TYPES[0]])
    if kind == TYPES[1]:
        body = "&".join(
            f"{name}={quote_plus(str(value), errors='replace')}" for name, value in strange.items()
        ).encode()
    elif kind == TYPES[2]:
        part = '--x\r\ncontent-disposition: form-data; name="{}"\r\n\r\n{}\r\n'
        name = f"a.{dice.choice(['html', 'vtt', 'po', 'docx', '../x'])}"
        strange |= {f'file"; filename="{name}': strange["q"]} if dice.random() < 0.5 else {}
        body = "".join(part.format(*parameter) for parameter in strange.items()).encode(errors="replace") + b"--x--\r\n"
    else:
        body = json.dumps(strange).encode()
    kind = kind if dice.random() < 0.9 else dice.choice(TYPES)
    return message(dice.choice(PATHS[:4]), kind, damage(dice, body, 0.2))


def message(path: bytes, content_type: bytes, body: bytes) -> bytes:
    head = b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
    return head % (path, content_type, len(body)) + body


def damage(dice: random.Random, data: bytes, share: float) -> bytes:
    """Return data with some bytes replaced, removed or repeated."""
    if not data or dice.random() > share:
        return data
    start, length = dice.randrange(len(data)), dice.randrange(1, 20)
    replacement = dice.choice([b"", dice.randbytes(length), data[start : start + length] * 2, b"\0", b"\r\n", b'"'])
    return data[:start] + replacement + data[start + length :]


def strange_head(dice: random.Random) -> bytes:
    method = dice.choice([b"GET", b"HEAD", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT", b"X", b"PRI"])
    headers = [
        b"host: localhost", b"host: evil.com", b"origin: http://evil.com", b"content-length: 99999999999999999999",
        b"content-length: 5", b"transfer-encoding: chunked", b"expect: 100-continue", b"upgrade: websocket",
        b"connection: upgrade, close", b"x: " + b"y" * dice.choice([1, 9_000, 20_000]), b"range: bytes=0-",
        b"accept-encoding: " + b"gzip," * 200, b"cookie: " + dice.randbytes(20).replace(b"\n", b"").replace(b"\r", b""),
    ]  # fmt: skip
    lines = b"\r\n".join(dice.sample(headers, dice.randrange(1, 6)))
    return b"%b %b HTTP/1.%d\r\n%b\r\n\r\n" % (method, dice.choice(PATHS), dice.randrange(2), lines)


def huge(dice: random.Random) -> bytes:
    body = json.dumps({"q": "a" * dice.choice([MOST + 1, 50_000, 500_000]), "source": "en", "target": "de"}).encode()
    return message(PATHS[0], TYPES[0], body)


KINDS: list[Callable[[random.Random], bytes]] = [
    *[well_formed] * 8,
    *[lambda dice: damage(dice, well_formed(dice), 1.0)] * 4,  # anywhere, in the head too
    *[strange_head] * 3,
    huge,
    lambda dice: dice.randbytes(dice.randrange(1, 2_000)),
]


def send(service: RunningService, dice: random.Random) -> str:
    """Send a hostile request, check the answer, and return its status."""
    slow = dice.random() < 0.01
    data = dice.choice(KINDS)(dice)
    if slow or dice.random() < 0.05:  # the client sends a part of the request
        data = well_formed(dice)
        data = data[: dice.randrange(1, len(data))]
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        answer = b""
        try:
            for piece in [data[:-20], *(bytes([byte]) for byte in data[-20:])] if slow else [data]:
                connection.sendall(piece)
            if dice.random() < 0.1:
                return "none"  # the client leaves
            if dice.random() < 0.3:
                connection.shutdown(socket.SHUT_WR)
            connection.settimeout(PATIENCE)
            while piece := connection.recv(65536):
                answer += piece
        except (ConnectionError, TimeoutError):  # the service closes the connection, or waits for more
            pass
        except OSError as error:  # the service has closed the connection
            assert error.errno == errno.ENOTCONN
    return check(answer)


def check(answer: bytes) -> str:
    """Check an answer, and return its status. Errors are JSON, except for bytes that are no HTTP."""
    while answer.startswith(b"HTTP/1.1 100 "):
        answer = answer.partition(b"\r\n\r\n")[2]
    if not answer:
        return "none"
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head.split(b" ")[1].decode()
    # 206 and 416 answer a request for a range of the page "/".
    assert status in {"200", "206", "400", "403", "404", "405", "413", "416", "499", "503", "504"}, answer[:500]
    if status[0] in "45" and b"content-type: application/json" in head and body:
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        assert "error" in json.loads(body[:length]), answer[:500]
    return status


def attack(service: RunningService, count: int, seed: int) -> set[str]:
    """Send hostile requests from several clients at a time, and return the statuses of the answers."""

    def client(number: int) -> set[str]:
        dice = random.Random(seed + number)
        return {send(service, dice) for _ in range(number, count, CLIENTS)}

    with ThreadPoolExecutor(CLIENTS) as pool:
        return set().union(*pool.map(client, range(CLIENTS)))


@pytest.mark.slow
def test_hundreds_of_hostile_requests(service: RunningService) -> None:
    assert {"200", "400", "413"} <= attack(service, 300, seed=1)
    assert service.translate("one") == {"translatedText": "de:ONE"}


@pytest.mark.slow
def test_thousands_of_hostile_requests_leave_memory_flat(service: RunningService) -> None:
    attack(service, 1_000, seed=100)
    before = service.memory()
    attack(service, 2_000, seed=1_000)
    assert service.memory() - before < 10 * 2**20
    assert service.translate("one") == {"translatedText": "de:ONE"}
