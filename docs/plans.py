"""Write the page of the table of plans from the table: ``python docs/plans.py``."""

from __future__ import annotations

from pathlib import Path

from sklearn_subqn._core.solvers.plans import PLANS, sentence

PAGE = Path(__file__).resolve().parent / "plans.md"

HEAD = """\
# What solver="auto" chooses

The first row of this table whose conditions all hold is taken; its name is `plan_` of
the fitted estimator. With `verbose=2` each fit prints which rows it skipped, by which
false condition, and why it took the one that it took. The page is written from the
table in `_core/solvers/plans.py` by `python docs/plans.py`.

| plan | conditions |
|---|---|
"""


def page() -> str:
    """Return the page as Markdown."""
    rows = [
        f"| {plan.name} | {' '.join(map(sentence, plan.when)) or 'None.'} |"
        for plan in PLANS
    ]
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.name} is written.")
