"""The common parts of estimators: parameters, data, fitted attributes, predictions.

This subpackage turns data and parameters into problems, calls the solvers, and stores
the solutions. All layers below may be imported here, but no public estimator.
"""
