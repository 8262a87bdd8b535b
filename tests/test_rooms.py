"""Rooms, their picture, the walk through a fit, and what imports load."""

import importlib.util
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from _followed import followed
from sklearn.datasets import make_classification

import sklearn_subqn

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "sklearn_subqn"


def module_name(path):
    """Return the dotted name below the package; "" for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


FILES = {
    module_name(path): path
    for path in sorted(PACKAGE.rglob("*"))
    if path.suffix in (".py", ".pyx")
}


def test_the_picture_of_the_rooms_is_that_of_the_code():
    # The import rule itself is a contract in pyproject.toml, which lint-imports checks.
    spec = importlib.util.spec_from_file_location("rooms", ROOT / "docs" / "rooms.py")
    rooms = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rooms)
    message = "run `python docs/rooms.py`"
    assert rooms.PICTURE.read_text(encoding="utf-8") == rooms.picture(), message


def cython_imports(source):
    """Return the modules that a Cython file imports."""
    return set(
        re.findall(r"^\s*(?:from|c?import) ([\w.]+)", source, flags=re.MULTILINE)
    )


def test_kernels_import_nothing_of_python():
    shared = (PACKAGE / "_core" / "kernels").glob("*.pxd")
    # BLAS and LAPACK take plain arrays as well.
    libraries = {"cython", "scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"}
    allowed = libraries | {f".{path.stem}" for path in shared}
    for name, path in FILES.items():
        if path.suffix == ".pyx":
            others = cython_imports(path.read_text(encoding="utf-8"))
            assert others <= allowed, name


def test_what_kernels_share_is_left_out_of_wheels():
    folder = PACKAGE / "_core" / "kernels"
    build = (folder / "meson.build").read_text(encoding="utf-8")
    listed = build.partition("shared_sources = [")[2].partition("]")[0]
    shared = {
        path for path in folder.iterdir() if path.suffix in (".pxd", ".pxi", ".h")
    }
    assert set(re.findall(r"'([\w.]+)'", listed)) == {path.name for path in shared}


def test_bytecode_is_left_out_of_wheels():
    build = (PACKAGE.parent / "meson.build").read_text(encoding="utf-8")
    folders = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")}
    made = {(folder / "__pycache__").as_posix() for folder in folders}
    listed = build.partition("exclude_directories: [")[2].partition("]")[0]
    assert set(re.findall(r"'([\w/]+)'", listed)) == made


def test_the_walk_through_a_fit_is_in_the_order_of_its_calls():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walk = text.partition("## A fit, from X to coef_")[2].partition("\n## ")[0]
    listed = list(dict.fromkeys(re.findall(r"`([\w/]+\.py)`", walk)))
    X, y = make_classification(4000, 350, random_state=0)
    called, *_ = followed(sklearn_subqn.SubLBFGSLinearSVC(alpha=1e-3), X, y)
    assert [file for file in called if file in listed] == [
        file for file in listed if not file.startswith("tests/")
    ]


def test_the_path_of_a_small_fit_is_short():
    """What a reader has to follow, and each small fit to pay for."""
    X, y = make_classification(5000, 30, random_state=0)
    model = sklearn_subqn.SubLBFGSLinearSVC(alpha=1e-3)
    # The first fit finds libraries, and fills tables that are kept.
    model.fit(X, y)
    files, functions, deepest = followed(model, X, y)
    assert len(files) <= 44
    assert len(functions) <= 221
    assert deepest <= 17


def test_import_of_the_package_does_not_import_matplotlib():
    code = "import sys, sklearn_subqn; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_import_of_the_package_loads_all_but_what_needs_optional_packages():
    code = "import sys, sklearn_subqn; print(*sys.modules)"
    command = [sys.executable, "-P", "-c", code]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    loaded = set(result.stdout.split())
    left = {name for name in FILES if f"sklearn_subqn.{name}".rstrip(".") not in loaded}
    dask = {f"_blocks.{path.stem}" for path in (PACKAGE / "_blocks").glob("dask_*.py")}
    assert left == {*dask, "onnx"}


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


def test_names_of_classes_have_one_meaning():
    where = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in re.findall(r"^class (\w+)", path.read_text("utf-8"), re.MULTILINE):
            where.setdefault(name, []).append(path.relative_to(PACKAGE).as_posix())
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}
