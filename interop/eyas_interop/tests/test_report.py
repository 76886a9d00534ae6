"""Which results fail a run, and which are only reported."""

import contextlib
import io
import unittest

from ..report import Report


class Reports(unittest.TestCase):
    def report_figure(self, strict: bool, good: bool) -> tuple[int, str]:
        report = Report(strict)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            report.figure("netem", "delay", good, "+0.30 ms")
            status = report.finish()
        return status, output.getvalue()

    def test_a_missed_figure_is_only_reported(self) -> None:
        status, output = self.report_figure(strict=False, good=False)
        self.assertEqual(status, 0)
        self.assertIn("MISS  netem", output)
        self.assertIn("1 missed", output)

    def test_a_missed_figure_fails_a_strict_run(self) -> None:
        status, output = self.report_figure(strict=True, good=False)
        self.assertEqual(status, 1)
        self.assertIn("FAIL  netem", output)

    def test_a_figure_that_meets_its_target_passes(self) -> None:
        for strict in (False, True):
            status, output = self.report_figure(strict, good=True)
            self.assertEqual(status, 0)
            self.assertIn("1 passed", output)


if __name__ == "__main__":
    unittest.main()
