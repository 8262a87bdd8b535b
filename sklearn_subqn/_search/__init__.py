"""Searches over alpha: warm paths on folds, scores, the choice, and its reports.

What the CV estimators share is here. This room may import estimators and all below.
"""
