"""Rankings: rows of queries, preferences between rows, held-out queries.

What rankers share is here. This room may import estimators and all below.
"""
