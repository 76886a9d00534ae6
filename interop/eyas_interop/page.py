"""The commands of `docs/guide/with-other-servers.md` and the configurations beside it, so that what they show is what runs."""

import pathlib
import re
import shlex

from .build import ROOT

PAGE = ROOT / "docs" / "guide" / "with-other-servers.md"
#: The configurations of the other servers.
CONFIGURATIONS = ROOT / "dist" / "servers"


class Page:
    """The page and its configurations, with their directories replaced by those of a run."""

    def __init__(self, directories: dict[str, pathlib.Path]) -> None:
        text = PAGE.read_text()
        blocks = re.findall(r"^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        blocks += [file.read_text() for file in sorted(CONFIGURATIONS.iterdir())]
        self.blocks = [self._with(directories, block) for block in blocks]

    @staticmethod
    def _with(directories: dict[str, pathlib.Path], block: str) -> str:
        first, rest = block.split("\n", 1)
        for name, directory in directories.items():
            rest = re.sub(rf"(?<=[\s]){re.escape(name)}(?=[/\s]|$)", str(directory), rest)
        return f"{first}\n{rest}"

    def configuration(self, title: str) -> str:
        """Returns the configuration whose first line is this comment."""
        return next(block for block in self.blocks if block.startswith(f"# {title}\n"))

    def commands(self, title: str) -> list[list[str]]:
        """Returns the arguments of the commands below this comment, up to the next one."""
        for block in self.blocks:
            lines = block.replace("\\\n", " ").splitlines()
            if f"# {title}" in lines:
                found = []
                for line in lines[lines.index(f"# {title}") + 1:]:
                    if line.startswith("#"):
                        break
                    found.append(shlex.split(line)[1:])
                return found
        raise KeyError(title)
