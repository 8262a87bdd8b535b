"""What estimators share: parameters, data in, fitted attributes and predictions out.

This room turns what users give into problems, has them solved, and stores what was
found. It may import every room below it, but no public estimator.
"""
