"""What the run makes of the programs that attack."""

import contextlib
import io
import pathlib
import subprocess
import sys
import unittest
from collections.abc import Iterator
from unittest import mock

from ..hostile import run
from ..hostile.stage import Stage
from ..report import Report


class Programs(unittest.TestCase):
    def test_their_lines_are_counted(self) -> None:
        said = "ok    hostile    a: one\nFAIL  hostile    a: two\n      figures\n1 passed, 1 failed\n"
        report = Report()
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            self.assertEqual(run.take_over(said, report), 2)
        self.assertEqual((report.counts["passed"], report.counts["failed"]), (1, 1))
        self.assertIn("figures", shown.getvalue())
        self.assertNotIn("1 passed", shown.getvalue())

    def test_one_that_does_not_end_is_ended(self) -> None:
        sleeper = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
        with mock.patch.object(run, "LIMIT", 1):
            _, problem = run.bounded([sys.executable, "-c", sleeper])
        self.assertIn("no end", problem)

    def test_one_that_breaks_is_told(self) -> None:
        _, problem = run.bounded([sys.executable, "-c", "import sys; sys.exit(7)"])
        self.assertIn("status 7", problem)

    def test_a_word_chooses(self) -> None:
        names = [path.stem for path in run.programs(["tiny_windows"])]
        self.assertEqual(names, ["h2_tiny_windows"])
        self.assertEqual(run.programs(["hostile"]), run.programs([]))


class Attacked(unittest.TestCase):
    @contextlib.contextmanager
    def attacked(self, **bounds: float) -> Iterator[Report]:
        """What is reported of a victim that does nothing."""
        report = Report()
        stage = Stage(pathlib.Path("eyas"), pathlib.Path(), report, "attack")
        with (
            subprocess.Popen(["sleep", "60"]) as process,
            contextlib.redirect_stdout(io.StringIO()),
        ):
            server = mock.Mock(process=process.pid)
            server.peer.process = process
            try:
                with stage.attacked(server, **bounds):
                    yield report
            finally:
                process.kill()

    def test_each_bound_is_a_check(self) -> None:
        with self.attacked(memory=50, descriptors=10, cpu=1) as report:
            self.assertEqual(report.counts["passed"], 0)
        self.assertEqual((report.counts["passed"], report.counts["failed"]), (4, 0))

    def test_what_is_beyond_a_bound_fails(self) -> None:
        with self.attacked(memory=-1, descriptors=-1) as report:
            pass
        self.assertEqual((report.counts["passed"], report.counts["failed"]), (1, 2))


if __name__ == "__main__":
    unittest.main()
