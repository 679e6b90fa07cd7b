"""A client can neither delay other clients nor remove their documents."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from running_service import RunningService, fake_service

from nmt.serving import files
from nmt.serving.files import MOST_OF_CLIENT, Files

MOST = 8 * 2**20 - 2_000


@pytest.fixture(scope="module")
def service() -> Iterator[RunningService]:
    with fake_service(timeout=5, most_seconds=5) as running:
        yield running


def document(name: str, content: bytes) -> Callable[[RunningService], None]:
    def send(service: RunningService) -> None:
        fields = {"source": "en", "target": "de"}
        httpx.post(
            f"{service.url}/translate_file", data=fields, files={"file": (name, content)}, trust_env=False, timeout=60
        )

    return send


def text(q: str, **values: object) -> Callable[[RunningService], None]:
    def send(service: RunningService) -> None:
        httpx.post(
            f"{service.url}/translate",
            json={"q": q, "source": "en", "target": "de", **values},
            trust_env=False,
            timeout=60,
        )

    return send


def tiny_chunks(service: RunningService) -> None:
    head = b"POST /translate_file HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        head += b"content-type: multipart/form-data; boundary=x\r\n\r\n"
        with contextlib.suppress(OSError):  # the service closes the connection
            connection.sendall(head + b"1\r\n-\r\n" * 1_000_000)


ATTACKS = {
    "spaces": document("a.html", b"<pre>a" + b" " * 60_000 + b"</b>"),
    "tags": document("a.html", b"<b>" * (MOST // 3)),
    "arrows": document("a.vtt", b"-->" * (MOST // 3)),
    "punycode": document("a.html", b"<meta charset=punycode>" + b"a-" * (MOST // 2)),
    "catalogue": document("a.po", b'msgid"a"msgstr""' * (MOST // 16)),
    "chunks": tiny_chunks,
    "percent": text("%" + "0" * 19_000),
    "emoji": text("\U0001f600" * 20_000),
    "long text": text("one two three. " * 1_300, alternatives=3),
    "slow": text("slow " * 100 + "one. "),
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_the_service_answers_other_clients_meanwhile(service: RunningService, attack: str) -> None:
    sender = threading.Thread(target=ATTACKS[attack], args=(service,))
    sender.start()
    healthy, short = [], []
    while sender.is_alive() or not healthy:
        start = time.monotonic()
        assert service.client.get("/health").status_code == 200
        healthy.append(time.monotonic() - start)
        start = time.monotonic()
        service.translate("one")
        short.append(time.monotonic() - start)
    sender.join()
    assert max(healthy) < 1
    assert sorted(short)[len(short) // 2] < 1  # idle, it takes a few hundredths


def test_a_client_only_removes_its_own_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Files()
    store.add("a", "first", b"1")
    for number in range(MOST_OF_CLIENT + 4):
        store.add("b", f"b{number}", b"22")
    assert store.get("first") == b"1"
    assert [number for number in range(20) if store.get(f"b{number}") is None] == [0, 1, 2, 3]
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    store.add("c", "c", b"3")
    assert (store.get("first"), store.get("c"), store.get("b4"), store.get("b19")) == (b"1", b"3", None, b"22")


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_a_request_with_two_lengths_is_refused_and_its_connection_closed(
    service: RunningService, version: bytes
) -> None:
    body = b"q=one&source=en&target=de"
    head = (
        b"POST /translate HTTP/%b\r\nhost: localhost\r\ncontent-type: application/x-www-form-urlencoded\r\n" % version
    )
    lengths = b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    smuggled = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    answer = b""
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(head + lengths + chunks + smuggled)
        while piece := connection.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1 ") == 1
    assert b"Content-Length and Transfer-Encoding" in answer


def test_a_link_has_the_scheme_of_a_trusted_proxy(service: RunningService) -> None:
    fields, headers = {"source": "en", "target": "de"}, {"x-forwarded-proto": "https"}
    answer = service.client.post(
        "/translate_file", data=fields, files={"file": ("a.html", b"one")}, headers=headers
    ).json()
    assert answer["translatedFileUrl"].startswith("https://")
