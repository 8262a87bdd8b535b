"""Print the report of the raw numbers in results/; with --save write it.

python -m benchmarks report                            print what results/ has
python -m benchmarks report --anew --save benchmarks   measure, write results and report
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import common
from _harness import parser

# Scripts in the order of the report: titles, options of a run of all, and what the
# figure shows, if there is one.
SCRIPTS: dict[str, tuple[str, list[str], str]] = {
    "svm_passes": ("Passes over the data to relative gaps", [], ""),
    "svm": ("Seconds to relative gaps, beside other libraries", [], ""),
    "svm_path": ("A path of alphas", [], ""),
    "svm_memory": ("Memory and growth with the input", [], ""),
    "ranking": ("Rankings, and F1 of rare classes", [], ""),
    "defaults": ("What defaults are worth", ["--regret"], ""),
    "quality": (
        "Areas under ROC curves, of classes and of outliers; F1 of labels",
        [],
        "",
    ),
    "regression": ("Regression", [], ""),
    "multiclass": ("Joint multiclass hinge: seconds to relative gaps", [], ""),
    "l1_logistic": ("L1-regularized logistic regression", [], ""),
    "online": ("Online learning without tuning", [], "By passes and seconds"),
    "crf": ("Linear-chain conditional random fields", [], ""),
}


def measure(data_dir: str | None, results: Path) -> None:
    """Run all scripts, which takes hours; rows that they do not replace are kept."""
    folder = ["--data-dir", data_dir] if data_dir else []
    for name, (_, options, _) in SCRIPTS.items():
        print(f"== {name}", flush=True)
        command = [sys.executable, "-u", str(common.HERE / f"{name}.py"), *options]
        subprocess.run([*command, *folder, "--save", str(results)], check=True)


def main() -> None:
    p = parser(__doc__ or "")
    p.add_argument("--anew", action="store_true", help="run all scripts first")
    args = p.parse_args()
    if args.anew and not args.save:
        p.error("--anew takes --save, the folder of the report and its results")
    folder = args.save or common.HERE
    if args.anew:
        measure(args.data_dir, folder / "results")
    parts = [
        "# Report\n\nAssembled by `python -m benchmarks report`; what is measured and "
        "how to run it is in [README.md](README.md)."
    ]
    for name, (title, _, caption) in SCRIPTS.items():
        results = common.read_results(name, folder / "results")
        if results is None:
            continue
        measured = sorted(row["measured"] for row in results["rows"])
        span = " to ".join(dict.fromkeys([measured[0], measured[-1]]))
        parts.append(f"## {title}")
        parts.append(f"{common.describe(results['environment'])}. {span} UTC.")
        parts.append(importlib.import_module(name).render(results))
        if caption:
            parts.append(f"![{caption}](results/{name}.png)")
    text = "\n\n".join(parts) + "\n"
    if args.save:
        (folder / "REPORT.md").write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
