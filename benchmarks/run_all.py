"""Run every benchmark anew and assemble REPORT.md; for an otherwise idle machine.

python benchmarks/run_all.py --data-dir DIR
"""

from __future__ import annotations

import subprocess
import sys

import common

SCRIPTS = [
    ["reference_optima.py"],
    ["svm_passes.py", "--fresh"],
    ["svm_peers.py", "--fresh", "--search"],
    ["svm_path.py", "--fresh"],
    ["svm_wide.py", "--fresh"],
    ["svm_memory.py", "--fresh"],
    ["ranking.py"],
    ["quality.py"],
    ["defaults.py", "--regret"],
    ["bundle.py", "--fresh"],
    ["l1_logistic.py", "--fresh"],
    ["random_subgradients.py"],
    ["multiclass.py"],
    ["multilabel.py"],
    ["leukemia.py"],
    ["online.py"],
    ["crf.py", "--fresh"],
]
# These generate what they need.
WITHOUT_DATA = [
    ["regression.py", "--fresh"],
    ["online_quadratics.py", "--fresh"],
    ["online_res.py"],
]
# These have data sets of their own.
OWN_DATA = (
    "crf.py",
    "defaults.py",
    "leukemia.py",
    "multiclass.py",
    "multilabel.py",
    "quality.py",
    "ranking.py",
)


def main() -> None:
    p = common.parser("Run every benchmark.", [])
    args = p.parse_args()
    folder = ["--data-dir", args.data_dir] if args.data_dir else []
    options = list(folder)
    if args.cache_dir:
        options += ["--cache-dir", args.cache_dir]
    if args.data:
        options += ["--data", *args.data]
    for script, *more in SCRIPTS:
        print(f"== {script}", flush=True)
        given = folder if script in OWN_DATA else options
        path = str(common.HERE / script)
        subprocess.run([sys.executable, "-u", path, *more, *given], check=True)
    for script, *more in WITHOUT_DATA:
        print(f"== {script}", flush=True)
        path = str(common.HERE / script)
        subprocess.run([sys.executable, "-u", path, *more], check=True)
    subprocess.run([sys.executable, str(common.HERE / "report.py")], check=True)


if __name__ == "__main__":
    main()
