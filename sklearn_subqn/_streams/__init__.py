"""Estimators that learn from one batch after the other, and fits by epochs.

The methods themselves are in ``_core/online``. This room may import estimators and all
below.
"""
