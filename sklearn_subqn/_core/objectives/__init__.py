"""Objectives J(w) = alpha * Omega(w) + R(Xw), and their oracles for solvers.

Risks, bounds, cuts, points and second derivatives are here. This subpackage may import
places, rows, regularizers, losses and kernels.
"""
