"""Examples in docstrings and documents run, and links of documents lead somewhere."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import sklearn_subqn

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    path.relative_to(ROOT).as_posix()
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    if not {"_build", "generated", "gallery"} & set(path.parts)
]
GALLERY = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
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
    if name.startswith("sklearn_subqn._blocks.dask_collections"):
        pytest.importorskip("distributed")
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


def test_sources_of_kernels_are_left_out_of_wheels():
    folder = ROOT / "sklearn_subqn" / "_core" / "kernels"
    build = (folder / "meson.build").read_text(encoding="utf-8")
    listed = set(re.findall(r"(?m)^  '(\w+(?:\.px[di])?)',$", build))
    shared = {path.name for path in folder.glob("*.px?")}
    assert {path.stem for path in folder.glob("*.pyx")} | shared <= listed


def public_names():
    """Return all public names, with their modules, the package first."""
    found = {}
    modules = "svm", "linear_model", "crf", "ranking", "losses", "metrics", "progress"
    for module in ("", *(f".{module}" for module in modules)):
        name = f"sklearn_subqn{module}"
        members = vars(importlib.import_module(name))
        for each in members["__all__"]:
            # No modules, and no scorers, which are objects.
            if isinstance(members[each], (type, types.FunctionType)):
                found.setdefault(members[each], f"{name}.{each}")
    return found


def test_every_public_name_is_in_the_api():
    text = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")
    listed = {f"sklearn_subqn.{name}" for name in re.findall(r"(?m)^   (\w.*)$", text)}
    assert set(public_names().values()) - listed == set()


def test_html_of_estimators_leads_to_their_pages():
    site = "https://sklearn-subqn.github.io/sklearn-subqn/api/generated/"
    for kind, name in public_names().items():
        if hasattr(kind, "get_params"):
            # Without __init__, since some have required parameters.
            assert kind.__new__(kind)._get_doc_link() == f"{site}{name}.html"


def test_html_of_other_classes_leads_nowhere():
    class Own(sklearn_subqn.SubLBFGSLinearSVC):
        pass

    assert Own()._get_doc_link() == ""


@pytest.mark.parametrize("path", (ROOT / "docs" / "guide").glob("*.md"), ids=str)
def test_pages_of_the_guide_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 150


#: Phrases over which readers stumbled.
STRANGE = re.compile(
    r"\b(tells?|told|trips? over|the like (of|for)|as it were|from whose|six nouns"
    r"|narrowing kinks|near rows|for those who know it by|lacks of|behind the door"
    r"|(is|are) charged|that there (is|are) not|will do(?! \w)|in vain"
    r"|(is|are|at (most|least)|about|after) so many(?! that)|nothing beside|be that an?"
    r"|(is|are) rounding(?! errors)|what there is|for the .*sake"
    r"|less (labels|rows|columns)|but for|dearer|likeness)\b"
    r"|\"\"\"(Return that (of|by|with)|That of|Do so)\b",
    flags=re.IGNORECASE,
)


def test_english_is_plain():
    found = []
    for path in [ROOT / name for name in DOCUMENTS]:
        lines = path.read_text(encoding="utf-8").splitlines()
        found += [f"{path}: {line}" for line in lines if STRANGE.search(line)]
    # Docstrings, comments and messages.
    folders = [ROOT / "sklearn_subqn", ROOT / "examples"]
    for path in [path for folder in folders for path in folder.rglob("*.p*")]:
        if path.suffix in (".py", ".pyx", ".pxd", ".pxi"):
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                if match := STRANGE.search(line):
                    found.append(f"{path}:{number}: {match.group()}")
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_gallery(path):
    environment = os.environ | {"MPLBACKEND": "Agg"}
    subprocess.run([sys.executable, "-W", "error", path], check=True, env=environment)


def test_checks_are_drawn(tmp_path):
    command = [sys.executable, ROOT / "examples" / "pictures.py", tmp_path]
    environment = os.environ | {"MPLBACKEND": "Agg"}
    subprocess.run(command, check=True, env=environment)
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in (ROOT / "docs" / "images").glob("*.png")}
