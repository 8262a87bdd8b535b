"""Properties of features and classes: units, shifts, per-feature numbers, class roles.

What is found here moves columns, scales penalties and orders classes. This room may
import checks, and of the core losses and what all of it uses.
"""
