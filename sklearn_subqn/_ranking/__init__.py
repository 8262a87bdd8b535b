"""Rankers: their base class, queries, preferences between rows, held-out queries.

Modules here may import ``_estimators`` and the layers below.
"""
