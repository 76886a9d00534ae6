"""What can go wrong in the lab."""

from __future__ import annotations

from .._errors import Error


class LabError(Error):
    """An experiment cannot be run, or its files cannot be written. What was finished is kept."""

    kind = "lab"


class PlanError(LabError, ValueError):
    """The plan cannot be used; the message says where in it."""

    kind = "plan"


class OtherCodeError(LabError):
    """A worker has another build of eyas than this program: install the same wheel in both places."""

    kind = "other-code"


class TaskError(LabError):
    """A task failed again and again, or the executor is broken; `__cause__` is what it raised."""

    kind = "task"
