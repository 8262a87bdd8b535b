"""Small problems of chains, and all their labelings one by one."""

from __future__ import annotations

from functools import partial
from itertools import pairwise, product

import numpy as np
from _door import (
    CHAIN_SOLVERS,
    L2,
    ChainDesign,
    ChainHinge,
    ChainLogLoss,
    CutBundle,
    ElasticNet,
    Objective,
    Options,
    Risk,
    Start,
    Stopping,
    run,
)
from scipy import sparse

from sklearn_subqn._chains.pairs import observed_pairs, observed_transitions

SlackHinge = partial(ChainHinge, rescaling="slack")


def starts_of(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)


def random_scores(rng, k, lengths, *, scale=1.0, forbidden=0.0, ends=0.0):
    """Emissions, transitions, and starts; label 0 and staying are always allowed."""
    starts = starts_of(lengths)
    emissions = scale * rng.normal(size=(starts[-1], k))
    transitions = scale * rng.normal(size=(k, k))
    mask = rng.random((k, k)) < forbidden
    np.fill_diagonal(mask, False)
    transitions[mask] = -np.inf
    for tokens in (starts[:-1], starts[1:] - 1):
        out = rng.random(k) < ends
        out[0] = False
        emissions[np.ix_(tokens, out)] = -np.inf
    return emissions, transitions, starts


class Enumeration:
    """All allowed labelings of one sequence with their scores and probabilities."""

    def __init__(self, emissions, transitions):
        length, k = emissions.shape
        tokens = np.arange(length)
        labelings, scores = [], []
        for y in map(np.array, product(range(k), repeat=length)):
            score = emissions[tokens, y].sum() + transitions[y[:-1], y[1:]].sum()
            if score > -np.inf:
                labelings.append(y)
                scores.append(score)
        self.labelings, self.scores = np.array(labelings), np.array(scores)
        p = np.exp(self.scores - self.scores.max())
        self.log_z = self.scores.max() + np.log(p.sum())
        self.p = p / p.sum()
        self.nodes, self.edges = np.zeros((length, k)), np.zeros((length, k, k))
        for q, y in zip(self.p, self.labelings, strict=True):
            self.nodes[tokens, y] += q
            self.edges[tokens[1:], y[:-1], y[1:]] += q

    @property
    def entropy(self):
        p = self.p[self.p > 0.0]
        return -float(p @ np.log(p))


def enumerations(emissions, transitions, starts):
    return [Enumeration(emissions[a:b], transitions) for a, b in pairwise(starts)]


def random_labeling(rng, length, allowed, first, last):
    """Return a labeling that obeys the constraints, each label at random."""
    # Which labels allow the rest of the sequence.
    possible = [last]
    for _ in range(length - 1):
        possible.insert(0, (allowed & possible[0]).any(axis=1))
    labels = [rng.choice(np.flatnonzero(first & possible[0]))]
    for those in possible[1:]:
        labels.append(rng.choice(np.flatnonzero(allowed[labels[-1]] & those)))
    return labels


def random_problem(
    rng, *, loss=ChainLogLoss, alpha=None, l1_ratio=0.0, weighted=True, forbidden=0.0,
    ends=0.0, n=None, k=None, longest=6, d=8, binary=None,
):  # fmt: skip
    """A small objective whose labels obey the constraints."""
    n = int(rng.integers(1, 12)) if n is None else n
    k = int(rng.integers(2, 5)) if k is None else k
    starts = starts_of(rng.integers(1, longest + 1, size=n))
    n_tokens = int(starts[-1])
    allowed = rng.random((k, k)) >= forbidden
    np.fill_diagonal(allowed, True)
    # Staying is allowed everywhere, and a label at both ends.
    at_ends = rng.random((2, k)) >= ends
    at_ends[:, rng.integers(k)] = True
    labels = np.empty(n_tokens, dtype=np.intp)
    for a, b in pairwise(starts):
        labels[a:b] = random_labeling(rng, b - a, allowed, *at_ends)
    X = sparse.random_array((n_tokens, d), density=0.4, rng=rng, format="csr")
    X = X.toarray()
    X[:, 0] += labels == 0
    if rng.random() < 0.5 if binary is None else binary:
        X = (X != 0.0).astype(float)
    X = sparse.csr_array(X)
    design = ChainDesign(
        X,
        starts,
        k,
        observed_pairs(X, labels, k),
        observed_transitions(labels, starts, k),
    )
    weights = rng.integers(0, 4, size=n).astype(float) if weighted else np.ones(n)
    weights[rng.integers(n)] += 1.0
    q = design.n_params
    regularizer = ElasticNet(q, l1_ratio) if l1_ratio else L2(q)
    alpha = float(10.0 ** rng.uniform(-4, 0)) if alpha is None else alpha
    return Objective(
        Risk(design, loss(starts, allowed, at_ends), labels, weights / weights.sum()),
        regularizer,
        alpha,
    )


def fitted(objective, solver="auto", *, tol=1e-6, max_iter=300, w=None):
    """Return the result of a solver, with the driver's cuts if it proves nothing."""
    spec = CHAIN_SOLVERS[solver]
    bundle = None
    if isinstance(objective.regularizer, L2) and not spec.proves:
        bundle = partial(CutBundle, objective)
    start = Start(np.zeros(objective.n_params) if w is None else w)
    solver = spec.start(objective, start, Options(stopping=Stopping(tol)))
    return run(solver, Stopping(tol), max_iter=max_iter, bundle=bundle)
