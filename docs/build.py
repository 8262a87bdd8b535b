"""Build the site into docs/_build/html: python docs/build.py [--no-gallery] [--fresh].

Needs ``pip install ".[docs]"`` and no network. Warnings are errors, and so are links
within the whole site that lead nowhere. With --no-gallery the examples are shown but
not run; --fresh forgets what earlier builds left behind.
"""

import argparse
import os
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.cmd.build import main as sphinx

DOCS = Path(__file__).resolve().parent


class Page(HTMLParser):
    """The anchors of a page, and where its links and pictures lead."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links = set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Note one tag."""
        for name, value in attrs:
            if name in ("id", "name"):
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def dead_links(site):
    """Return the links within a built site to files or anchors that are not there."""
    paths = [path.resolve() for path in sorted(site.rglob("*.html"))]
    # The theme's own templates aside.
    pages = {path: Page(path) for path in paths if "_static" not in path.parts}
    dead = []
    for path, page in pages.items():
        for link in sorted(page.links):
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            anchor = unquote(url.fragment)
            found = target.exists()
            if found and anchor and target in pages:
                found = anchor in pages[target].anchors
            if not found:
                dead.append(f"{path.relative_to(site.resolve())}: {link}")
    return dead


def main():
    """Build the site and check its links; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-gallery", action="store_true", help="run no examples")
    parser.add_argument("--fresh", action="store_true", help="build everything anew")
    options = parser.parse_args()
    if options.fresh:
        for made in ("_build", "api/generated", "gallery"):
            shutil.rmtree(DOCS / made, ignore_errors=True)
    os.environ["SUBQN_RUN_GALLERY"] = "" if options.no_gallery else "yes"
    arguments = ["-W", "--keep-going", "-b", "html"]
    site = DOCS / "_build" / "html"
    status = sphinx([*arguments, str(DOCS), str(site)])
    dead = [] if status else dead_links(site)
    for link in dead:
        print(f"WARNING: a link leads nowhere: {link}", file=sys.stderr)
    return status or int(bool(dead))


if __name__ == "__main__":
    sys.exit(main())
