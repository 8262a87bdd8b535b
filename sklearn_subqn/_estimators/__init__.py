"""The common parts of estimators: parameters, data, fitted attributes, predictions.

This room turns data and parameters into problems, has them solved, and stores the
solutions. It may import every room below it, but no public estimator.
"""
