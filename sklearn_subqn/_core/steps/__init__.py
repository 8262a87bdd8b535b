"""Parts of solvers: directions, line searches, models, certificates.

Each is one step of a published method. This subpackage may import objectives and all
below, but no solver.
"""
