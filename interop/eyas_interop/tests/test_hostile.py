"""Running the attack programs, and the checks of bounds."""

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
        output = "ok    hostile    a: one\nFAIL  hostile    a: two\n      figures\n1 passed, 1 failed\n"
        report = Report()
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            self.assertEqual(run.add_to_report(output, report), 2)
        self.assertEqual((report.counts["passed"], report.counts["failed"]), (1, 1))
        self.assertIn("figures", shown.getvalue())
        self.assertNotIn("1 passed", shown.getvalue())

    def test_a_program_at_the_limit_is_killed(self) -> None:
        sleeper = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
        with mock.patch.object(run, "LIMIT", 1):
            _, problem = run.run_with_limit([sys.executable, "-c", sleeper])
        self.assertIn("no end", problem)

    def test_an_exit_status_above_1_is_a_problem(self) -> None:
        _, problem = run.run_with_limit([sys.executable, "-c", "import sys; sys.exit(7)"])
        self.assertIn("status 7", problem)

    def test_words_select_programs(self) -> None:
        names = [path.stem for path in run.programs(["tiny_windows"])]
        self.assertEqual(names, ["h2_tiny_windows"])
        self.assertEqual(run.programs(["hostile"]), run.programs([]))


class Attacked(unittest.TestCase):
    @contextlib.contextmanager
    def attacked(self, **bounds: float) -> Iterator[Report]:
        """Reports an attack on an idle victim."""
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

    def test_an_exceeded_bound_fails(self) -> None:
        with self.attacked(memory=-1, descriptors=-1) as report:
            pass
        self.assertEqual((report.counts["passed"], report.counts["failed"]), (1, 2))


if __name__ == "__main__":
    unittest.main()
