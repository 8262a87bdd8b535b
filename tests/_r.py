"""Run R on arrays and read its results, to compare this package with R's own models."""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

# Doubles go through binary files in both directions, hence no digit is lost.
FRAME = """
options(warn = 1)
for (library_ in c({libraries})) suppressPackageStartupMessages(
    if (!require(library_, character.only = TRUE, quietly = TRUE)) quit(status = 77))
{arrays}
results_ <- local({{
{code}
}})
for (name_ in names(results_)) {{
    value_ <- results_[[name_]]
    if (is.data.frame(value_)) value_ <- data.matrix(value_)
    shape_ <- if (is.null(dim(value_))) length(value_) else dim(value_)
    file_ <- file(name_, "wb")
    writeBin(as.double(c(length(shape_), shape_, as.vector(value_))), file_)
    close(file_)
}}
"""
MISSING = 77  # the status that FRAME leaves with where a library is missing


def run_r(
    code: str, libraries: Sequence[str] = (), **arrays: object
) -> dict[str, np.ndarray]:
    """Run ``code`` by Rscript and return the named list of numbers that it ends with.

    Each of ``arrays`` (numbers, of one or two dimensions) is a vector or a matrix of
    that name in R. The calling test is skipped where R or one of ``libraries`` is
    missing. Results are vectors or arrays; a data frame becomes a matrix.
    """
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed.")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        reads = []
        for name, array in arrays.items():
            values = np.asarray(array, dtype=float)
            values.ravel(order="F").tofile(place / f"{name}.in")
            read = f'readBin("{name}.in", "double", {values.size})'
            if values.ndim == 2:
                read = f"matrix({read}, {values.shape[0]}, {values.shape[1]})"
            reads.append(f"{name} <- {read}")
        script = FRAME.format(
            libraries=", ".join(f'"{library}"' for library in libraries),
            arrays="\n".join(reads),
            code=code,
        )
        (place / "script.R").write_text(script)
        run = subprocess.run(
            ["Rscript", "--vanilla", "script.R"],
            cwd=place,
            capture_output=True,
            text=True,
        )
        if run.returncode == MISSING:
            pytest.skip(f"R has not all of the libraries {', '.join(libraries)}.")
        assert run.returncode == 0, run.stderr
        results = {}
        for path in place.iterdir():
            if path.suffix == ".in" or path.name == "script.R":
                continue
            written = np.fromfile(path)
            n_axes = int(written[0])
            shape = written[1 : n_axes + 1].astype(int)
            results[path.name] = written[n_axes + 1 :].reshape(shape, order="F")
        return results
