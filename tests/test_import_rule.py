"""The import rule and the file list of docs/architecture.md."""

import ast
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path

import pytest
from sklearn.datasets import make_classification

import sklearn_subqn

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "sklearn_subqn"


def related_files():
    """Return the names of the files of related problems."""
    folder = PACKAGE / "_core" / "solvers" / "related"
    return [f"_core.solvers.related.{path.stem}" for path in folder.glob("[a-z]*.py")]


# Of chains, what is beside the core: the others are beside estimators.
CHAIN_METHODS = [
    "_chains",
    "_chains.ascent",
    "_chains.auto",
    "_chains.batches",
    "_chains.design",
    "_chains.entropy_sweeps",
    "_chains.hinge",
    "_chains.inference",
    "_chains.labeling_sweeps",
    "_chains.log_loss",
    "_chains.loss",
    "_chains.pairs",
    "_chains.passes",
    "_chains.solvers",
    "_chains.stream",
    "_chains.sweeps",
    "_chains.sweeps_base",
]

# Lowest first. A file imports from lower levels and from its own; the last pattern that
# matches decides.
LEVELS = [
    ["_core.kernels", "_core.kernels.*", "_core.lazy", "_core.names"],
    ["_core.memory", "_core.rounding"],
    ["_core.losses._base"],
    ["_core.losses._*"],
    ["_core.regularizers._regularizer"],
    ["_core.regularizers._*"],
    [
        "_core.column_maps",
        "_core.losses",
        "_core.regularizers",
        "_core.row_views",
        "_core.sampling",
    ],
    ["_core.linear_map"],
    ["_core.second_moments"],
    ["_core.design"],
    ["_core.condensed", "_core.kinks", "_core.parts"],
    ["_core.row_numbers"],
    ["_core.row_sweeps"],
    ["_core.sweeps_of_parts"],
    ["_core.risk_duals", "_core.risk_hessian"],
    ["_core.risk"],
    ["_core.risk_of_parts"],
    ["_core.cuts"],
    ["_core.bounds"],
    ["_core.hessian"],
    ["_core.evaluation"],
    ["_core.objective"],
    ["_core.*"],
    ["_core.online.method"],
    ["_core.online.*"],
    ["_core.online"],
    ["_core.solvers.run"],
    ["_core.solvers.related", *related_files()],
    ["_core.solvers.*"],
    ["_core.solvers", "_core"],
    CHAIN_METHODS,
    ["_callers", "_doc_link", "_foreign_names", "_state", "_text", "exceptions"],
    ["_validation.*"],
    ["_callbacks", "_plotting", "_process", "_validation"],
    ["_tolerance"],
    ["_solution"],
    ["_warnings"],
    [
        "_by_feature",
        "_predictions",
        "_regressor",
        "_report",
        "_roles",
        "_scoring",
        "_search_report",
        "_shift",
        "_solve",
        "_sparse_coefficients",
        "_strength",
        "_tables",
    ],
    ["_problems.*"],
    ["_problems"],
    ["_run_there"],
    ["_blocks"],
    ["_row_blocks"],
    ["_dask_workers"],
    ["_dask_blocks"],
    ["_dask", "_dask_readers"],
    ["_block_methods", "_f_beta", "_nu", "_quantiles", "_queries"],
    ["_estimator"],
    ["_linear_estimator"],
    [
        "_catalogue",
        "_classifier",
        "_export",
        "_stream_classes",
        "_stream_model",
        "_stream_weights",
        "_stream",
    ],
    ["_epochs"],
    ["_offset_classifier"],
    ["_cv", "_warm_paths"],
    ["_chains.*", "_structures.*"],
    ["*", "_dropin", "_dropin.*", "_structures"],
    [""],
    ["onnx"],
]

KERNELS = ["_core.kernels", "_core.kernels.*"]

# Types and numbers that most files of the core use.
PLAIN = [
    "_core.losses._base",
    "_core.losses._curvature",
    "_core.memory",
    "_core.rounding",
]

# What files may import of the package beyond the order of levels; the first pattern
# that matches decides.
ALLOWED = [
    ("_core.kernels.*", []),
    ("_core.lazy", []),
    ("_core.names", []),
    ("_core.memory", []),
    ("_core.rounding", []),
    ("_core.losses._base", ["_core.rounding"]),
    (
        "_core.losses._curvature",
        ["_core.losses._base", "_core.memory", "_core.rounding"],
    ),
    (
        "_core.losses._*",
        [
            "_core.lazy",
            "_core.losses._*",
            "_core.memory",
            "_core.names",
            "_core.rounding",
            *KERNELS,
        ],
    ),
    ("_core.losses", ["_core.losses._*"]),
    (
        "_core.regularizers._*",
        [*PLAIN, "_core.regularizers._*", *KERNELS],
    ),
    ("_core.regularizers", ["_core.regularizers._*"]),
    (
        "_core.column_maps",
        ["_core.losses._base", *KERNELS],
    ),
    (
        "_core.row_views",
        [*PLAIN, *KERNELS],
    ),
    (
        "_core.linear_map",
        [*PLAIN, "_core.column_maps", "_core.lazy", "_core.row_views", *KERNELS],
    ),
    (
        "_core.second_moments",
        [*PLAIN, "_core.lazy", "_core.linear_map", "_core.row_views", *KERNELS],
    ),
    (
        "_core.design",
        [*PLAIN, "_core.row_views", "_core.second_moments"],
    ),
    (
        "_core.kinks",
        [*PLAIN],
    ),
    (
        "_core.parts",
        [*PLAIN, "_core.design", "_core.linear_map"],
    ),
    (
        "_core.condensed",
        [*PLAIN],
    ),
    (
        "_core.row_numbers",
        [*PLAIN, "_core.parts", "_core.sampling"],
    ),
    (
        "_core.risk_duals",
        [
            *PLAIN,
            "_core.condensed",
            "_core.design",
            "_core.lazy",
            "_core.losses._loss",
            "_core.losses._oracle",
            "_core.parts",
            "_core.row_numbers",
        ],
    ),
    (
        "_core.risk_hessian",
        [*PLAIN, "_core.design", "_core.lazy", "_core.parts"],
    ),
    (
        "_core.risk",
        [
            *PLAIN,
            "_core.design",
            "_core.kinks",
            "_core.lazy",
            "_core.losses._loss",
            "_core.parts",
            "_core.risk_duals",
            "_core.risk_hessian",
            "_core.row_sweeps",
            "_core.sweeps_of_parts",
        ],
    ),
    (
        "_core.risk_of_parts",
        [
            *PLAIN,
            "_core.condensed",
            "_core.kinks",
            "_core.lazy",
            "_core.losses._loss",
            "_core.parts",
            "_core.risk",
            "_core.risk_hessian",
            "_core.row_sweeps",
            "_core.sweeps_of_parts",
        ],
    ),
    (
        "_core.cuts",
        [*PLAIN, "_core.risk"],
    ),
    (
        "_core.bounds",
        [
            *PLAIN,
            "_core.cuts",
            "_core.design",
            "_core.losses._loss",
            "_core.regularizers",
            "_core.risk",
        ],
    ),
    (
        "_core.hessian",
        [*PLAIN, "_core.bounds"],
    ),
    (
        "_core.evaluation",
        [
            *PLAIN,
            "_core.bounds",
            "_core.cuts",
            "_core.hessian",
            "_core.lazy",
            "_core.risk",
            "_core.sampling",
        ],
    ),
    (
        "_core.objective",
        [
            *PLAIN,
            "_core.bounds",
            "_core.cuts",
            "_core.evaluation",
            "_core.hessian",
            "_core.lazy",
            "_core.losses._loss",
            "_core.regularizers",
            "_core.risk",
        ],
    ),
    (
        "_core.sampling",
        [*PLAIN],
    ),
]

# Of these only files that match a pattern may import.
RESERVED = {
    "dask": ["_dask", "_dask_blocks"],
    "distributed": ["_dask", "_dask_blocks", "_dask_workers"],
    "sklearn": [
        "_base_ranker",
        "_catalogue",
        "_chains.chunks",
        "_chains.estimator",
        "_chains.prediction",
        "_chains.reading",
        "_dask",
        "_estimator",
        "_linear_estimator",
        "_predictions",
        "_block_methods",
        "_regressor",
        "_export",
        "_classifier",
        "_nu",
        "_offset_classifier",
        "_epochs",
        "_stream",
        "_stream_classes",
        "_quantiles",
        "_preferences",
        "_queries",
        "_cv",
        "_warm_paths",
        "_solve",
        "_warnings",
        "_sparse_coefficients",
        "_validation.*",
        "_callbacks",
        "_plotting",
        "_dropin.*",
        "[a-z]*",
    ],
    "scipy.sparse": [
        "_blocks",
        "_dask_blocks",
        "_row_blocks",
        "_chains.learning",
        "_chains.pairs",
        "_chains.reading",
        "_chains.tables",
        "_chains.tokens",
        "_core.columns",
        "_core.design",
        "_core.linear_map",
        "_core.row_views",
        "_core.second_moments",
        "_core.row_sweeps",
        "_shift",
        "_structures.*",
        "_sparse_coefficients",
        "_strength",
        "_tables",
        "_validation.*",
        "_epochs",
        "_stream",
        "_problems.*",
        "_preferences",
        "_queries",
        "_estimator",
        "_linear_estimator",
        "_predictions",
        "_block_methods",
        "_regressor",
        "_export",
        "_dropin.*",
        "[a-z]*",
    ],
    "matplotlib": ["_plotting"],
    "_core.losses": [
        "_core.online.losses_with_curvature",
        "_base_ranker",
        "_catalogue",
        "_classification_losses",
        "_dropin.*",
        "_stream_classes",
        "_chains.model",
        "_estimator",
        "_linear_estimator",
        "_predictions",
        "_block_methods",
        "_regressor",
        "_f_beta",
        "_nu",
        "_own_function",
        "_problems.*",
        "_quantiles",
        "_queries",
        "_regression_losses",
        "[a-z]*",
    ],
    "_core.design": [
        "_core.columns",
        "_core.bounds",
        "_core.evaluation",
        "_core.objective",
        "_core.generic",
        "_core.risk_by_oracle",
        "_core.parts",
        "_core.read_design",
        "_core.risk",
        "_core.risk_duals",
        "_core.risk_hessian",
        "_core.row_sweeps",
        "_core.sweeps_of_parts",
        "_core.threshold_design",
        "_f_beta",
        "_nu",
        "_problems.*",
        "_structures.structure_oracle",
    ],
    "_core.kernels": ["_chains.*", "_core.*", "_core.*.*"],
    "_core.kernels.*": ["_chains.*", "_core.*", "_core.*.*"],
}


def matches(name, patterns):
    """Whether a pattern matches; ``*`` stays within one level of packages."""
    return any(
        name.count(".") == pattern.count(".") and fnmatchcase(name, pattern)
        for pattern in patterns
    )


def module_name(path):
    """Return the dotted name below the package; "" for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


FILES = {
    module_name(path): path
    for path in sorted(PACKAGE.rglob("*"))
    if path.suffix in (".py", ".pyx")
}


# Files of losses, but for the types that all may import.
TYPES = [f"_core.losses.{name}" for name in ("_base", "_curvature", "_loss", "_oracle")]
for loss in FILES:
    if matches(loss, ["_core.losses._*"]) and loss not in TYPES:
        RESERVED[loss] = ["_core.losses", "_core.losses._*"]


def level(name):
    found = [i for i, patterns in enumerate(LEVELS) if matches(name, patterns)]
    exact = [i for i in found if name in LEVELS[i]]
    return (exact or found)[-1]


def imports(name):
    """Return the imported modules: our own by their name below the package."""
    path = FILES[name]
    if path.suffix == ".pyx":
        return set(), cython_imports(path.read_text(encoding="utf-8"))
    package = [PACKAGE.name, *name.split(".")] if name else [PACKAGE.name]
    if path.name != "__init__.py":
        package = package[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *filter(None, [node.module])])
            for alias in node.names:
                found.add(f"{origin}.{alias.name}")
    ours, others = set(), set()
    for full in found:
        head, _, rest = full.partition(".")
        if head != PACKAGE.name:
            others.add(full)
            continue
        while rest not in FILES:
            rest = rest.rpartition(".")[0]
        ours.add(rest)
    return ours, others


def cython_imports(source):
    """Return the modules that a Cython file imports."""
    return set(
        re.findall(r"^\s*(?:from|c?import) ([\w.]+)", source, flags=re.MULTILINE)
    )


def test_kernels_import_nothing_of_python():
    shared = (PACKAGE / "_core" / "kernels").glob("*.pxd")
    allowed = {"cython"} | {f".{path.stem}" for path in shared}
    for name, path in FILES.items():
        if path.suffix == ".pyx":
            _, others = imports(name)
            assert others <= allowed, name


def test_what_kernels_share_is_left_out_of_wheels():
    folder = PACKAGE / "_core" / "kernels"
    build = (folder / "meson.build").read_text(encoding="utf-8")
    listed = build.partition("shared_sources = [")[2].partition("]")[0]
    files = {path.name for path in folder.glob("*.px[di]")}
    assert set(re.findall(r"'(\w+\.px[di])'", listed)) == files


def test_bytecode_is_left_out_of_wheels():
    build = (PACKAGE.parent / "meson.build").read_text(encoding="utf-8")
    folders = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")}
    made = {(folder / "__pycache__").as_posix() for folder in folders}
    listed = build.partition("exclude_directories: [")[2].partition("]")[0]
    assert set(re.findall(r"'([\w/]+)'", listed)) == made


def test_the_package_has_files():
    assert len(FILES) > 20


def test_parsing_of_imports():
    assert imports("_core.solvers.subbfgs")[0] >= {
        "_core.direction",
        "_core.losses._base",
        "_core.solvers.run",
    }
    assert "scipy.sparse" in imports("_core.design")[1]
    assert "_core.losses" in imports("svm")[0]


@pytest.mark.parametrize("name", FILES)
def test_imports_go_downward(name):
    ours, _ = imports(name)
    upward = sorted(other for other in ours if level(other) > level(name))
    assert not upward, f"{name} imports from higher levels: {upward}"
    for pattern, allowed in ALLOWED:
        if matches(name, [pattern]):
            forbidden = sorted(o for o in ours if not matches(o, allowed))
            assert not forbidden, f"{name} may not import {forbidden}"
            break


@pytest.mark.parametrize("name", FILES)
def test_reserved_imports(name):
    ours, others = imports(name)
    for reserved, importers in RESERVED.items():
        if reserved.startswith("_core"):
            used = any(matches(other, [reserved]) for other in ours)
        else:
            used = any(f"{other}.".startswith(f"{reserved}.") for other in others)
        assert not used or matches(name, importers), f"{name} imports {reserved}"


def test_imports_have_no_cycle():
    TopologicalSorter({name: imports(name)[0] - {name} for name in FILES}).prepare()


def test_every_file_has_one_line_in_the_architecture():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([\w/]+\.pyx?)` \|", text, flags=re.MULTILINE)
    files = [path.relative_to(PACKAGE).as_posix() for path in FILES.values()]
    assert sorted(listed) == sorted(files)


def test_the_rule_in_the_architecture_names_all_files_of_the_core_and_beside_it():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rule = text.partition("## Import rule")[2].partition("\nSolvers import")[0]
    named = set(re.findall(r"\w+", rule))
    names = {name for level in LEVELS for name in level if "*" not in name}
    single = {name.removeprefix("_core.") for name in names if name} - {"_core"}
    assert {name for name in single if "." not in name} - named == set()


def test_the_walk_through_a_fit_is_in_the_order_of_its_calls():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walk = text.partition("## A fit, from X to coef_")[2].partition("\n## ")[0]
    listed = list(dict.fromkeys(re.findall(r"`([\w/]+\.py)`", walk)))
    X, y = make_classification(5000, 30, random_state=0)
    model = sklearn_subqn.SubLBFGSLinearSVC(alpha=1e-3)
    called: dict[str, None] = {}
    installed = Path(sklearn_subqn.__file__).parent

    def follow(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(installed):
            called.setdefault(path.relative_to(installed).as_posix())

    sys.setprofile(follow)
    try:
        model.fit(X, y)
    finally:
        sys.setprofile(None)
    assert [file for file in called if file in listed] == [
        file for file in listed if not file.startswith("tests/")
    ]


def test_import_of_the_package_does_not_import_matplotlib():
    code = "import sys, sklearn_subqn; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_import_of_the_package_loads_all_but_what_needs_optional_packages():
    code = "import sys, sklearn_subqn; print(*sys.modules)"
    command = [sys.executable, "-P", "-c", code]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    loaded = set(result.stdout.split())
    left = {name for name in FILES if f"sklearn_subqn.{name}".rstrip(".") not in loaded}
    assert left == {"_dask", "_dask_blocks", "_dask_readers", "_dask_workers", "onnx"}


def test_sources_without_compiled_files_say_what_to_do(tmp_path):
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "sklearn_subqn", ignore=ignored)
    # An editable installation would be found before the folder.
    code = (
        "import sys; "
        "sys.meta_path = [f for f in sys.meta_path if 'editable' not in f.__module__]; "
        "import sklearn_subqn"
    )
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "ImportError: The compiled part of sklearn_subqn is missing" in result.stderr


def test_version_is_that_of_the_build():
    assert sklearn_subqn.__version__ == metadata.version("sklearn-subqn")
