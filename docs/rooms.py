"""Draw the rooms of the package from the code: ``python docs/rooms.py``.

Floors are the layers of the import contract in ``pyproject.toml``, boxes its rooms with
their numbers of files, the first sentence of their docstrings, and what they import.
The picture is ``docs/images/rooms.svg``.
"""

from __future__ import annotations

import ast
import tomllib
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sklearn_subqn"
PICTURE = ROOT / "docs" / "images" / "rooms.svg"

# Sizes in pixels.
WIDTH, BOX_HEIGHT, MARGIN = 1180, 76, 8

# The most boxes in a row.
MOST = 5


def floors() -> list[tuple[str, list[list[str]]]]:
    """Return the names of package and core, each with its layers, the highest first."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = contract["tool"]["importlinter"]["contracts"]
    return [
        (
            each["containers"][0],
            [[room.strip() for room in line.split("|")] for line in each["layers"]],
        )
        for each in layers
        if each["type"] == "layers"
    ]


def files_of(room: Path) -> list[Path]:
    """Return the sources of a room: of its folder, or the one file."""
    if room.is_dir():
        return sorted(p for p in room.rglob("*.py*") if p.suffix in (".py", ".pyx"))
    return [room.with_suffix(".py")]


def sentence(room: Path) -> str:
    """Return the first line of the docstring of a room."""
    file = room / "__init__.py" if room.is_dir() else room.with_suffix(".py")
    return (
        (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "")
        .split("\n")[0]
        .replace("``", "")
    )


def imports_of(file: Path) -> set[str]:
    """Return the dotted names that a file imports from the package."""
    found = set()
    if file.suffix != ".py":
        return found
    package = file.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [
                *package[: len(package) - node.level + 1],
                *filter(None, [node.module]),
            ]
            found |= {".".join([*base, alias.name]) for alias in node.names}
    return found


def uses(container: str, room: str, others: list[str]) -> list[str]:
    """Return the rooms of a container that a room imports."""
    files = files_of(ROOT.joinpath(*container.split("."), room))
    names = {f"{name}." for file in files for name in imports_of(file)}
    return [
        other
        for other in others
        if other != room
        and any(name.startswith(f"{container}.{other}.") for name in names)
    ]


def drawn_room(
    container: str, room: str, others: list[str], x: float, y: int, width: float
) -> str:
    """Return the box of a room: its name, its sentence, and what it imports."""
    path = ROOT.joinpath(*container.split("."), room)
    number = f" ({len(files_of(path))} files)" if path.is_dir() else ""
    letters = max(int(width / 6.3), 12)
    text = wrap(sentence(path), letters)[:3]
    if path.is_dir() and (used := uses(container, room, others)):
        text += wrap(f"imports {', '.join(used)}", letters)[:2]
    tspans = "".join(
        f'<tspan x="{x + 8:.0f}" dy="14">{escape(line)}</tspan>' for line in text
    )
    return (
        f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{BOX_HEIGHT}" rx="6"/>'
        f'<text class="name" x="{x + 8:.0f}" y="{y + 17}">{room}{number}</text>'
        f'<text x="{x + 8:.0f}" y="{y + 19}">{tspans}</text>'
    )


def picture() -> str:
    """Return the drawing as SVG."""
    drawn, y = [], MARGIN
    for container, layers in floors():
        drawn.append(
            f'<text class="name" x="{MARGIN}" y="{y + 14}">{container}: rooms import '
            "from the floors below them</text>"
        )
        y += 26
        rooms = [room for layer in layers for room in layer]
        for layer in layers:
            for begin in range(0, len(layer), MOST):
                row = layer[begin : begin + MOST]
                width = (WIDTH - MARGIN * (len(row) + 1)) / len(row)
                for i, room in enumerate(row):
                    x = MARGIN + i * (width + MARGIN)
                    drawn.append(drawn_room(container, room, rooms, x, y, width))
                y += BOX_HEIGHT + MARGIN
        y += MARGIN
    style = (
        "text{font:11px sans-serif;fill:#333}.name{font:bold 13px sans-serif}"
        "rect{fill:#f4f6fa;stroke:#8aa;stroke-width:1}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
        f'viewBox="0 0 {WIDTH} {y}"><style>{style}</style>'
        f'<rect width="{WIDTH}" height="{y}" style="fill:#fff;stroke:none"/>\n'
        + "\n".join(drawn)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"{PICTURE.relative_to(ROOT)} is drawn.")
