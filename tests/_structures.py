"""Structures for tests: small tables that can be enumerated, classes, sequences."""

import itertools

import numpy as np
from scipy import sparse
from scipy.optimize import linprog


class Table:
    """Samples x are indices; each has its own table of features and losses.

    Structures are indices of rows; that of the truth has no loss.
    """

    def __init__(self, n=6, d=4, n_structures=7, seed=0, kind="dense"):
        rng = np.random.default_rng(seed)
        self.features = rng.normal(size=(n, n_structures, d)).round(2)
        self.losses = 2.0 * rng.random((n, n_structures)).round(1)
        self.X = list(range(n))
        self.y = rng.integers(n_structures, size=n).tolist()
        # Something to learn.
        self.features[self.X, self.y] += rng.normal(size=d).round(2)
        self.losses[self.X, self.y] = 0.0
        self.kind = kind
        self.n_calls = 0

    # Losses are of pairs of structures: y determines its sample, too.
    @property
    def truths(self):
        return list(zip(self.X, self.y, strict=True))

    def joint_feature(self, x, y):
        row = self.features[x, y[1]]
        if self.kind == "dict":
            return {int(j): row[j] for j in np.flatnonzero(row)}
        return row if self.kind == "dense" else sparse.csr_array(row[None, :])

    def loss(self, y, other):
        return self.losses[y[0], other[1]]

    def argmax(self, x, y, w):
        self.n_calls += 1
        scores = self.features[x] @ w
        if y is not None:
            scores = scores + self.losses[x]
        return x, int(scores.argmax())

    def arguments(self):
        return self.joint_feature, self.argmax, self.loss

    def risk(self, w, weights=None):
        """Return the mean loss at w by enumeration."""
        values = self.features @ w + self.losses
        values -= (self.features @ w)[self.X, self.y][:, None]
        return np.average(values.max(axis=1), weights=weights)

    def least_l1(self, alpha, weights=None):
        """Return the optimum with the L1 penalty, by a linear program over all."""
        n, m, d = self.features.shape
        p = np.full(n, 1.0 / n) if weights is None else weights / np.sum(weights)
        psi = self.features - self.features[self.X, self.y][:, None]
        slack = np.repeat(np.eye(n), m, axis=0)
        rows = psi.reshape(n * m, d)
        program = linprog(
            np.concatenate([np.full(2 * d, alpha), p]),
            A_ub=np.hstack([rows, -rows, -slack]),
            b_ub=-self.losses.ravel(),
        )
        return program.fun


class Classes:
    """The structures are classes: joint features are x in the place of its class."""

    def __init__(self, n_classes):
        self.n_classes = n_classes

    def joint_feature(self, x, y):
        return np.outer(np.arange(self.n_classes) == y, x).ravel()

    def argmax(self, x, y, w):
        scores = w.reshape(self.n_classes, -1) @ x
        if y is not None:
            scores += np.arange(self.n_classes) != y
        return int(scores.argmax())


class Chains:
    """Sequences of labels: scores of tokens and of adjacent labels, Hamming loss.

    Samples are matrices, one row of features a token; CSR ones give sparse joint
    features.
    """

    def __init__(self, n_labels):
        self.k = n_labels

    def joint_feature(self, x, y):
        k, d = self.k, x.shape[1]
        adjacent = np.zeros((k, k))
        np.add.at(adjacent, (y[:-1], y[1:]), 1.0)
        if not sparse.issparse(x):
            tokens = np.eye(k)[y].T @ x
            return np.concatenate([tokens.ravel(), adjacent.ravel()])
        labels = np.repeat(y, np.diff(x.indptr))
        pairs = np.flatnonzero(adjacent)
        columns = np.concatenate([labels * d + x.indices, k * d + pairs])
        values = np.concatenate([x.data, adjacent.ravel()[pairs]])
        zero = np.zeros(len(columns), dtype=int)
        shape = 1, k * d + k * k
        return sparse.coo_array((values, (zero, columns)), shape=shape).tocsr()

    def loss(self, y, other):
        return np.count_nonzero(y != other)

    def argmax(self, x, y, w):
        k, (n_tokens, d) = self.k, x.shape
        scores = x @ w[: k * d].reshape(k, d).T
        adjacent = w[k * d :].reshape(k, k)
        if y is not None:
            scores += np.arange(k) != np.asarray(y)[:, None]
        best, back = scores[0], np.zeros((n_tokens, k), dtype=int)
        for t in range(1, n_tokens):
            through = best[:, None] + adjacent
            back[t] = through.argmax(axis=0)
            best = through.max(axis=0) + scores[t]
        labels = np.empty(n_tokens, dtype=int)
        labels[-1] = best.argmax()
        for t in range(n_tokens - 1, 0, -1):
            labels[t - 1] = back[t, labels[t]]
        return labels

    def all_labels(self, n_tokens):
        return map(np.array, itertools.product(range(self.k), repeat=n_tokens))
