"""The objectives of fitted models of this package and of other packages.

``dual_gap`` takes the objectives from this subpackage, which may import the public
estimators.
"""
