"""A case that fails gets one more try, and everybody learns of it."""

import contextlib
import io
import unittest

from ..report import Report, Skip
from ..sctp.run import Cells
from ..sctp.tries import tries


class Case:
    """A case that goes as it is told, try by try."""

    def __init__(self, *goes) -> None:
        self.goes = list(goes)
        self.healed = 0

    def __call__(self):
        going = self.goes.pop(0)
        if isinstance(going, Exception):
            raise going
        return going

    def heal(self) -> None:
        self.healed += 1


class Tries(unittest.TestCase):
    def test_what_goes_well_is_tried_once(self):
        case = Case((True, "fine"))
        outcome = tries(case, case.heal)
        self.assertEqual((outcome.fine, outcome.detail, outcome.cell), (True, "fine", "ok"))
        self.assertEqual((case.goes, case.healed), ([], 1))

    def test_a_failure_is_tried_once_more_and_both_are_told(self):
        case = Case((False, "lost it"), (True, "fine"), (True, "never"))
        outcome = tries(case, case.heal)
        self.assertTrue(outcome.fine)
        self.assertEqual(outcome.detail, "at the second try: fine; the first: lost it")
        self.assertEqual(outcome.cell, "again")
        self.assertEqual((len(case.goes), case.healed), (1, 2))

    def test_an_error_is_a_failure(self):
        case = Case(RuntimeError("no listener"), (True, "fine"))
        outcome = tries(case, case.heal)
        self.assertTrue(outcome.fine)
        self.assertIn("the first: RuntimeError: no listener", outcome.detail)

    def test_two_failures_are_one(self):
        case = Case((False, "lost it"), RuntimeError("no listener"), (True, "never"))
        outcome = tries(case, case.heal)
        self.assertEqual((outcome.fine, outcome.cell), (False, "FAIL"))
        self.assertEqual(outcome.detail, "at the second try: RuntimeError: no listener; the first: lost it")
        self.assertEqual((len(case.goes), case.healed), (1, 2))

    def test_what_cannot_run_is_not_tried_again(self):
        case = Case(Skip("not here"), (True, "never"))
        with self.assertRaises(Skip):
            tries(case, case.heal)
        self.assertEqual((len(case.goes), case.healed), (1, 1))


class Told(unittest.TestCase):
    """What is printed of it."""

    def told(self, *goes) -> tuple[str, Report, Cells]:
        report, cells, case = Report(), Cells(), Case(*goes)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            cells.one(report, "linux", "linux raw →", "raw, we connect", "path cut", case, case.heal)
            cells.table()
        return printed.getvalue(), report, cells

    def test_a_second_try_is_in_the_line_and_in_the_table(self):
        printed, report, _ = self.told((False, "lost it"), (True, "fine"))
        self.assertIn("ok    linux      raw, we connect: path cut: ", printed)
        self.assertIn("at the second try: fine; the first: lost it", printed)
        self.assertRegex(printed, r"path cut +again")
        self.assertEqual(report.counts, {"passed": 1, "failed": 0, "missed": 0, "skipped": 0})

    def test_two_failures_fail_the_run(self):
        printed, report, _ = self.told((False, "lost it"), (False, "again"))
        self.assertIn("FAIL  linux      raw, we connect: path cut: ", printed)
        self.assertRegex(printed, r"path cut +FAIL")
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(report.finish(), 1)

    def test_what_is_skipped_says_why(self):
        printed, report, _ = self.told(Skip("no guest here"))
        self.assertIn("SKIP  linux      raw, we connect: path cut: no guest here", printed)
        self.assertRegex(printed, r"path cut +skip")
        self.assertEqual(report.counts["skipped"], 1)


if __name__ == "__main__":
    unittest.main()
