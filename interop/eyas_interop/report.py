"""What passed, what failed, what was skipped and why."""


class Skip(Exception):
    """Raised by a case that cannot run here; the text says what is missing."""


class Report:
    """Counts checks and prints one line for each."""

    def __init__(self) -> None:
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}

    def check(self, peer: str, name: str, good: bool, detail: str = "") -> bool:
        """One check; `detail` says what was seen."""
        if good:
            self._line("passed", "ok  ", peer, name, detail)
        else:
            self.failed(peer, name, detail)
        return good

    def failed(self, peer: str, name: str, detail: str) -> None:
        self._line("failed", "FAIL", peer, name, detail)

    def skip(self, peer: str, name: str, why: str) -> None:
        self._line("skipped", "SKIP", peer, name, why)

    def finish(self) -> int:
        """Prints the closing line; the exit status of the run."""
        counts = self.counts
        print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
        return 1 if counts["failed"] else 0

    def _line(self, kind: str, mark: str, peer: str, name: str, detail: str) -> None:
        self.counts[kind] += 1
        detail = " ".join(detail.split())
        print(f"{mark}  {peer:<10} {name}" + (f": {detail}" if detail else ""), flush=True)
