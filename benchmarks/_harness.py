"""Running benchmarks: options from defaults, tables, and files that are asked for.

A benchmark is a function that measures, one that makes tables of its rows, and perhaps
one that draws them. What they need from the command line is a dict of defaults. Nothing
is written unless ``--save`` names a folder.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import common
import datasets
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits


def add_options(p: argparse.ArgumentParser, options: Mapping[str, Any]) -> None:
    """Add options by their defaults.

    False makes a switch, a type an option without a default, a list one of several
    values, and a tuple one of several values among its own. An entry with a note is a
    dict of "default" and "help".
    """
    for name, given in options.items():
        note = given["help"] if isinstance(given, dict) else None
        default = given["default"] if isinstance(given, dict) else given
        flag = f"--{name.replace('_', '-')}"
        if default is False:
            p.add_argument(flag, action="store_true", help=note)
            continue
        several = isinstance(default, list | tuple)
        kind = default[0] if several else default
        p.add_argument(
            flag,
            nargs="+" if several else None,
            type=kind if isinstance(kind, type) else type(kind),
            default=None if isinstance(kind, type) else default,
            choices=default if isinstance(default, tuple) else None,
            help=note,
        )


def parser(description: str, data: Iterable[str] = ()) -> argparse.ArgumentParser:
    """Return a parser with the options that all benchmarks have."""
    p = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folder = "folder of the data (default: environment, SUBQN_DATA_DIR)"
    p.add_argument("--data-dir", default=datasets.data_dir_default(), help=folder)
    p.add_argument("--cache-dir", help="folder in which to keep data in binary form")
    if data:
        p.add_argument("--data", nargs="+", default=list(data), metavar="NAME")
    p.add_argument("--save", type=Path, metavar="DIR", help="write results there")
    p.add_argument(
        "--fresh", action="store_true", help="drop what DIR has of other problems"
    )
    return p


class Benchmark:
    """A benchmark with its command line.

    Parameters
    ----------
    name : str
        Of the files that it writes.
    description : str
        What ``--help`` prints, the docstring of the script.
    measure : callable
        ``measure(args, results)``, or with ``each`` ``measure(name, args, results)``
        for each name of ``--data``; adds rows to the results.
    render : callable
        From ``{"environment": ..., "rows": [...]}`` to Markdown.
    data : sequence of str
        The names of ``--data``, if it has that.
    draw : callable, optional
        From the same to a figure of Matplotlib, or None.
    each : bool
    options : keyword arguments
        As for ``add_options``.
    """

    def __init__(
        self,
        name: str,
        description: str | None,
        measure: Callable[..., None],
        render: Callable[[dict[str, Any]], str],
        data: Sequence[str] = (),
        *,
        draw: Callable[[dict[str, Any]], Any] | None = None,
        each: bool = False,
        **options: Any,
    ) -> None:
        self.name, self.description = name, description or ""
        self.measure, self.render, self.draw = measure, render, draw
        self.data, self.each, self.options = data, each, options

    def run(self, arguments: Sequence[str] | None = None) -> None:
        """Measure what the command line asks for, print tables, save if asked to."""
        p = parser(self.description, self.data)
        add_options(p, self.options)
        args = p.parse_args(arguments)
        results = common.Results(self.name, folder=args.save, fresh=args.fresh)
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore", ConvergenceWarning)
            for given in [[name] for name in args.data] if self.each else [[]]:
                self.measure(*given, args, results)
        print(self.render(results.content))
        if args.save and self.draw:
            figure = self.draw(results.content)
            if figure is not None:
                save_figure(figure, args.save / self.name)


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure as .png, of few colors, as drawings have."""
    figure.savefig(path.with_name(f"{path.name}.png"), dpi=80)


def new_figure(
    n_rows: int, n_columns: int, size: tuple[float, float], **more: Any
) -> Any:
    """Return a figure and its axes, an array of that shape."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(
        n_rows,
        n_columns,
        figsize=(size[0] * n_columns, size[1] * n_rows),
        squeeze=False,
        layout="constrained",
        **more,
    )


def table(rows: Iterable[Any], /, **columns: Any) -> str:
    """Return a Markdown table; columns are keys with formats, or functions of the row.

    ``seconds="seconds:.2f"`` shows ``row["seconds"]`` so; None becomes a dash.
    Underscores in names of columns are spaces.
    """
    return common.markdown_table(
        [name.replace("_", " ") for name in columns],
        [[cell(row, column) for column in columns.values()] for row in rows],
    )


def cell(row: Any, column: Any) -> str:
    if callable(column):
        return str(column(row))
    key, _, form = column.partition(":")
    value = row.get(key)
    return "–" if value is None else format(value, form)


def with_error(values: Any) -> str:
    """Return the mean and its standard error."""
    values = np.asarray(values)
    error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{values.mean():.4f} ± {error:.4f}"
