"""Peers that execute steps: ours and those of other stacks, each on its own host.

All have the same command line and print the same JSON line at their end: interop/peers/README.md.
"""

import contextlib
import json
import pathlib
import subprocess
import time

from ..report import Skip
from .guest import Guest
from .network import SctpNetwork

# How long a listener may take to become ready, in seconds.
READY_TIMEOUT = 60


class Running:
    """A peer that runs in a namespace of this machine."""

    def __init__(self, command: list[str], log: pathlib.Path) -> None:
        self.log = log
        with log.open("wb") as sink:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT
            )

    def output(self) -> str:
        """Returns its output so far."""
        return self.log.read_text(errors="replace")

    def has_ended(self) -> bool:
        """Returns whether it has ended."""
        return self.process.poll() is not None

    def kill(self) -> None:
        """Kills it."""
        if not self.has_ended():
            self.process.kill()
        self.process.wait()


class RunningInGuest:
    """A peer that runs in the guest."""

    def __init__(self, guest: Guest, command: str) -> None:
        self.guest = guest
        self.number = guest.begin(f"exec {command}")

    def output(self) -> str:
        """Returns its output so far."""
        return self.guest.output(self.number)

    def has_ended(self) -> bool:
        """Returns whether it has ended."""
        return self.guest.has_ended(self.number)

    def kill(self) -> None:
        """Kills it; unless the link is cut, its kernel ends the association with the peer."""
        if not self.has_ended():
            self.guest.run("killall -9 peer; true")


class Host:
    """A host with one implementation of SCTP."""

    def __init__(
        self, name: str, network: SctpNetwork, program: pathlib.Path, *, namespace: str = "",
        guest: Guest | None = None, links: tuple[str, str] = ("cable0", "cable1"),
    ) -> None:
        if guest is None and not program.exists():
            raise Skip(f"{name} is not built; run interop/install sctp to see why")
        self.name = name
        self.network = network
        self.program = program
        self.namespace = namespace
        self.guest = guest
        self.links = links

    def start(self, arguments: list[str], log: pathlib.Path) -> Running | RunningInGuest:
        """Starts a peer with these arguments."""
        if self.guest is not None:
            return RunningInGuest(self.guest, " ".join(["peer", *arguments]))
        return Running(self.network.inside(self.namespace, [str(self.program), *arguments]), log)


def wait_ready(peer: Running | RunningInGuest) -> None:
    """Waits until a listener listens."""
    deadline = time.monotonic() + READY_TIMEOUT
    while "ready" not in peer.output():
        if peer.has_ended() or time.monotonic() > deadline:
            raise RuntimeError(f"the listener does not listen: {peer.output()[-300:]}")
        time.sleep(0.01)


def result(peer: Running | RunningInGuest, within: float) -> dict:
    """Waits for the report of a peer and returns it; without one, an object with `error`."""
    deadline = time.monotonic() + within
    while True:
        # Asked first: what it writes before it ends is then in its output.
        has_ended, output = peer.has_ended(), peer.output()
        if output.endswith("}\n"):
            with contextlib.suppress(ValueError):
                return _with_defaults(json.loads(output.splitlines()[-1]))
        if has_ended:
            return _with_defaults({"error": " ".join(output.split())[-400:]})
        if time.monotonic() > deadline:
            peer.kill()
            return _with_defaults({"error": f"no report after {within:.0f} s: {output[-300:]}"})
        time.sleep(0.01)


def _with_defaults(value: dict) -> dict:
    for name in ("messages", "bytes", "bad", "disordered"):
        value.setdefault(name, -1)
    value.setdefault("events", [])
    return value
