"""Reporting of checks: passed, failed, missed, skipped."""


class Skip(Exception):
    """Raised by a case that cannot run here; the message says what is missing."""


class Report:
    """Counts checks and prints one line for each."""

    def __init__(self, strict: bool = False) -> None:
        self.counts = {"passed": 0, "failed": 0, "missed": 0, "skipped": 0}
        self.strict = strict

    def check(self, peer: str, name: str, good: bool, detail: str = "") -> bool:
        """Reports one check; `detail` describes the observation."""
        if good:
            self._line("passed", "ok  ", peer, name, detail)
        else:
            self.failed(peer, name, detail)
        return good

    def figure(self, peer: str, name: str, good: bool, detail: str) -> bool:
        """Reports a real-time measurement against its target. On a busy machine it can miss the target
        without a defect of ours, so a miss is reported and fails the run only with `--strict`."""
        if good or self.strict:
            return self.check(peer, name, good, detail)
        self._line("missed", "MISS", peer, name, detail)
        return good

    def failed(self, peer: str, name: str, detail: str) -> None:
        self._line("failed", "FAIL", peer, name, detail)

    def skip(self, peer: str, name: str, reason: str) -> None:
        self._line("skipped", "SKIP", peer, name, reason)

    def finish(self) -> int:
        """Prints the closing line; returns the exit status of the run."""
        counts = self.counts
        print(", ".join(f"{number} {kind}" for kind, number in counts.items()))
        return 1 if counts["failed"] else 0

    def _line(self, kind: str, mark: str, peer: str, name: str, detail: str) -> None:
        self.counts[kind] += 1
        detail = " ".join(detail.split())
        print(f"{mark}  {peer:<10} {name}" + (f": {detail}" if detail else ""), flush=True)
