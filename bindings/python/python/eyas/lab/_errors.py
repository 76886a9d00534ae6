"""The exceptions of the lab."""

from __future__ import annotations

from .._errors import Error


class LabError(Error):
    """An experiment cannot be run, or its files cannot be written. Finished runs are kept."""

    kind = "lab"


class PlanError(LabError, ValueError):
    """The plan is invalid; the message says where."""

    kind = "plan"


class OtherCodeError(LabError):
    """A worker has a different build of eyas than this program: install the same wheel in both places."""

    kind = "other-code"


class TaskError(LabError):
    """A task failed repeatedly, or the executor is broken; `__cause__` is the exception."""

    kind = "task"
