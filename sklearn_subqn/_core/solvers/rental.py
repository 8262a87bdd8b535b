"""Prototype: L-BFGS around a metric that is bought when steps have cost as much."""

from __future__ import annotations

import os

import numpy as np
from scipy import linalg, sparse

from ..driver import Iterate, Solver, Status, Stopping
from ..losses._base import Floats
from ..objectives.objective import Dual, Objective
from ..rounding import EPS
from ..rows.row_views import dense_rows
from ..steps.intercepts import minimize_intercept
from ..steps.one_dimension import NEAR, minimize_smooth
from ..steps.quasi_newton import Pair

EX = float(os.environ.get("EX", "0.3"))
FIRST = float(os.environ.get("FIRST", "4"))
MEM = int(os.environ.get("MEM", "10"))


class Moments:
    """(B (x) C + alpha I)^-1 for means C of x xT, or its diagonal."""

    def __init__(self, point, full=False, n_rows=512):
        o = self.o = point.objective
        design = o.design
        d, n = design.n_features, design.n_rows
        self.k = design.n_outputs or 1
        X = design.X
        if sparse.issparse(X):
            self.m = np.asarray(X.mean(0)).ravel()
            self.c = np.asarray(X.multiply(X).mean(0)).ravel() - self.m**2
            self.U = None
        else:
            n_rows = 2000 if full else n_rows
            some = dense_rows(X[:: max(1, n // n_rows)])
            self.m = some.mean(0)
            if full:
                C = some.T @ some / len(some) - np.outer(self.m, self.m)
                self.c, self.U = linalg.eigh(C, check_finite=False, driver="evd")
            else:
                self.c = np.einsum("ij,ij->j", some, some) / len(some) - self.m**2
                self.U = None
        self.c = self.c.clip(0)
        if not o.n_free:
            self.c = self.c + 0.0
            self.m[:] = 0.0
        self.refresh(point)

    def refresh(self, point):
        B = point.curvature.total()
        self.l, self.V = linalg.eigh(B)
        self.l = self.l.clip(0)
        self.scale = np.multiply.outer(self.c, self.l) + self.o.alpha
        tol = 1e-12 * self.l.max()
        self.li = np.where(self.l > tol, 1 / np.maximum(self.l, tol), 0)

    def solve(self, g):
        d, k = len(self.m), self.k
        G = g.reshape(-1, k)
        out = np.empty_like(G)
        G0 = G[:d]
        if self.o.n_free:
            gb = G[d]
            G0 = G0 - np.outer(self.m, gb)
        T = (self.U.T @ G0 if self.U is not None else G0) @ self.V
        T /= self.scale
        T = T @ self.V.T
        out[:d] = self.U @ T if self.U is not None else T
        if self.o.n_free:
            out[d] = self.V @ (self.li * (self.V.T @ gb)) - self.m @ out[:d]
        return out.ravel()


class Factor:
    def __init__(self, point, stride=1):
        matrix = point.sampled_hessian(stride).matrix()
        matrix[np.diag_indices_from(matrix)] *= 1 + 1e-12
        self.factor = linalg.cho_factor(matrix, check_finite=False, overwrite_a=True)

    def solve(self, g):
        return linalg.cho_solve(self.factor, g, check_finite=False)


def rental(objective: Objective, w: Floats, stopping: Stopping | None = None) -> Solver:
    o = objective
    design = o.design
    d, n, k = design.n_features, design.n_rows, design.n_outputs or 1
    point = minimize_intercept(o.at(w))
    pairs: list[Pair] = []
    n_pen = o.regularizer.n_penalized
    several = design.several_scores
    row = max(design.row_size, 1.0)
    if several:
        price = (
            (9.0 * 2 * d**3 + 2000 * d * d) / (16.0 * n * row * k)
            if d <= 1500 and not sparse.issparse(design.X)
            else np.inf
        )
        stride = 1
    else:
        price = (
            (row * d / 10.0 + d * d / (10.0 * n)) / max(row / d, 1e-9) / d
            if d <= 2000
            else np.inf
        )
        price = (
            o.n_params / 10.0 if d <= 2000 and not sparse.issparse(design.X) else np.inf
        )
        stride = max(1, min(n // (8 * o.n_params), int(o.n_params / 40.0)))
    spent = FIRST
    metric = moments = None
    factor = False
    bound = -np.inf
    refresh = {3, 8, 16}
    it = 0
    while True:
        g = point.gradient
        if metric is None:
            metric = moments = Moments(point)
        G = g.reshape(-1, k)
        r = G[:d] - np.outer(moments.m, G[d]) if o.n_free else G
        gap = float(np.vdot(r, r)) / (2 * o.alpha)
        allowed = stopping.allowed_gap(point.value) if stopping else 0.0
        if gap <= 1.5 * allowed:
            minimal = minimize_intercept(point)
            bound = minimal.lower_bound
            yield Iterate(minimal, minimal.cut, bound, "rent", Dual(minimal.dual))
        else:
            yield Iterate(point, None, -np.inf, "rent")
        if spent >= price / stride:
            if several:
                metric, price = Moments(point, True), np.inf
            else:
                metric, stride, factor = Factor(point, stride), 1, True
            pairs, spent = [], 0.0
        elif several and it in refresh:
            metric.refresh(point)
        it += 1
        q = g.copy()
        al = []
        for dw, dg, c in reversed(pairs):
            al.append(float(dw @ q) / c)
            q -= al[-1] * dg
        q = metric.solve(q)
        if pairs and not factor:
            dw, dg, c = pairs[-1]
            q *= c / float(dg @ metric.solve(dg))
        for dw, dg, c in pairs:
            q += (al.pop() - float(dg @ q) / c) * dw
        p = -q
        slope = float(g @ p)
        line = point.along(p)
        step = 1.0
        new = line.point(1.0)
        if EX and abs(line.slope_of(new)) > EX * -slope:
            step = minimize_smooth(line.derivatives, accuracy=NEAR)
        while True:
            new = line.point(step)
            if new.value <= point.value + 1e-4 * step * slope:
                break
            if step < 1e-10:
                return Status.NO_STEP
            fall = new.value - point.value - step * slope
            step = min(0.5 * step, max(0.1 * step, -slope * step * step / (2 * fall)))
        dw, dg = step * p, new.gradient - g
        c = float(dw @ dg)
        if c > 0:
            pairs.append(Pair(dw, dg, c))
            pairs = pairs[-MEM:]
        spent += 2.0
        point = new
