"""Assemble REPORT.md from the raw numbers in results/.

python benchmarks/report.py
"""

from __future__ import annotations

import argparse

import bundle
import common
import crf
import defaults
import l1_logistic
import leukemia
import multiclass
import multilabel
import online
import online_quadratics
import online_res
import quality
import random_subgradients
import ranking
import regression
import svm_memory
import svm_passes
import svm_path
import svm_peers
import svm_wide

TITLES = {
    svm_passes: "Passes over the data to relative gaps",
    svm_peers: "Seconds to relative gaps, beside other libraries",
    svm_path: "A path of alphas",
    svm_wide: "More features than rows",
    svm_memory: "Memory and growth with the input",
    ranking: "Rankings, and F1 of rare classes",
    defaults: "What defaults are worth",
    quality: "Areas under ROC curves, of classes and of outliers",
    bundle: "Bundle methods",
    regression: "Regression",
    multiclass: "Joint multiclass hinge: seconds of one thread to relative gaps",
    multilabel: "Multilabel hinge: seconds of one thread to a proven gap of 1e-2",
    l1_logistic: "L1-regularized logistic regression",
    random_subgradients: "Random subgradients in OWL-QN (Yu 2009, section 4.1.4)",
    leukemia: "L-BFGS on a nonsmooth objective (Yu 2009, figure 3.2 left)",
    online: "Online learning without tuning",
    crf: "Linear-chain conditional random fields",
    online_quadratics: "Online methods on stochastic quadratics (Yu 2009, section 5.6)",
    online_res: "Regularized stochastic BFGS (Mokhtari and Ribeiro 2014, section 4)",
}
FIGURES = {
    random_subgradients: "Excess of J by iterations",
    bundle: "Gap of BMRM against iterations",
    leukemia: "Objective against iterations",
    online: "Objective and test error by passes and seconds",
    crf: "Objective and F by passes",
    online_quadratics: "Data points needed against batch size, and objectives",
    online_res: "Objectives and histogram",
}


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    parts = [
        "# Report\n\nAssembled by `python benchmarks/report.py`; what is measured and "
        "how to run it is in [README.md](README.md)."
    ]
    for script, title in TITLES.items():
        results = common.read_results(script.NAME)
        if results is None:
            continue
        measured = sorted(row["measured"] for row in results["rows"])
        span = " to ".join(dict.fromkeys([measured[0], measured[-1]]))
        parts.append(f"## {title}")
        parts.append(f"{common.describe(results['environment'])}. {span} UTC.")
        parts.append(script.render(results))
        if script in FIGURES:
            parts.append(f"![{FIGURES[script]}](results/{script.NAME}.png)")
    path = common.HERE / "REPORT.md"
    path.write_text("\n\n".join(parts) + "\n")
    print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
