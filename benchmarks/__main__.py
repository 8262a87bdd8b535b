"""Benchmarks by name.

python -m benchmarks                          what there is
python -m benchmarks papers                   figures and tables of the sources
python -m benchmarks papers yu-3.3 [--save DIR]
python -m benchmarks svm --data a9a           any script of this folder
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# With ``-m`` the first folder of modules is the current one, whose sources have no
# compiled kernels and would hide the package that is installed.
if not sys.flags.safe_path:
    del sys.path[0]
sys.path.insert(0, str(HERE))


def main(arguments: list[str]) -> None:
    """Run the benchmark that the first argument names with the others."""
    others = {"common", "datasets", "sequences"}
    scripts = sorted({p.stem for p in HERE.glob("[a-z]*.py")} - others)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__, "Scripts:", ", ".join(scripts), sep="\n")
        return
    name, *rest = arguments
    if name == "papers":
        import papers

        papers.main(rest)
        return
    if name not in scripts:
        raise SystemExit(
            f"no benchmark {name!r}; there are papers, {', '.join(scripts)}"
        )
    sys.argv = [f"python -m benchmarks {name}", *rest]
    runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
