"""Linear-chain models of sequences: losses, solvers, encoding and prediction."""
