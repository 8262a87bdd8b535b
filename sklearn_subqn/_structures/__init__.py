"""Structured prediction with the user's joint features, loss and argmax."""
