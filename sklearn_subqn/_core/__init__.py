"""The mathematics: losses, regularizers, designs, objectives and solvers.

Nothing here imports scikit-learn; see ``docs/architecture.md`` for the import rule.
"""
