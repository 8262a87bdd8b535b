"""What a fit calls of the package: what a reader has to follow."""

import sys
from pathlib import Path

import sklearn_subqn


def followed(model, X, y):
    """Return files and functions of the package that a fit calls, and how deep."""
    installed = Path(sklearn_subqn.__file__).parent
    files, functions, known = {}, set(), {}
    depth, deepest = 0, 0

    def file_of(code):
        """Return the file of a function of the package, or None."""
        path = Path(code.co_filename)
        if not path.is_relative_to(installed):
            return None
        file = path.relative_to(installed).as_posix()
        files.setdefault(file)
        functions.add((file, code.co_qualname))
        return file

    def follow(frame, event, argument):
        nonlocal depth, deepest
        # A generator is called each time that it goes on, and returns what it yields.
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if code not in known:
            known[code] = file_of(code)
        if known[code]:
            depth += 1 if event == "call" else -1
            deepest = max(deepest, depth)

    sys.setprofile(follow)
    try:
        model.fit(X, y)
    finally:
        sys.setprofile(None)
    return list(files), functions, deepest
