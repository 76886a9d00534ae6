"""What fails a run, and what is only told."""

import contextlib
import io
import unittest

from ..report import Report


class Reports(unittest.TestCase):
    def run_of(self, strict: bool, good: bool) -> tuple[int, str]:
        report = Report(strict)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            report.figure("netem", "delay", good, "+0.30 ms")
            status = report.finish()
        return status, said.getvalue()

    def test_a_missed_figure_is_told(self) -> None:
        status, said = self.run_of(strict=False, good=False)
        self.assertEqual(status, 0)
        self.assertIn("MISS  netem", said)
        self.assertIn("1 missed", said)

    def test_a_missed_figure_fails_a_strict_run(self) -> None:
        status, said = self.run_of(strict=True, good=False)
        self.assertEqual(status, 1)
        self.assertIn("FAIL  netem", said)

    def test_a_figure_that_is_met_passes(self) -> None:
        for strict in (False, True):
            status, said = self.run_of(strict, good=True)
            self.assertEqual(status, 0)
            self.assertIn("1 passed", said)


if __name__ == "__main__":
    unittest.main()
