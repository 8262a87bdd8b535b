"""The methods of ``minimize``, and adapters from user functions to the core.

Modules here may import ``_solving``, ``_checks`` and ``_core``.
"""
