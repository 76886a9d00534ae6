"""Peers that do steps: ours, and those of others, each on its own host.

All understand the same command line and end with the same line of JSON: interop/peers/README.md.
"""

import json
import pathlib
import subprocess
import time

from ..report import Skip
from .guest import Guest
from .network import SctpNetwork

# A listener may take this long until it listens, in seconds.
READY_WITHIN = 60


class Running:
    """A peer that runs on a host of this machine."""

    def __init__(self, command: list[str], log: pathlib.Path) -> None:
        self.log = log
        with log.open("wb") as sink:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT
            )

    def said(self) -> str:
        """What it has said so far."""
        return self.log.read_text(errors="replace")

    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.process.poll() is not None

    def kill(self) -> None:
        """Ends it without a word to anybody."""
        if not self.has_ended():
            self.process.kill()
        self.process.wait()


class RunningInGuest:
    """A peer that runs in the guest."""

    def __init__(self, guest: Guest, command: str) -> None:
        self.guest = guest
        self.number = guest.begin(f"exec {command}")

    def said(self) -> str:
        """What it has said so far."""
        return self.guest.said(self.number)

    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.guest.has_ended(self.number)

    def kill(self) -> None:
        """Ends it; its kernel would say goodbye for it, if the link were not cut."""
        if not self.has_ended():
            self.guest.run("killall -9 peer; true")


class Host:
    """A host with one implementation of SCTP."""

    def __init__(
        self, name: str, network: SctpNetwork, program: pathlib.Path, *, namespace: str = "",
        guest: Guest | None = None, links: tuple[str, str] = ("cable0", "cable1"),
    ) -> None:
        if guest is None and not program.exists():
            raise Skip(f"{name} is not built: interop/install sctp says why")
        self.name = name
        self.network = network
        self.program = program
        self.namespace = namespace
        self.guest = guest
        self.links = links

    def start(self, words: list[str], log: pathlib.Path) -> Running | RunningInGuest:
        """Starts a peer with these words."""
        if self.guest is not None:
            return RunningInGuest(self.guest, " ".join(["peer", *words]))
        return Running(self.network.inside(self.namespace, [str(self.program), *words]), log)


def wait_ready(peer: Running | RunningInGuest) -> None:
    """Waits until a listener listens."""
    deadline = time.monotonic() + READY_WITHIN
    while "ready" not in peer.said():
        if peer.has_ended() or time.monotonic() > deadline:
            raise RuntimeError(f"the listener does not listen: {peer.said()[-300:]}")
        time.sleep(0.01)


def result(peer: Running | RunningInGuest, within: float) -> dict:
    """Waits for the end of a peer and gives its line of JSON; `error` is in it if that is none."""
    deadline = time.monotonic() + within
    while not peer.has_ended():
        if time.monotonic() > deadline:
            said = peer.said()[-300:]
            peer.kill()
            return _whole({"error": f"no end after {within:.0f} s: {said}"})
        time.sleep(0.01)
    lines = peer.said().strip().splitlines() or [""]
    try:
        return _whole(json.loads(lines[-1]))
    except ValueError:
        return _whole({"error": " ".join(peer.said().split())[-400:]})


def _whole(value: dict) -> dict:
    for name in ("messages", "bytes", "bad", "disordered"):
        value.setdefault(name, -1)
    value.setdefault("events", [])
    return value
