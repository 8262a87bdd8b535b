"""The methods of ``minimize``, and functions of one's own as the core wants them.

This room may import solving, checks and the core.
"""
