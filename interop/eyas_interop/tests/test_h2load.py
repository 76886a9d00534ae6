"""Reading h2load's log."""

import unittest

from ..load.cases import compare
from ..load.h2load import Measured, read


class Reading(unittest.TestCase):
    def test_rate_and_quantiles_are_read_from_the_log(self) -> None:
        # One request per millisecond, which take 1 to 200 ms, and a failed one.
        lines = [f"{1_000_000 + at * 1000}\t200\t{(at + 1) * 1000}" for at in range(200)]
        measured = read("\n".join([*lines, "1300000\t-1\t5\n"]))
        self.assertAlmostEqual(measured.per_second, 1000.0)
        self.assertAlmostEqual(measured.mean, 100.5)
        quantiles = {"p50 ms": 100.0, "p90 ms": 180.0, "p99 ms": 198.0}
        self.assertEqual(measured.quantiles, quantiles)

    def test_figures_agree_within_the_tolerance(self) -> None:
        theirs = Measured(1000.0, 20.0, {"p50 ms": 20.0})
        self.assertTrue(compare(theirs, Measured(990.0, 20.9, {"p50 ms": 20.0}))[0])
        self.assertFalse(compare(theirs, Measured(990.0, 21.1, {"p50 ms": 20.0}))[0])


if __name__ == "__main__":
    unittest.main()
