"""What fitted models minimize, by their parameters: of this package and of others.

``dual_gap`` asks this room for objectives. It may import the public estimators.
"""
