"""Examples in docstrings and documents run, and links of documents lead somewhere."""

import doctest
import importlib
import importlib.util
import os
import pkgutil
import re
import subprocess
import sys
import tokenize
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
    if name.startswith("sklearn_subqn._blocks.dask_"):
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


@pytest.mark.parametrize("name", [d for d in DOCUMENTS if d.startswith("docs/")])
def test_files_that_pages_name_exist(name):
    """Paths of source files are below the root, the package, or these folders."""
    text = (ROOT / name).read_text(encoding="utf-8")
    below = ("", "sklearn_subqn", "benchmarks", "docs")
    for path in re.findall(r"`([\w.-]+/[\w./-]+\.pyx?)`", text):
        assert any((ROOT / b / path).exists() for b in below), f"{name} names {path}"


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


@pytest.mark.parametrize("name", ["losses", "plans"])
def test_pages_of_tables_are_those_of_the_code(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.PAGE.read_text(encoding="utf-8")
    assert text == module.page(), f"run `python docs/{name}.py`"


def test_the_table_of_constants_is_that_of_the_code():
    """Each constant whose comment points to the table has a row with its value."""
    text = (ROOT / "docs" / "constants.md").read_text(encoding="utf-8")
    found = re.findall(
        r"^\| `(\w+)` \| `([\w/.]+)` \| ([^|]+) \| [^|]+ \|$", text, re.M
    )
    rows = [(module, name, value) for name, module, value in found]
    assert len(rows) == text.count("\n| `")
    package = ROOT / "sklearn_subqn"
    # The words may be on two lines of a comment.
    constant = re.compile(
        r"((?:^ *#.*\n)+) *(?:cdef \w+ )?(\w+)(?:: [^=\n]+)? = (.+)$", re.M
    )
    marked = [
        (path.relative_to(package).as_posix(), name, value)
        for path in (*package.rglob("*.py"), *package.rglob("*.pyx"))
        for comment, name, value in constant.findall(path.read_text(encoding="utf-8"))
        if "docs/constants.md" in comment
    ]
    assert sorted(rows) == sorted(marked)


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


#: Words that lean on the line above a comment.
DANGLING = re.compile(r"(Of|Those|That|Such|Than|These|The latter|The former)\b")
#: Numbers and shares that a comment speaks of without saying them.
UNSAID = re.compile(
    r"\b(the (first|second|third|last|other) numbers?"
    r"|(this|that|so) many|(this|that) share|such a (share|gap)"
    r"|(the|by) (second|third) one)\b",
    flags=re.IGNORECASE,
)
#: Strings of Cython files, which may have a sharp sign, and their comments.
CYTHON = re.compile(
    r"\"{3}.*?\"{3}|\"[^\"\n]*\"|'[^'\n]*'|(?P<comment>#[^\n]*)", flags=re.DOTALL
)


def comments_of(path):
    """Yield the line, whether it has no code, and the text of each comment."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                if token.type == tokenize.COMMENT:
                    alone = token.line.lstrip().startswith("#")
                    yield token.start[0], alone, token.string
        return
    for match in CYTHON.finditer(source):
        if match["comment"]:
            before = source[: match.start()]
            alone = not before[before.rfind("\n") + 1 :].strip()
            yield before.count("\n") + 1, alone, match["comment"]


def comment_blocks(path):
    """Yield the first line and the text of comments, whole over lines."""
    start = last = 0
    text = ""
    for line, alone, comment in comments_of(path):
        if text and not (alone and line == last + 1):
            yield start, text
            text = ""
        if not text:
            start = line
        # A comment behind code ends with its line.
        last = line if alone else -1
        text = f"{text} {comment.lstrip('#: ')}".strip()
    if text:
        yield start, text


def test_comments_are_collected_whole(tmp_path):
    lines = [
        '"""A # sharp sign."""',
        "x = 1  # One.",
        "# Two",
        "# lines.",
        "",
        "#: End.",
    ]
    for suffix in (".py", ".pyx"):
        path = tmp_path / f"module{suffix}"
        path.write_text("\n".join(lines))
        found = list(comment_blocks(path))
        assert found == [(2, "One."), (3, "Two lines."), (6, "End.")]


def test_comments_stand_by_themselves():
    blocks = [
        (f"{path.relative_to(ROOT)}:{line}: {text}", text)
        for path in sorted((ROOT / "sklearn_subqn").rglob("*.p*"))
        if path.suffix in (".py", ".pyx", ".pxd", ".pxi")
        for line, text in comment_blocks(path)
    ]
    dangling = [shown for shown, text in blocks if DANGLING.match(text)]
    assert len(dangling) <= 0.01 * len(blocks), dangling
    assert [shown for shown, text in blocks if UNSAID.search(text)] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_gallery(path):
    environment = os.environ | {"MPLBACKEND": "Agg"}
    subprocess.run([sys.executable, "-W", "error", path], check=True, env=environment)


@pytest.mark.slow
def test_checks_are_drawn(tmp_path):
    command = [sys.executable, ROOT / "examples" / "pictures.py", tmp_path]
    environment = os.environ | {"MPLBACKEND": "Agg"}
    subprocess.run(command, check=True, env=environment)
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in (ROOT / "docs" / "images").glob("*.png")}
