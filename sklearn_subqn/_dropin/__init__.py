"""Estimators with the names and parameters of other packages: one import changes."""
