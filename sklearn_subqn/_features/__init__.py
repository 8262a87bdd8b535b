"""Properties of features and classes: units, shifts, per-feature numbers, class roles.

These properties determine shifts of columns, scales of penalties and the order of
classes. This subpackage may import checks, and from the core the losses and the common
modules.
"""
