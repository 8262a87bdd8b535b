"""Online methods: a picklable state and a step for every batch."""
