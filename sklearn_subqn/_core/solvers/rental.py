"""Prototype: L-BFGS that buys a Hessian."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from ..driver import Iterate, Solver, Status, Stopping
from ..losses._base import Floats
from ..objectives.objective import Dual, Objective
from ..rounding import EPS
from ..rows.row_views import dense_rows
from ..steps.intercepts import minimize_intercept
from ..steps.quasi_newton import Pair


from ..steps.one_dimension import NEAR, minimize_smooth
import os
RPP = int(os.environ.get("RPP", "8"))
MOSTP = float(os.environ.get("MOSTP", "4"))
KEEP = int(os.environ.get("KEEP", "1"))
EX = float(os.environ.get("EX", "0"))


class Diagonal:
    def __init__(self, point, n_rows=500):
        o = point.objective
        d = o.design.n_features
        X = o.design.X
        step = max(1, X.shape[0] // n_rows)
        some = dense_rows(X[::step])
        self.m = some.mean(0) if o.n_free else np.zeros(d)
        self.v = np.einsum("ij,ij->j", some, some) / len(some) - self.m**2
        self.a = o.alpha
        self.free = o.n_free
        self.refresh(point)

    def refresh(self, point):
        self.h = float(point.curvature.diagonal().sum())

    def solve(self, g):
        out = np.empty_like(g)
        d = len(self.m)
        if self.free:
            gb = g[d]
            out[:d] = (g[:d] - self.m * gb) / (self.h * self.v + self.a)
            out[d] = gb / self.h - self.m @ out[:d]
        else:
            out[:] = g / (self.h * self.v + self.a)
        return out


class Factor:
    def __init__(self, point, stride=1):
        matrix = point.sampled_hessian(stride).matrix()
        matrix[np.diag_indices_from(matrix)] *= 1 + 1e-12
        self.factor = linalg.cho_factor(matrix, check_finite=False, overwrite_a=True)

    def solve(self, g):
        return linalg.cho_solve(self.factor, g, check_finite=False)


def rental(objective: Objective, w: Floats, stopping: Stopping | None = None) -> Solver:
    o = objective
    point = minimize_intercept(o.at(w))
    pairs: list[Pair] = []
    n = o.regularizer.n_penalized
    price = o.n_params / 8 + 4.0 + o.n_params**2 / 3 / (2.0 * o.design.n_rows)
    start_passes = o.passes
    metric = metric0 = None
    bound = -np.inf
    bought = False
    while True:
        g = point.gradient
        r = g[:n] - metric0.m * g[n:].sum() if metric0 is not None else g[:n]
        gap = float(r @ r) / (2 * o.alpha)
        allowed = stopping.allowed_gap(point.value) if stopping else 0.0
        proof = None
        if gap <= 1.5*allowed:
            minimal = minimize_intercept(point)
            bound, proof = minimal.lower_bound, Dual(minimal.dual)
            yield Iterate(minimal, minimal.cut, bound, "rent", proof)
        else:
            yield Iterate(point, None, -np.inf, "rent")
        spent = o.passes - start_passes
        if metric is None:
            metric = metric0 = Diagonal(point)
            stride = int(np.ceil(price / MOSTP))
            sprice = MOSTP * float(os.environ.get("REF", "1"))
            if o.design.n_rows >= RPP * o.n_params * stride:
                metric = Factor(point, stride)
                last = o.passes
        elif not bought and spent > price:
            metric, bought = Factor(point), True
            pairs = pairs if KEEP else []
        elif not bought and metric is not metric0 and o.passes - last > sprice:
            metric = Factor(point, stride)
            last = o.passes
            pairs = pairs if KEEP else []
        q = g.copy()
        al = []
        for dw, dg, c in reversed(pairs):
            al.append(float(dw @ q) / c)
            q -= al[-1] * dg
        q = metric.solve(q)
        if pairs and metric is metric0:
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
            pairs = pairs[-10:]
        point = new
