"""Build the site into docs/_build/html: python docs/build.py [--no-gallery] [--fresh].

Needs ``pip install ".[docs]"`` and no network. Warnings are errors. With --no-gallery
the examples are shown but not run; --fresh forgets what earlier builds left behind.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import main as sphinx

DOCS = Path(__file__).resolve().parent


def main():
    """Build the site; return the exit code of Sphinx."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-gallery", action="store_true", help="run no examples")
    parser.add_argument("--fresh", action="store_true", help="build everything anew")
    options = parser.parse_args()
    if options.fresh:
        for made in ("_build", "api/generated", "gallery"):
            shutil.rmtree(DOCS / made, ignore_errors=True)
    os.environ["SUBQN_RUN_GALLERY"] = "" if options.no_gallery else "yes"
    arguments = ["-W", "--keep-going", "-b", "html"]
    return sphinx([*arguments, str(DOCS), str(DOCS / "_build" / "html")])


if __name__ == "__main__":
    sys.exit(main())
