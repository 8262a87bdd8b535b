"""Chains: linear-chain models of sequences, on top of the core."""
