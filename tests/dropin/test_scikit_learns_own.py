"""scikit-learn's own tests, run with the drop-ins in place of the originals.

Of its test modules those functions that mention one of the originals are run in a
process of its own, from a copy in which our estimators are imported after the
originals. Every failure is listed below with its reason; one that is not listed fails
here, and so does a listed one that passes.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from pathlib import Path

import pytest
import sklearn

OURS = {
    "svm": ("LinearSVC", "LinearSVR"),
    "linear_model": (
        "GammaRegressor",
        "HuberRegressor",
        "LogisticRegression",
        "LogisticRegressionCV",
        "PoissonRegressor",
        "QuantileRegressor",
        "TweedieRegressor",
    ),
}
NAMES = {name: module for module, names in OURS.items() for name in names}

SOLVER = "Solvers by name have no effect: "
WORDS = "The message has other words: "
DEPRECATED = "What is deprecated there stays as it is here, without a warning: "

# By module and function; of parametrized ones some or all cases fail.
FAILURES = {
    "sklearn.svm.tests.test_svm": {
        "test_linearsvc_parameters": "All combinations of loss, penalty and dual work.",
        "test_dense_liblinear_intercept_handling": (
            "The intercept is not penalized, so that intercept_scaling has no effect."
        ),
        "test_linear_svm_convergence_warnings": (
            "Two iterations prove the optimum; there is nothing to warn of."
        ),
    },
    "sklearn.linear_model.tests.test_quantile": {
        "test_error_interior_point_future": SOLVER + "none is refused.",
    },
    "sklearn.linear_model.tests.test_huber": {
        "test_huber_max_iter": (
            "max_iter is for each scale that is tried, n_iter_ their total."
        ),
        "test_huber_warm_start": (
            "A fit from the optimum proves it again, which counts as one iteration."
        ),
    },
    "sklearn.linear_model._glm.tests.test_glm": {
        "test_glm_wrong_y_range": WORDS + "of targets out of range.",
        "test_warm_start": "Calls _get_loss, which is private.",
        "test_linalg_warning_with_newton_solver": (
            SOLVER + "no factorization of a singular matrix that could fail."
        ),
    },
    "sklearn.linear_model.tests.test_logistic": {
        "test_check_solver_option": SOLVER + "none is refused with a penalty.",
        "test_liblinear_dual_random_state": SOLVER + "nothing is random.",
        "test_liblinear_with_large_values": SOLVER + "large values can be fitted.",
        "test_liblinear_multiclass_raises": SOLVER + "there is no limit of classes.",
        "test_newton_cholesky_fallback_to_lbfgs": SOLVER + "there is no fallback.",
        "test_c_inf_no_warning": SOLVER + "a warning says so of explicit ones.",
        "test_dtype_match": SOLVER + "float32 gives float32 for all.",
        "test_large_sparse_matrix": SOLVER + "64-bit indices work for all.",
        "test_max_iter": WORDS + "it names the gap, and the solver of ours.",
        "test_zero_max_iter": (
            SOLVER + "before the first iteration the intercept is the best one."
        ),
        "test_logistic_cv_multinomial_score": (
            "Compares with a private function of scikit-learn at its default "
            "tolerance, whose score is 3e-4 from that of the optimum, ours 7e-8."
        ),
        "test_logreg_predict_proba_multinomial": (
            "Calls _predict_proba_lr, which is private, after what it is about."
        ),
        "test_get_default_scorer": "Calls _get_scorer, which is private.",
        "test_l1_ratio_non_elasticnet": WORDS + "of parameters without effect.",
        "test_penalty_none": WORDS + "of parameters without effect.",
        "test_lr_penalty_l1ratio_incompatible": (
            "penalty='l1' with the default l1_ratio is L1, as it was before "
            "scikit-learn 1.8; penalty='l2' warns in other words."
        ),
        "test_penalty_deprecated": DEPRECATED + "penalty.",
        "test_l1_ratio_None_deprecated": DEPRECATED + "l1_ratio=None.",
        "test_logisticregression_warns_with_n_jobs": (
            DEPRECATED + "n_jobs, which counts threads here."
        ),
        "test_logisticregressioncv_warns_with_use_legacy_attributes": (
            DEPRECATED + "the default of use_legacy_attributes."
        ),
        "test_lr_scoring_warns": DEPRECATED + "the default of scoring.",
        "test_lr_cv_scores_differ_when_sample_weight_is_requested": (
            "score takes sample_weight whether or not a scorer asks for it."
        ),
        "test_passing_params_without_enabling_metadata_routing": (
            "fit names groups, and refuses others with a TypeError, as score does."
        ),
        "test_logistic_regression_callback_support": (
            "Iterations are subtasks of the relative gaps that they reach, for "
            "progress bars: more hooks are called."
        ),
        "test_logistic_regression_callback_fitted_estimator": (
            "The first task is the starting point, whose coefficients are zero."
        ),
        "test_logistic_regression_callback_support_warning": (
            SOLVER + "all have callbacks."
        ),
    },
}


def mentions(node):
    """Whether code mentions one of the originals."""
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    found |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    return bool(found & set(NAMES))


def with_ours(source):
    """Return the source of a test module with our estimators, and their tests only."""
    tree = ast.parse(source)
    body = []
    for node in tree.body:
        is_test = isinstance(node, ast.FunctionDef) and node.name.startswith("test")
        if is_test and not mentions(node):
            continue
        body.append(node)
        if not isinstance(node, ast.ImportFrom):
            continue
        for name in [alias.name for alias in node.names]:
            if f"{node.module}.{name}" in (f"sklearn.{module}" for module in OURS):
                lines = [
                    f"import types, sklearn_subqn.{name} as ours",
                    f"{name} = types.SimpleNamespace(**vars({name}))",
                    *(f"{name}.{own} = ours.{own}" for own in OURS[name]),
                ]
                body += ast.parse("\n".join(lines)).body
            elif node.module == f"sklearn.{NAMES.get(name)}":
                line = f"from sklearn_subqn.{NAMES[name]} import {name}"
                body += ast.parse(line).body
    tree.body = body
    return ast.unparse(ast.fix_missing_locations(tree))


@pytest.mark.slow
@pytest.mark.skipif(
    not sklearn.__version__.startswith("1.9."),
    reason="failures are listed for the tests of scikit-learn 1.9",
)
@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_known(name, tmp_path):
    path = Path(find_spec(name).origin)
    (tmp_path / path.name).write_text(with_ours(path.read_text()))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    options = ["-p", "sklearn.conftest", "-p", "no:cacheprovider", "-c", "pytest.ini"]
    command = [sys.executable, "-m", "pytest", "-q", *options, "--junitxml=out.xml"]
    run = subprocess.run(
        [*command, path.name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (tmp_path / "out.xml").exists(), run.stdout + run.stderr
    cases = ET.parse(tmp_path / "out.xml").getroot().iter("testcase")
    bad = {
        case.attrib["name"].partition("[")[0]
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    }
    assert bad == set(FAILURES[name]), run.stdout[-20_000:]


def test_tests_that_run_are_of_ours():
    source = with_ours(Path(find_spec("sklearn.svm.tests.test_svm").origin).read_text())
    assert "svm.LinearSVC = ours.LinearSVC" in source
    assert "def test_linearsvc(" in source
    assert "def test_svc(" not in source
