"""A case that fails is retried once, and the report says so."""

import contextlib
import io
import unittest

from ..report import Report, Skip
from ..sctp.run import Cells
from ..sctp.retry import with_retry


class Case:
    """A case with given results, one per attempt."""

    def __init__(self, *results) -> None:
        self.results = list(results)
        self.heals = 0

    def __call__(self):
        result = self.results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    def heal(self) -> None:
        self.heals += 1


class Retries(unittest.TestCase):
    def test_a_case_that_passes_runs_once(self):
        case = Case((True, "fine"))
        outcome = with_retry(case, case.heal)
        self.assertEqual((outcome.passed, outcome.detail, outcome.cell), (True, "fine", "ok"))
        self.assertEqual((case.results, case.heals), ([], 1))

    def test_a_failure_is_retried_and_both_results_are_reported(self):
        case = Case((False, "lost it"), (True, "fine"), (True, "never"))
        outcome = with_retry(case, case.heal)
        self.assertTrue(outcome.passed)
        self.assertEqual(outcome.detail, "second attempt: fine; first attempt: lost it")
        self.assertEqual(outcome.cell, "retry")
        self.assertEqual((len(case.results), case.heals), (1, 2))

    def test_an_error_is_a_failure(self):
        case = Case(RuntimeError("no listener"), (True, "fine"))
        outcome = with_retry(case, case.heal)
        self.assertTrue(outcome.passed)
        self.assertIn("first attempt: RuntimeError: no listener", outcome.detail)

    def test_two_failures_are_one_failed_check(self):
        case = Case((False, "lost it"), RuntimeError("no listener"), (True, "never"))
        outcome = with_retry(case, case.heal)
        self.assertEqual((outcome.passed, outcome.cell), (False, "FAIL"))
        self.assertEqual(outcome.detail, "second attempt: RuntimeError: no listener; first attempt: lost it")
        self.assertEqual((len(case.results), case.heals), (1, 2))

    def test_a_skipped_case_is_not_retried(self):
        case = Case(Skip("not here"), (True, "never"))
        with self.assertRaises(Skip):
            with_retry(case, case.heal)
        self.assertEqual((len(case.results), case.heals), (1, 1))


class Printed(unittest.TestCase):
    """The printed report."""

    def run_case(self, *results) -> tuple[str, Report, Cells]:
        report, cells, case = Report(), Cells(), Case(*results)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            cells.run(report, "linux", "linux raw →", "raw, we connect", "path cut", case, case.heal)
            cells.table()
        return printed.getvalue(), report, cells

    def test_a_retry_is_shown_in_the_line_and_in_the_table(self):
        printed, report, _ = self.run_case((False, "lost it"), (True, "fine"))
        self.assertIn("ok    linux      raw, we connect: path cut: ", printed)
        self.assertIn("second attempt: fine; first attempt: lost it", printed)
        self.assertRegex(printed, r"path cut +retry")
        self.assertEqual(report.counts, {"passed": 1, "failed": 0, "missed": 0, "skipped": 0})

    def test_two_failures_fail_the_run(self):
        printed, report, _ = self.run_case((False, "lost it"), (False, "lost it again"))
        self.assertIn("FAIL  linux      raw, we connect: path cut: ", printed)
        self.assertRegex(printed, r"path cut +FAIL")
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(report.finish(), 1)

    def test_a_skipped_case_says_why(self):
        printed, report, _ = self.run_case(Skip("no guest here"))
        self.assertIn("SKIP  linux      raw, we connect: path cut: no guest here", printed)
        self.assertRegex(printed, r"path cut +skip")
        self.assertEqual(report.counts["skipped"], 1)


if __name__ == "__main__":
    unittest.main()
