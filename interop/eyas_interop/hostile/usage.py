"""What a process uses, as Linux tells it."""

import dataclasses
import os
import pathlib
import threading

# Between two looks at a process, in seconds.
LOOK_EVERY = 0.1
TICKS = os.sysconf("SC_CLK_TCK")
MIB = 1024 * 1024


@dataclasses.dataclass(frozen=True)
class Usage:
    """What a process holds now, and has used since its start."""

    # Bytes in RAM.
    memory: int
    # Open descriptors.
    descriptors: int
    # CPU time, in seconds.
    cpu: float

    @classmethod
    def of(cls, process: int) -> "Usage":
        """Reads it; an error if the process has ended."""
        proc = pathlib.Path(f"/proc/{process}")
        status = (proc / "status").read_text()
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        # The name of the program is in brackets and may hold spaces.
        fields = (proc / "stat").read_text().rpartition(")")[2].split()
        return cls(
            memory=int(resident.split()[1]) * 1024,
            descriptors=len(list((proc / "fd").iterdir())),
            cpu=(int(fields[11]) + int(fields[12])) / TICKS,
        )

    def __str__(self) -> str:
        return f"{self.memory / MIB:.0f} MiB, {self.descriptors} descriptors, {self.cpu:.2f} s of CPU"


class Watch:
    """Looks at a process again and again, for its highest figures."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.before = Usage.of(process)
        self.peak = self.last = self.before
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> "Watch":
        """Looks for the last time."""
        self._over.set()
        self._thread.join()
        self._look()
        return self

    @property
    def grown_memory(self) -> int:
        """By how many bytes the memory was above its start at most."""
        return self.peak.memory - self.before.memory

    @property
    def grown_descriptors(self) -> int:
        """By how many the descriptors were above their start at most."""
        return self.peak.descriptors - self.before.descriptors

    @property
    def cpu(self) -> float:
        """CPU time meanwhile, in seconds."""
        return self.last.cpu - self.before.cpu

    def _run(self) -> None:
        while not self._over.wait(LOOK_EVERY):
            if not self._look():
                return

    def _look(self) -> bool:
        try:
            now = Usage.of(self.process)
        except (OSError, StopIteration):
            return False
        self.last = now
        self.peak = Usage(
            memory=max(now.memory, self.peak.memory),
            descriptors=max(now.descriptors, self.peak.descriptors),
            cpu=now.cpu,
        )
        return True
