"""Executes docs/guide/lab.ipynb, including the installation of the wheel.

`python notebook.py WHEELS DIRECTORY`, in an environment with the packages to execute notebooks, but without eyas.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parents[3] / "docs" / "guide" / "lab.ipynb"
#: The timeout of a cell, in seconds, with a margin for busy machines.
CELL_TIMEOUT = 120
#: The number of figures in the notebook.
FIGURES = 2


def main(wheels: Path, directory: Path) -> None:
    installed = {distribution.name for distribution in importlib.metadata.distributions()}
    assert "eyas" not in installed, "the notebook must install it"
    assert list(wheels.glob("eyas-*.whl")), f"no wheel to install in {wheels}"
    # The same layout as in the repository, with the wheel that `cargo xtask python` has built.
    (directory / "docs" / "guide").mkdir(parents=True)
    (directory / "target" / "python").mkdir(parents=True)
    (directory / "target" / "python" / "wheels").symlink_to(wheels.resolve())
    # A kernel of this interpreter, regardless of the kernels that the user has installed.
    kernel = directory / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    specification = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(specification))
    os.environ["JUPYTER_PATH"] = str(directory / "jupyter")
    os.environ["IPYTHONDIR"] = str(directory / "ipython")

    formats: Any = importlib.import_module("nbformat")
    clients: Any = importlib.import_module("nbclient")
    notebook = formats.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "the notebook has outputs"
    resources = {"metadata": {"path": str(directory / "docs" / "guide")}}
    clients.NotebookClient(notebook, timeout=CELL_TIMEOUT, resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    pages = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    assert sum("&lt;svg" in page for page in pages) == FIGURES, pages
    print(f"{NOTEBOOK.name}: {len(notebook.cells)} cells, {FIGURES} figures")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]).resolve())
