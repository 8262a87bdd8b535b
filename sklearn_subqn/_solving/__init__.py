"""Solving one problem: what tol means, the run with its reports, and the solution.

Warnings, scikit-learn's callbacks and the settings of a process are here as well. This
room may import checks and the core.
"""
