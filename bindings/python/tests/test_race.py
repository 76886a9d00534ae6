"""Races and plans without a request, and the memory."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import stat
from pathlib import Path
from xml.etree import ElementTree

import pytest
from conftest import Server

import eyas


def test_a_race(server: Server) -> None:
    race = eyas.race(server.url, verify=server.roots)
    assert race.winner is not None
    assert race.winner.security == "tls"
    assert race.failure is None
    assert [attempt.outcome for attempt in race.attempts].count("won") == 1
    again = asyncio.run(eyas.arace(server.url, verify=server.roots, seed=1))
    assert again.winner is not None


def test_a_race_of_all_candidates(server: Server) -> None:
    race = eyas.race(server.url, all=True, timeout=2, verify=server.roots)
    successful = {"won", "lost", "upgraded"}
    connected = {attempt.transport for attempt in race.attempts if attempt.outcome in successful}
    assert {"tcp", "quic"} <= connected
    assert race.explain().count("\n") >= len(race.attempts)


def test_a_race_without_a_winner(unused_port: int) -> None:
    race = eyas.race(f"http://127.0.0.1:{unused_port}/", endpoint=eyas.Endpoint())
    assert race.winner is None
    assert race.failure is not None and "refused" in race.failure
    assert [attempt.outcome for attempt in race.attempts] == ["failed"]
    assert race.failure in race.explain()


def test_a_plan(unused_port: int) -> None:
    url, endpoint = f"https://127.0.0.1:{unused_port}/", eyas.Endpoint()
    plan = eyas.plan(url, endpoint=endpoint)
    assert [entry.transport for entry in plan.entries] == ["quic", "tcp"]
    assert plan.entries[0].alpn == ("h3",)
    assert plan.entries[0].starts_ms <= plan.entries[1].starts_ms
    assert all(entry.reasons for entry in plan.entries)
    assert "1. quic" in plan.explain()
    assert asyncio.run(eyas.aplan(url, endpoint=endpoint)) == plan


def parse_svg(page: str) -> tuple[list[str], list[ElementTree.Element]]:
    """Parses a drawing, checks that its bars are inside the frame, and returns its texts and bars."""
    root = ElementTree.fromstring(page)
    namespace = "{http://www.w3.org/2000/svg}"
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    bars = root.findall(f"{namespace}rect") + root.findall(f"{namespace}circle")
    for bar in bars:
        right = float(bar.get("x", bar.get("cx", ""))) + float(bar.get("width", "0"))
        assert 0 <= right <= width
        assert 0 <= float(bar.get("y", bar.get("cy", ""))) <= height
    return [text.text or "" for text in root.findall(f"{namespace}text")], bars


def test_a_notebook_draws_a_race(server: Server) -> None:
    race = eyas.race(server.url, all=True, timeout=2, verify=server.roots)
    texts, bars = parse_svg(race._repr_html_())
    assert len(bars) == len(race.dns) + len(race.attempts)
    (won,) = (text for text in texts if text.startswith("won at "))
    assert race.winner is not None
    assert f"{race.winner.transport} tls {race.winner.address}" in texts
    assert "0" in texts
    # Text from other sources is escaped.
    query = eyas.DnsQuery("<b>&.example", "AAAA", 0.1, None, 0, None)
    attempt = dataclasses.replace(race.attempts[0], outcome="failed", reason="<b>", ended_ms=9000)
    lost = dataclasses.replace(race, dns=(query,), attempts=(attempt,), winner=None)
    texts, bars = parse_svg(lost._repr_html_())
    assert "dns AAAA <b>&.example" in texts and "failed at 9 s" in texts and "10 s" in texts
    assert len(bars) == 2
    nothing = dataclasses.replace(race, dns=(), attempts=(), winner=None, failure="no address")
    assert parse_svg(nothing._repr_html_())[1] == []


def test_a_notebook_draws_a_plan(unused_port: int) -> None:
    plan = eyas.plan(f"https://127.0.0.1:{unused_port}/", endpoint=eyas.Endpoint())
    texts, circles = parse_svg(plan._repr_html_())
    places = [float(circle.attrib["cx"]) for circle in circles]
    assert len(places) == len(plan.entries) and places == sorted(places)
    assert f"quic tls 127.0.0.1:{unused_port}" in texts and "from 0 ms on" in texts


def test_a_plan_of_named_transports() -> None:
    plan = eyas.plan("sctp+tcp://127.0.0.1:5000")
    assert {entry.transport for entry in plan.entries} <= {"sctp", "sctp-udp", "tcp"}
    assert "tcp" in {entry.transport for entry in plan.entries}
    for url in ("sctp+tcp://127.0.0.1", "sctp+pigeon://127.0.0.1:1", "127.0.0.1"):
        with pytest.raises(eyas.InvalidURL):
            eyas.plan(url)


def test_a_memory_in_a_file(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "memory.sqlite"
    first = eyas.Endpoint(memory=file, verify=server.roots)
    assert eyas.race(server.url, endpoint=first).winner is not None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    second = eyas.Endpoint(memory=file, verify=server.roots)
    plan = eyas.plan(server.url, endpoint=second)
    assert any(entry.from_memory for entry in plan.entries)
    assert second.forget("localhost") > 0
    assert second.forget("localhost") == 0
    assert second.warnings() == []


def test_without_a_memory(server: Server) -> None:
    endpoint = eyas.Endpoint(memory=False, verify=server.roots)
    assert eyas.race(server.url, endpoint=endpoint).winner is not None
    plan = eyas.plan(server.url, endpoint=endpoint)
    assert not any(entry.from_memory for entry in plan.entries)
    with pytest.raises(eyas.InvalidURL):
        endpoint.forget("a b")


def test_address_overrides(server: Server) -> None:
    authority = f"elsewhere.example:{server.port}"
    endpoint = eyas.Endpoint(verify=False, resolve={authority: "127.0.0.1"})
    assert eyas.get(f"https://{authority}/bytes/1", endpoint=endpoint).is_success
    with pytest.raises(ValueError, match="not a host and port"):
        eyas.Endpoint(resolve={"elsewhere.example": "127.0.0.1"})
    with pytest.raises(ValueError, match="DNS server"):
        eyas.Endpoint(dns_server="nowhere")


def test_a_name_server_without_encryption_is_not_asked_if_that_is_required() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        endpoint = eyas.Endpoint(dns_server=address, encrypted_dns="require")
        with pytest.raises(eyas.ResolveError, match="encrypted DNS is required"):
            eyas.get("https://name.example.net/", endpoint=endpoint, timeout=20)
        silent.setblocking(False)
        question = b"\x04_dns\x08resolver\x04arpa"
        while data := _received(silent):
            assert question in data
    with pytest.raises(ValueError, match="expected system, auto, require or off"):
        eyas.Endpoint(encrypted_dns="perhaps")


def _received(datagrams: socket.socket) -> bytes:
    try:
        return datagrams.recv(2048)
    except BlockingIOError:
        return b""


def test_ech_over_quic_is_pretended_unless_it_is_off_or_required(server: Server) -> None:
    for ech, expected in (("auto", "grease"), ("off", None)):
        endpoint = eyas.Endpoint(verify=server.roots, ech=ech)
        with eyas.create_connection(
            ("localhost", server.port), 10, transports=("quic",), alpn=["h3"], endpoint=endpoint
        ) as connection:
            assert connection.info.ech == expected
    required = eyas.Endpoint(verify=server.roots, ech="require")
    with pytest.raises(eyas.ConnectError, match="has no configuration for it"):
        eyas.create_connection(
            ("localhost", server.port), 10, transports=("quic",), alpn=["h3"], endpoint=required
        )
    with pytest.raises(ValueError, match="no setting of ECH"):
        eyas.Endpoint(ech="perhaps")
