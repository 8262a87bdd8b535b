"""Solving one problem: the meaning of tol, the run with its reports, and the solution.

Warnings, scikit-learn's callbacks and process-wide settings are here as well. This
subpackage may import checks and the core.
"""
