"""Rows in several places: parts, messages to them, and row-wise data that stays there.

Dual coordinate ascent over rows, local or remote, is here, too. This subpackage may
import rows, types of losses, and kernels.
"""
