"""The resource usage of a process, from /proc."""

import dataclasses
import os
import pathlib
import threading

# The sampling interval, in seconds.
INTERVAL = 0.1
TICKS = os.sysconf("SC_CLK_TCK")
MIB = 1024 * 1024


@dataclasses.dataclass(frozen=True)
class Usage:
    """The current memory and descriptors of a process, and its CPU time since its start."""

    # Bytes in RAM.
    memory: int
    # Open descriptors.
    descriptors: int
    # CPU time, in seconds.
    cpu: float

    @classmethod
    def of(cls, process: int) -> "Usage":
        """Reads the usage; raises an error if the process has ended."""
        proc = pathlib.Path(f"/proc/{process}")
        status = (proc / "status").read_text()
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        # The program's name is in parentheses and may contain spaces.
        fields = (proc / "stat").read_text().rpartition(")")[2].split()
        return cls(
            memory=int(resident.split()[1]) * 1024,
            descriptors=len(list((proc / "fd").iterdir())),
            cpu=(int(fields[11]) + int(fields[12])) / TICKS,
        )

    def __str__(self) -> str:
        return f"{self.memory / MIB:.0f} MiB, {self.descriptors} descriptors, {self.cpu:.2f} s of CPU"


class Watch:
    """Samples the usage of a process repeatedly, for its peak values."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.before = Usage.of(process)
        self.peak = self.last = self.before
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> "Watch":
        """Takes the last sample."""
        self._stop.set()
        self._thread.join()
        self._sample()
        return self

    @property
    def grown_memory(self) -> int:
        """Returns the maximum growth of the memory, in bytes."""
        return self.peak.memory - self.before.memory

    @property
    def grown_descriptors(self) -> int:
        """Returns the maximum growth of the number of descriptors."""
        return self.peak.descriptors - self.before.descriptors

    @property
    def cpu(self) -> float:
        """Returns the CPU time during the watch, in seconds."""
        return self.last.cpu - self.before.cpu

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL):
            if not self._sample():
                return

    def _sample(self) -> bool:
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
