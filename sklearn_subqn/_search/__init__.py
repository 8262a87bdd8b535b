"""Searches over alpha: warm-started paths on folds, scores, the choice, and reports.

The CV estimators share the code of this subpackage, which may import estimators and all
layers below.
"""
