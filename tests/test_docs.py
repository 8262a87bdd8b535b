"""Examples in docstrings and documents run, and links of documents lead somewhere."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_subqn

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    path.relative_to(ROOT).as_posix()
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
]
# Links to files of this repository, as they are written for readers elsewhere.
OWN_ADDRESS = re.compile(
    r"^https://(github\.com|raw\.githubusercontent\.com)/sklearn-subqn/sklearn-subqn"
    r"/(blob/)?main/"
)
MODULES = [
    module.name
    for module in pkgutil.walk_packages(sklearn_subqn.__path__, "sklearn_subqn.")
]


@pytest.fixture(autouse=True)
def scratch_folder(tmp_path, monkeypatch):
    """Examples may write files, and draw without a screen."""
    monkeypatch.chdir(tmp_path)
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def run(test):
    runner = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    report = []
    runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    if name == "sklearn_subqn.onnx":
        pytest.importorskip("skl2onnx")
    module = importlib.import_module(name)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        run(test)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    # The fence that ends a block is no output of its last line.
    text = re.sub(r"^```.*$", "", text, flags=re.MULTILINE)
    run(doctest.DocTestParser().get_doctest(text, {}, name, name, 0))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)]+)\)", text):
        path = OWN_ADDRESS.sub("/", link).partition("#")[0]
        if path and "://" not in path:
            folder = ROOT if path.startswith("/") else (ROOT / name).parent
            assert (folder / path.lstrip("/")).exists(), f"{name} links to {link}"


def test_links_of_the_readme_work_on_other_sites():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_version_is_the_same_in_all_files():
    found = {
        name: re.search(pattern, (ROOT / name).read_text(encoding="utf-8")).group(1)
        for name, pattern in {
            "meson.build": r"version: '([^']+)'",
            "CITATION.cff": r"(?m)^version: (.+)$",
            "conda-recipe/recipe.yaml": r'version: "([^"]+)"',
        }.items()
    }
    release = sklearn_subqn.__version__.partition(".dev")[0]
    assert {version.partition(".dev")[0] for version in found.values()} == {release}


def test_pictures_are_drawn(tmp_path):
    command = [sys.executable, ROOT / "examples" / "pictures.py", tmp_path]
    environment = os.environ | {"MPLBACKEND": "Agg"}
    subprocess.run(command, check=True, env=environment)
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in (ROOT / "docs" / "images").iterdir()}
