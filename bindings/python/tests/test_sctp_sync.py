"""SCTP with blocking calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from conftest import SOON

import eyas
import eyas.sctp
from eyas.sctp import sync


@pytest.fixture
def listener() -> Iterator[sync.Listener]:
    with sync.listen("127.0.0.1", udp_port=0) as listener:
        yield listener


def connect(listener: sync.Listener) -> sync.Association:
    return sync.connect(
        "127.0.0.1",
        listener.port,
        transports=("sctp-udp",),
        udp_port=listener.udp_port,
        timeout=SOON,
    )


def test_messages(listener: sync.Listener) -> None:
    with connect(listener) as here, listener.accept(SOON) as there:
        assert here.gettimeout() == SOON
        here.send(b"ping", stream=2, ppid=7)
        message = there.receive()
        assert message is not None
        there.send(message.data.upper(), stream=message.stream, ppid=message.ppid)
        assert here.receive() == eyas.sctp.Message(b"PING", 2, 7, False, True, True)
        here.end_stream(2)
        here.shutdown()
        assert list(there) == []
        assert [event.event for event in here.events()][-1] == "closed"


def test_call_timeouts(listener: sync.Listener) -> None:
    with pytest.raises(TimeoutError):
        listener.accept(0.05)
    with connect(listener) as here, listener.accept(SOON) as there:
        there.settimeout(0.05)
        with pytest.raises(TimeoutError):
            there.receive()
        here.send(b"still works")
        there.settimeout(SOON)
        assert there.receive() is not None
        with pytest.raises(ValueError, match="more than 0"):
            there.settimeout(0)


def test_concurrent_threads(listener: sync.Listener) -> None:
    data = bytes(range(256)) * 100
    with connect(listener) as here, listener.accept(SOON) as there:
        there.settimeout(SOON)
        events: list[str] = []
        watcher = threading.Thread(target=lambda: events.extend(e.event for e in here.events()))
        watcher.start()

        def send() -> None:
            for n in range(200):
                here.send(data, stream=n % 10)
            here.shutdown()

        sender = threading.Thread(target=send)
        sender.start()
        received = [message.data for message in there]
        assert b"".join(received) == data * 200
        sender.join(SOON)
        watcher.join(SOON)
        assert events[-1] == "closed"


@pytest.mark.parametrize("end", ["abort", "close"])
def test_closing_an_association_ends_waiting_calls(listener: sync.Listener, end: str) -> None:
    here, there = connect(listener), listener.accept(SOON)
    here.settimeout(None)
    outcome: list[str | None] = []

    def wait() -> None:
        try:
            outcome.append(str(here.receive()))
        except eyas.Error as error:
            outcome.append(error.kind)

    thread = threading.Thread(target=wait)
    thread.start()
    getattr(here, end)()
    thread.join(SOON)
    # The association may have ended before the thread called `receive`.
    assert outcome in (["None"], ["association-lost"], ["association-closed"])
    there.close()


def test_closing_a_listener_ends_waiting_calls(listener: sync.Listener) -> None:
    outcome: list[str] = []

    def wait() -> None:
        try:
            listener.accept()
        except OSError as error:
            outcome.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    listener.close()
    thread.join(SOON)
    assert outcome and "closed" in outcome[0]
