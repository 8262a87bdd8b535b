"""Features as users see them: units, shifts, numbers for each, and roles of classes.

What is found here moves columns, scales penalties and orders classes. This room may
import checks, and of the core losses and what all of it uses.
"""
