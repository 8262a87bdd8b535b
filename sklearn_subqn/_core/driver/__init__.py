"""The one loop that runs all batch solvers, and what it records.

Tolerance, limits, history and reports belong to it. This room may import steps and all
below.
"""
