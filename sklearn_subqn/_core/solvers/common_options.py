"""Options that several batch solvers share."""

from __future__ import annotations

from dataclasses import replace

from ..options import Option

#: Options of limited-memory estimates of the inverse Hessian.
MEMORY = {
    "memory": Option(
        "number m of pairs (Yu 2009, Alg. 2.2)",
        15,
        low=1,
        integer=True,
        parameter="memory",
    )
}

#: Options of subLBFGS, where B = I also gives descent directions.
MEMORY_OR_NONE = {
    "memory": replace(
        MEMORY["memory"],
        meaning="number m of pairs (Yu 2009, Alg. 2.2); with 0, B = I: subgradient "
        "descent (section 3.1.2)",
        low=0,
    )
}

#: Options of the search for a descent direction (Yu 2009, Alg. 3.2).
DIRECTION = {
    "epsilon": Option(
        "tolerance ε of Alg. 3.2 (Yu 2009), absolute; None: direction_tol, "
        "or 1e-5, times the objective",
        None,
        low=0.0,
        optional=True,
        parameter="direction_tol",
    ),
    "k_max": Option(
        "limit k_max of Alg. 3.2 (Yu 2009)",
        100,
        low=1,
        integer=True,
        parameter="direction_max_iter",
        setting="direction_max_iter",
    ),
}

#: Options of the first search for a descent direction in subBFGS.
FIRST_DIRECTION = {
    "epsilon_0": Option(
        "ε of the first search, absolute, which Yu (2009, section 4.1.1) relaxes to 1 "
        "for several classes or labels; None: as epsilon",
        None,
        low=0.0,
        optional=True,
    )
}

#: Options of the update of B in subBFGS.
CURVATURE = {
    "h": Option(
        "least ratio h of <s, y> and <y, y> of a pair (Yu 2009, Alg. 3.1, line 14)",
        1e-8,
        low=0.0,
        low_included=False,
    )
}

#: Options of the line search.
LINE_SEARCH = {
    "line_search": Option(
        "the minimizer along the line (Yu 2009, Alg. 3.3), or a step that obeys the "
        "Wolfe conditions (eq. 3.17, 3.18)",
        "exact",
        choices=("exact", "wolfe"),
    ),
    "c1": Option(
        "c₁ of sufficient decrease (Yu 2009, eq. 2.7, 3.17)",
        1e-4,
        low=0.0,
        low_included=False,
        below="c2",
        needs=("line_search", "wolfe"),
    ),
    "c2": Option(
        "c₂ of curvature (Yu 2009, eq. 2.8, 3.18)",
        0.9,
        low=0.0,
        low_included=False,
        high=1.0,
        high_included=False,
        needs=("line_search", "wolfe"),
    ),
}

#: Options of solvers whose steps all satisfy the Wolfe conditions.
WOLFE = {name: replace(LINE_SEARCH[name], needs=None) for name in ("c1", "c2")}

#: Options of OWL-QN and OWL-QN*.
SUBGRADIENT = {
    "random_state": Option(
        "seed of subgradients drawn at random (Yu 2009, section 4.1.4); None: the "
        "smallest one (Andrew and Gao 2007, eq. 4)",
        None,
        low=0,
        integer=True,
        optional=True,
    )
}

#: Options of bundle methods.
GAP = {
    "epsilon": Option(
        "gap ε at which to stop (Teo et al. 2010, Alg. 2), absolute; None: tol times "
        "the objective",
        None,
        low=0.0,
        optional=True,
        setting="gap",
    )
}

#: Options of bundle methods with several cuts.
CUTS = {
    "bundle_size": Option(
        "number k of cuts (Teo et al. 2010, section 3.1)",
        None,
        low=2,
        integer=True,
        optional=True,
        parameter="bundle_size",
    ),
    "patience": Option(
        "cuts that are inactive this many times in a row are removed (Teo et al. 2010, "
        "section 5.1.1); None keeps all, and goes on to max_iter without progress, as "
        "tol=0 does",
        10,
        low=1,
        integer=True,
        optional=True,
    ),
}

#: Options of the bundle method with line search.
BETWEEN = {
    "theta": Option(
        "share θ of the model's minimizer in the point of the next cut (Teo et al. "
        "2010, Alg. 3, line 9)",
        0.2,
        low=0.0,
        low_included=False,
        high=1.0,
    ),
    "cut_at_best": Option(
        "whether the best point gives a cut as well, while all are small against X",
        True,
        flag=True,
    ),
}

#: Options of gradient methods with given step sizes.
STEP = {
    "eta0": Option(
        "step size (Aggarwal 2020, α of sections 5.8.1 and 5.8.2); None: chosen anew "
        "in each step",
        None,
        low=0.0,
        low_included=False,
        optional=True,
    )
}

#: Options of the subgradient method with decreasing steps.
DECAY = {
    "tau": Option(
        "τ of the factors τ / (τ + t) of step sizes; None: none, as in the source",
        10.0,
        low=0.0,
        low_included=False,
        optional=True,
    )
}

#: Options of the subgradient method with an L1 norm.
SLOPES_AT_ZERO = {
    "random_state": Option(
        "seed of the slopes s_j of an L1 norm where w_j = 0, drawn from [-1, 1] "
        "(Aggarwal 2020, eq. 5.29); None: zero",
        None,
        low=0,
        integer=True,
        optional=True,
    )
}

#: Options of accelerated methods.
RESTART = {
    "restart": Option(
        "whether momentum begins anew whenever J rises (O'Donoghue and Candès 2015); "
        "without, it is Beck and Teboulle (2009, eq. 4.1-4.3)",
        True,
        flag=True,
    )
}

#: Options of methods that stop at a small gradient.
GRADIENT = {
    "epsilon": Option(
        "norm ε of the gradient at which to stop (Yu 2009, Alg. 2.1, 2.2); None: tol",
        None,
        low=0.0,
        low_included=False,
        optional=True,
        setting="gradient",
    )
}

#: Options of Newton's method in a trust region.
TRUST = {
    "delta": Option(
        "first radius δ, of Euclidean lengths (Aggarwal 2020, section 5.6.3.1); None: "
        "that of a gradient step, in lengths by the diagonal of the Hessian",
        None,
        low=0.0,
        low_included=False,
        optional=True,
    ),
    "low": Option(
        "improvement ratio below which δ is halved",
        0.25,
        low=0.0,
        below="high",
    ),
    "high": Option(
        "improvement ratio above which δ is doubled after full steps",
        0.75,
        low=0.0,
        low_included=False,
    ),
}

#: Options of nonlinear conjugate gradients.
FORMULA = {
    "beta": Option(
        "formula of β, the last two at least zero: Fletcher and Reeves (1964); "
        "Hestenes and Stiefel (1952), which is Aggarwal (2020, eq. 5.22) with products "
        "by finite differences (eq. 5.23) along a step; Polak and Ribière (1969)",
        "polak-ribiere",
        choices=("fletcher-reeves", "hestenes-stiefel", "polak-ribiere"),
    )
}

#: Options of bundle methods that stay near the best point.
SERIOUS = {
    "rho": Option(
        "share ρ of the promised gain in a serious step (Teo et al. 2010, Alg. 1)",
        0.1,
        low=0.0,
        low_included=False,
        high=1.0,
        high_included=False,
    )
}

#: Options of the proximal bundle method.
PROXIMITY = {
    "zeta": Option(
        "weight ζ of the squared distance (Teo et al. 2010, eq. 5), constant as in "
        "Alg. 1, with one cut in each iteration; None: adapted",
        None,
        low=0.0,
        low_included=False,
        optional=True,
    )
}

#: Options of the bundle method with a trust region.
REGION = {
    "kappa": Option(
        "half the squared radius κ (Teo et al. 2010, eq. 6), constant; None: adapted",
        None,
        low=0.0,
        low_included=False,
        optional=True,
    )
}

#: Options of the choice of a subgradient at kinks of the loss.
AT_KINKS = {
    "random_state": Option(
        "seed of subgradients in line 12 of Alg. 3.1, drawn at random as the β_i of "
        "rows on the margin in Yu (2009, section 4.1); None: the steepest",
        None,
        low=0,
        integer=True,
        optional=True,
    )
}
