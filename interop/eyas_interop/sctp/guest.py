"""A User Mode Linux guest: the SCTP of a real kernel at the other end of two taps."""

import itertools
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import time

from ..report import Skip
from .network import TAPS, SctpNetwork, prefixes, theirs

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The time limit of booting the guest, in seconds.
BOOT_TIMEOUT = 30
# The time limit of a command in the guest, in seconds.
LIMIT = 60
# How long a program in the guest may take to end after a signal, in seconds.
END_TIMEOUT = 5
SETTINGS = (
    "net.sctp.addip_enable=1", "net.sctp.auth_enable=1", "net.sctp.reconf_enable=1",
    "net.sctp.intl_enable=1", "net.sctp.udp_port=9899", "net.core.rmem_max=33554432",
    "net.core.wmem_max=33554432", "net.sctp.sctp_rmem=4096 4194304 33554432",
    "net.sctp.sctp_wmem=4096 4194304 33554432",
)


class Guest:
    """A guest, which runs until `stop`. Raises `Skip` where none can run."""

    def __init__(self, network: SctpNetwork, directory: pathlib.Path, programs: list[pathlib.Path]) -> None:
        if shutil.which("linux.uml") is None:
            raise Skip("no User Mode Linux (Debian: user-mode-linux)")
        if shutil.which("busybox") is None:
            raise Skip("no busybox (Debian: busybox-static)")
        if not pathlib.Path("/dev/net/tun").exists():
            raise Skip("/dev/net/tun is missing")
        self.share = directory / "guest"
        self.share.mkdir()
        self.log = directory / "guest.log"
        root = directory / "guest.cpio"
        built = subprocess.run(
            [str(ROOT / "uml" / "build-root"), str(root), *map(str, programs)],
            capture_output=True, text=True, timeout=LIMIT, check=False,
        )
        if built.returncode != 0:
            raise RuntimeError(f"uml/build-root: {built.stderr.strip()}")
        self.console = self.share / "console"
        os.mkfifo(self.console)
        self.numbers = itertools.count(1)
        self.process = self._start(network, root)
        self._wait_until_up()
        for setting in SETTINGS:
            name, value = setting.split("=")
            self.run(f"echo '{value}' > /proc/sys/{name.replace('.', '/')}")

    def _start(self, network: SctpNetwork, root: pathlib.Path) -> subprocess.Popen:
        addresses = [
            f"eyas.a{number}=" + ",".join(prefixes(tap, theirs(tap, ipv6)) for ipv6 in (False, True))
            for number, tap in enumerate(TAPS)
        ]
        taps = [f"vec{number}:transport=tap,ifname={tap},depth=128,gro=1" for number, tap in enumerate(TAPS)]
        # On one core, system calls of the guest cost half as much.
        core = str(max(os.sched_getaffinity(0)))
        command = ["taskset", "-c", core, "linux.uml", "mem=320M", f"initrd={root}",
                   f"umid=eyas-{os.getpid()}", f"uml_dir={self.share}/uml/", f"eyas.share={self.share}",
                   *addresses, *taps, "con=null", "con0=fd:0,fd:1", "quiet"]
        with self.log.open("wb") as sink:
            # Opened for reading and writing: otherwise open() would block until the other end is open.
            self.keyboard = os.open(self.console, os.O_RDWR)
            return subprocess.Popen(
                network.inside(network.ours, command), stdin=self.keyboard, stdout=sink,
                stderr=subprocess.STDOUT, start_new_session=True,
            )

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + BOOT_TIMEOUT
        while not (self.share / "ready").exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise Skip(f"the guest did not boot: {self.log.read_text(errors='replace')[-300:]}")
            time.sleep(0.05)

    def begin(self, command: str) -> int:
        """Starts a command in the guest; returns its number."""
        number = next(self.numbers)
        (self.share / f"{number}.sh").write_text(command + "\n")
        os.write(self.keyboard, f"{number}\n".encode())
        return number

    def output(self, number: int) -> str:
        """Returns the output of a command so far."""
        file = self.share / f"{number}.out"
        return file.read_text(errors="replace") if file.exists() else ""

    def has_ended(self, number: int) -> bool:
        """Returns whether a command has ended."""
        return (self.share / f"{number}.status").exists()

    def run(self, command: str, limit: float = LIMIT) -> str:
        """Runs a command to its end and returns its output."""
        number = self.begin(command)
        deadline = time.monotonic() + limit
        while not self.has_ended(number):
            if time.monotonic() > deadline:
                raise RuntimeError(f"no end in the guest after {limit:.0f} s: {command}")
            time.sleep(0.02)
        status = (self.share / f"{number}.status").read_text().strip()
        if status != "0":
            raise RuntimeError(f"status {status} in the guest: {command}: {self.output(number)}")
        return self.output(number)

    def stop(self) -> None:
        """Shuts it down."""
        if self.process.poll() is None:
            os.write(self.keyboard, b"stop\n")
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        os.close(self.keyboard)


class Program:
    """A program of this host in the guest, on the guest's kernel, with all output in one file."""

    # Its writable directories are temporary.
    ENVIRONMENT = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run TMPDIR=/run TERM=xterm LANG=C.UTF-8"

    def __init__(self, guest: Guest, words: list[str]) -> None:
        self.guest = guest
        # Absolute paths, because busybox would otherwise run its own applets.
        command = f"chroot /debian /usr/bin/env -i {self.ENVIRONMENT} /bin/sh -c 'cd /run && exec \"$@\"' sh {shlex.join(words)}"
        # Its own session, so that it can be ended with its child processes.
        self.number = guest.begin(f"echo $$ >${{0%.sh}}.pid; exec setsid {command}")
        self.log = guest.share / f"{self.number}.out"

    def output(self) -> str:
        """Returns all of its output."""
        return self.guest.output(self.number)

    def status(self) -> int | None:
        """Returns its exit status once it has ended."""
        if not self.guest.has_ended(self.number):
            return None
        return int((self.guest.share / f"{self.number}.status").read_text())

    def stop(self) -> None:
        """Ends it and its child processes: SIGTERM, then SIGKILL if necessary."""
        for signal_name in ("TERM", "KILL"):
            if self.status() is None:
                self.guest.run(f"kill -{signal_name} -$(cat /host/{self.number}.pid); true")
                deadline = time.monotonic() + END_TIMEOUT
                while self.status() is None and time.monotonic() < deadline:
                    time.sleep(0.02)
