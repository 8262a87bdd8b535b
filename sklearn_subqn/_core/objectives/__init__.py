"""Objectives J(w) = alpha * Omega(w) + R(Xw), and what solvers see of them.

Risks, bounds, cuts, points and second derivatives are here. This subpackage may import
places, rows, regularizers, losses and kernels.
"""
