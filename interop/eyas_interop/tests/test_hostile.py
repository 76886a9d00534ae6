"""What the run makes of the programs that attack."""

import contextlib
import io
import sys
import unittest
from unittest import mock

from ..hostile import run
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


if __name__ == "__main__":
    unittest.main()
