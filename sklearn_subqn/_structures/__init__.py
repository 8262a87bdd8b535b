"""Structures of a user's own, known by the functions that the user gives."""
