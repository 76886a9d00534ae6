"""Runs a case, and retries it once if it fails, which is reported."""

import dataclasses
from collections.abc import Callable

from ..report import Skip

# Whether the case passed, and details.
Result = tuple[bool, str]


@dataclasses.dataclass
class Outcome:
    """The outcome of a case."""

    passed: bool
    detail: str
    # Whether it was run twice.
    retried: bool = False

    @property
    def cell(self) -> str:
        """The cell in the table, which shows a retry as well."""
        return ("retry" if self.retried else "ok") if self.passed else "FAIL"


def with_retry(case: Callable[[], Result], heal: Callable[[], None]) -> Outcome:
    """Runs a case, and restores the network after each attempt.

    A busy machine can upset the timers of real kernels, so a failure is retried once; the outcome says so.
    """
    passed, detail = _once(case, heal)
    if passed:
        return Outcome(passed, detail)
    first = detail
    passed, detail = _once(case, heal)
    return Outcome(passed, f"second attempt: {detail}; first attempt: {first}", retried=True)


def _once(case: Callable[[], Result], heal: Callable[[], None]) -> Result:
    try:
        return case()
    except Skip:
        raise
    except Exception as error:  # one broken case must not hide the others
        return False, f"{type(error).__name__}: {error}"
    finally:
        heal()
