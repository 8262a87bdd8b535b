"""Sums over the labelings of a chain: what the kernels of chains share.

A sequence of L tokens has emissions z of shape (L, k) and transitions T of shape (k, k),
minus infinity where a label or a transition is forbidden. A labeling y scores
sum_t z[t, y_t] + sum_{t > 0} T[y_{t-1}, y_t].

Sums are made with exponentials, scaled token by token (Rabiner 1989), where no sum can
lose what matters to underflow, elsewhere with logarithms. They can lose nothing if any
label can follow any other within few tokens: then what has become too small for a
number stays small beside what reaches the same label from the likeliest label.
"""

from .rows cimport allocate
from .standard cimport INFINITY, ceil, exp, free, log, memcpy, memset

# Exponents of factors that do not underflow together, nor do their squares. Powers of
# the pattern of transitions are tried up to the second number.
cdef enum:
    SAFE_EXPONENT = 250
    MOST_STEPS = 4


cdef struct Lattice:
    Py_ssize_t k
    Py_ssize_t steps  # within which any label can follow any other, 0 if none are
    bint in_logs  # whether the last sums were made with logarithms
    double top  # the largest transition, and how far the others are below at most
    double spread
    double* transitions  # (k, k)
    double* into  # exponentials of T - top, (k, k), and their transpose
    double* out_of
    double* factors  # (L, k): exponentials of emissions, the largest of a token is one
    double* prefix  # (L, k): distribution of the label given the tokens up to it
    double* suffix  # (k,): see ``backward``
    double* coming  # (k,)
    double* scales  # (L,): sums of prefixes before they were divided by them


cdef inline int open_lattice(
    Lattice* lattice, Py_ssize_t k, Py_ssize_t longest
) except -1:
    """Make room for sequences of so many tokens at most."""
    cdef double* room = <double*> allocate(
        (3 * k * k + longest * (2 * k + 1) + 2 * k) * sizeof(double)
    )
    lattice.k = k
    lattice.transitions = room
    lattice.into = room + k * k
    lattice.out_of = room + 2 * k * k
    lattice.factors = room + 3 * k * k
    lattice.prefix = lattice.factors + longest * k
    lattice.scales = lattice.prefix + longest * k
    lattice.suffix = lattice.scales + longest
    lattice.coming = lattice.suffix + k
    return 0


cdef inline void close_lattice(Lattice* lattice) noexcept nogil:
    free(lattice.transitions)


cdef inline void set_transitions(Lattice* lattice, const double* T) noexcept nogil:
    """Take transitions of shape (k, k), with the pattern that ``set_pattern`` saw."""
    cdef Py_ssize_t k = lattice.k, i, j
    cdef double lowest = INFINITY, top = -INFINITY, e
    for i in range(k * k):
        lattice.transitions[i] = T[i]
        if T[i] > top:
            top = T[i]
        if -INFINITY < T[i] < lowest:
            lowest = T[i]
    if top == -INFINITY:
        top = lowest = 0.0
    lattice.top = top
    lattice.spread = top - lowest
    for i in range(k):
        for j in range(k):
            e = exp(T[i * k + j] - top)
            lattice.into[i * k + j] = e
            lattice.out_of[j * k + i] = e


cdef inline int set_pattern(Lattice* lattice, const double* T) except -1:
    """Find out within how many tokens any label can follow any other."""
    cdef Py_ssize_t k = lattice.k, i, j, l, steps = 0
    cdef char* reached
    cdef char* further
    cdef bint all_reached = True
    for i in range(k * k):
        if T[i] == -INFINITY:
            all_reached = False
    lattice.steps = 1
    if all_reached:
        return 0
    reached = <char*> allocate(2 * k * k)
    further = reached + k * k
    for i in range(k * k):
        reached[i] = T[i] != -INFINITY
    lattice.steps = 0
    for steps in range(2, MOST_STEPS + 1):
        all_reached = True
        memset(further, 0, k * k)
        for i in range(k):
            for l in range(k):
                if reached[i * k + l]:
                    for j in range(k):
                        if T[l * k + j] != -INFINITY:
                            further[i * k + j] = 1
        for i in range(k * k):
            reached[i] = further[i]
            if not further[i]:
                all_reached = False
        if all_reached:
            lattice.steps = steps
            break
    free(reached)
    return 0


cdef inline bint _needs_logs(
    const Lattice* lattice, const double* z, Py_ssize_t length
) noexcept nogil:
    cdef Py_ssize_t k = lattice.k, steps = length - 1, t, j
    cdef double low, high, widest = 0.0
    if lattice.steps and lattice.steps < steps:
        steps = lattice.steps
    if steps * lattice.spread > SAFE_EXPONENT:
        return True
    if lattice.steps == 1:
        return False
    for t in range(length):
        # What is forbidden cannot be lost.
        low, high = INFINITY, -INFINITY
        for j in range(k):
            low = z[t * k + j] if -INFINITY < z[t * k + j] < low else low
            high = z[t * k + j] if z[t * k + j] > high else high
        widest = high - low if high - low > widest else widest
    return steps * (lattice.spread + widest) > SAFE_EXPONENT


cdef inline double forward(
    Lattice* lattice, const double* z, Py_ssize_t length
) noexcept nogil:
    """Return ln of the sum over labelings of exp(score), and keep what it is made of."""
    lattice.in_logs = _needs_logs(lattice, z, length)
    if lattice.in_logs:
        return _forward_in_logs(lattice, z, length)
    return _forward_scaled(lattice, z, length)


cdef inline double _forward_scaled(
    Lattice* lattice, const double* z, Py_ssize_t length
) noexcept nogil:
    cdef Py_ssize_t k = lattice.k, t, i, j
    cdef double total = (length - 1) * lattice.top, product = 1.0, high, scale, share
    cdef double* factors = lattice.factors
    cdef double* prefix = lattice.prefix
    cdef const double* before
    cdef const double* row
    for t in range(length):
        high = z[0]
        for j in range(1, k):
            high = z[j] if z[j] > high else high
        for j in range(k):
            factors[j] = exp(z[j] - high)
        total += high
        if t == 0:
            for j in range(k):
                prefix[j] = factors[j]
        else:
            before = prefix - k
            for j in range(k):
                prefix[j] = 0.0
            for i in range(k):
                share = before[i]
                row = lattice.into + i * k
                for j in range(k):
                    prefix[j] += share * row[j]
            for j in range(k):
                prefix[j] *= factors[j]
        scale = 0.0
        for j in range(k):
            scale += prefix[j]
        if not scale > 0.0:
            # No labeling is allowed.
            lattice.scales[t] = 0.0
            return -INFINITY
        lattice.scales[t] = scale
        # One logarithm for several tokens.
        product *= scale
        if not 1e-150 < product < 1e150:
            total += log(product)
            product = 1.0
        scale = 1.0 / scale
        for j in range(k):
            prefix[j] *= scale
        z += k
        factors += k
        prefix += k
    return total + log(product)


cdef inline double _forward_in_logs(
    Lattice* lattice, const double* z, Py_ssize_t length
) noexcept nogil:
    cdef Py_ssize_t k = lattice.k, t, i, j
    cdef double total = 0.0, high, scale, sum
    cdef double* prefix = lattice.prefix
    cdef const double* before
    for t in range(length):
        before = prefix - k
        for j in range(k):
            if t == 0:
                prefix[j] = z[j]
                continue
            high = -INFINITY
            for i in range(k):
                sum = before[i] + lattice.transitions[i * k + j]
                high = sum if sum > high else high
            if high == -INFINITY:
                prefix[j] = -INFINITY
                continue
            scale = 0.0
            for i in range(k):
                scale += exp(before[i] + lattice.transitions[i * k + j] - high)
            prefix[j] = z[j] + high + log(scale)
        scale = log_sum(prefix, k)
        if scale == -INFINITY:
            return -INFINITY
        total += scale
        for j in range(k):
            prefix[j] -= scale
        z += k
        prefix += k
    return total


cdef inline double log_sum(const double* x, Py_ssize_t k) noexcept nogil:
    """Return ln sum exp(x_j)."""
    cdef Py_ssize_t j
    cdef double high = x[0], total = 0.0
    for j in range(1, k):
        high = x[j] if x[j] > high else high
    if high == -INFINITY:
        return high
    for j in range(k):
        total += exp(x[j] - high)
    return high + log(total)


cdef inline void backward(
    Lattice* lattice,
    const double* z,
    Py_ssize_t length,
    double* nodes,
    double* edges,
    double* expected,
    double weight,
) noexcept nogil:
    """Write the marginals of what ``forward`` has summed over.

    Parameters
    ----------
    nodes : array of shape (L, k)
        Receives the probabilities of labels.
    edges : array of shape (L - 1, k, k), or NULL
        Receives the probabilities of pairs of labels of adjacent tokens.
    expected : array of shape (k, k), or NULL
        To which their sums times ``weight`` are added.
    """
    cdef Py_ssize_t k = lattice.k, t, i, j
    cdef double share, mass, scale
    cdef double* coming = lattice.coming
    cdef double* suffix = lattice.suffix
    cdef double* into
    cdef const double* before
    cdef const double* row
    if lattice.in_logs:
        _backward_in_logs(lattice, z, length, nodes, edges, expected, weight)
        return
    nodes += (length - 1) * k
    if edges != NULL:
        edges += (length - 2) * k * k
    before = lattice.prefix + (length - 1) * k
    # Of the label j at token t, prefix[t, j] suffix[j] is the probability, and
    # prefix[t - 1, i] exp(T[i, j] - top) coming[j] that of i before j.
    for j in range(k):
        suffix[j] = 1.0
        nodes[j] = before[j]
    for t in range(length - 1, 0, -1):
        before = lattice.prefix + (t - 1) * k
        nodes -= k
        scale = 1.0 / lattice.scales[t]
        row = lattice.factors + t * k
        for j in range(k):
            coming[j] = row[j] * suffix[j] * scale
            suffix[j] = 0.0
        for j in range(k):
            share = coming[j]
            row = lattice.out_of + j * k
            for i in range(k):
                suffix[i] += row[i] * share
        mass = 0.0
        for i in range(k):
            nodes[i] = before[i] * suffix[i]
            mass += nodes[i]
        # Rounding errors do not add up along the sequence.
        mass = 1.0 / mass
        for i in range(k):
            nodes[i] *= mass
            suffix[i] *= mass
        for j in range(k):
            coming[j] *= mass
        if edges != NULL:
            for i in range(k):
                share = before[i]
                row = lattice.into + i * k
                for j in range(k):
                    edges[i * k + j] = share * row[j] * coming[j]
            if expected != NULL:
                for i in range(k * k):
                    expected[i] += weight * edges[i]
            edges -= k * k
        elif expected != NULL:
            for i in range(k):
                share = weight * before[i]
                row = lattice.into + i * k
                into = expected + i * k
                for j in range(k):
                    into[j] += share * row[j] * coming[j]


cdef inline void _backward_in_logs(
    Lattice* lattice,
    const double* z,
    Py_ssize_t length,
    double* nodes,
    double* edges,
    double* expected,
    double weight,
) noexcept nogil:
    """Do the same with logarithms.

    Marginals are made from those of the first label and of each label given the one
    before, forwards: large scores make these inaccurate, but never inconsistent.
    """
    cdef Py_ssize_t k = lattice.k, t, i, j
    cdef double* suffix = lattice.factors + (length - 1) * k
    cdef double* coming = lattice.coming
    cdef const double* row
    cdef double total, p, share
    for j in range(k):
        suffix[j] = 0.0
    for t in range(length - 1, 0, -1):
        for j in range(k):
            coming[j] = z[t * k + j] + suffix[j]
        suffix -= k
        for i in range(k):
            suffix[i] = _log_sum_of(lattice.transitions + i * k, coming, k)
        total = log_sum(suffix, k)
        for i in range(k):
            suffix[i] -= total
    total = _log_sum_of(lattice.prefix, suffix, k)
    p = 0.0
    for j in range(k):
        nodes[j] = exp(lattice.prefix[j] + suffix[j] - total)
        p += nodes[j]
    for j in range(k):
        nodes[j] /= p
    for t in range(1, length):
        suffix += k
        for j in range(k):
            coming[j] = z[t * k + j] + suffix[j]
            nodes[k + j] = 0.0
        for i in range(k):
            row = lattice.transitions + i * k
            total = _log_sum_of(row, coming, k)
            p = 0.0
            for j in range(k):
                lattice.suffix[j] = 0.0
                if nodes[i] > 0.0:
                    lattice.suffix[j] = exp(row[j] + coming[j] - total)
                p += lattice.suffix[j]
            for j in range(k):
                share = nodes[i] * lattice.suffix[j] / p if p > 0.0 else 0.0
                nodes[k + j] += share
                if edges != NULL:
                    edges[i * k + j] = share
                if expected != NULL:
                    expected[i * k + j] += weight * share
        nodes += k
        if edges != NULL:
            edges += k * k


cdef inline double _log_sum_of(
    const double* x, const double* y, Py_ssize_t k
) noexcept nogil:
    """Return ln sum exp(x_j + y_j)."""
    cdef Py_ssize_t j
    cdef double high = x[0] + y[0], total = 0.0
    for j in range(1, k):
        high = x[j] + y[j] if x[j] + y[j] > high else high
    if high == -INFINITY:
        return high
    for j in range(k):
        total += exp(x[j] + y[j] - high)
    return high + log(total)


cdef inline double best_labels(
    const double* T,
    Py_ssize_t k,
    const double* z,
    Py_ssize_t length,
    const Py_ssize_t* own,
    double* best,
    unsigned short* origins,
    Py_ssize_t* labels,
) noexcept nogil:
    """Find the labeling with the best score (Viterbi 1967), of equal ones the lowest.

    Labels other than ``own``, unless that is NULL, score one more. Rooms ``best`` of
    shape (2, k) and ``origins`` of shape (L, k) are for its own use. Returns the score,
    minus infinity if no labeling is allowed.
    """
    cdef Py_ssize_t t, i, j
    cdef double* now = best
    cdef double* before = best + k
    cdef double* swapped
    cdef double score
    for t in range(length):
        if t == 0:
            for j in range(k):
                now[j] = z[j]
        else:
            swapped = before
            before = now
            now = swapped
            _go_on(T, k, z + t * k, before, now, origins + t * k)
        if own != NULL:
            for j in range(k):
                if j != own[t]:
                    now[j] += 1.0
    i = _largest(now, k)
    score = now[i]
    for t in range(length - 1, 0, -1):
        labels[t] = i
        i = origins[t * k + i]
    labels[0] = i
    return score


cdef inline void _go_on(
    const double* T,
    Py_ssize_t k,
    const double* z,
    const double* before,
    double* now,
    unsigned short* origin,
) noexcept nogil:
    """Write the best scores with one more token by its label, and the label before."""
    cdef Py_ssize_t i, j
    cdef double score, reached
    cdef const double* row
    for j in range(k):
        now[j] = before[0] + T[j]
        origin[j] = 0
    for i in range(1, k):
        reached = before[i]
        row = T + i * k
        for j in range(k):
            score = reached + row[j]
            if score > now[j]:
                now[j] = score
                origin[j] = <unsigned short> i
    for j in range(k):
        now[j] += z[j]


cdef inline Py_ssize_t _largest(const double* x, Py_ssize_t k) noexcept nogil:
    cdef Py_ssize_t i = 0, j
    for j in range(1, k):
        if x[j] > x[i]:
            i = j
    return i


cdef inline double labels_score(
    const double* T,
    Py_ssize_t k,
    const double* z,
    Py_ssize_t length,
    const Py_ssize_t* labels,
) noexcept nogil:
    """Return the score of a labeling."""
    cdef Py_ssize_t t
    cdef double score = z[labels[0]]
    for t in range(1, length):
        score += z[t * k + labels[t]] + T[labels[t - 1] * k + labels[t]]
    return score


cdef struct Violations:
    # Room to find violated margins in.
    bint slack  # whether slacks are rescaled, or margins
    double* best
    unsigned short* origins


cdef inline int open_violations(
    Violations* room, Py_ssize_t k, Py_ssize_t longest, bint slack
) except -1:
    cdef size_t n_best = 2 * k, n_origins = longest * k
    if slack:
        # For each number of wrong labels so far.
        n_best *= longest + 1
        n_origins = n_origins * (longest + 1) // 2
    room.slack = slack
    room.best = <double*> allocate(
        n_best * sizeof(double) + n_origins * sizeof(unsigned short)
    )
    room.origins = <unsigned short*> (room.best + n_best)
    return 0


cdef inline void close_violations(Violations* room) noexcept nogil:
    free(room.best)


cdef inline double most_violated(
    Violations* room,
    const double* T,
    Py_ssize_t k,
    const double* z,
    Py_ssize_t length,
    const Py_ssize_t* own,
    Py_ssize_t* labels,
) noexcept nogil:
    """Find the labeling that the structured hinge is of; return the hinge.

    With Delta the number of labels that are not ``own``, it has the most of Delta +
    score - score(own), or with slack rescaling of Delta (1 + score - score(own)). The
    own labeling, which is allowed, has zero of either.
    """
    cdef double score = labels_score(T, k, z, length, own)
    cdef double most = best_labels(T, k, z, length, own, room.best, room.origins, labels)
    # The own labeling is one of them, but for rounding.
    most = max(most - score, 0.0)
    if room.slack:
        return _most_slack(room, T, k, z, length, own, score, most, labels)
    return most


cdef inline double _most_slack(
    Violations* room,
    const double* T,
    Py_ssize_t k,
    const double* z,
    Py_ssize_t length,
    const Py_ssize_t* own,
    double score,
    double margin,
    Py_ssize_t* labels,
) noexcept nogil:
    """Find the best labelings with each number of wrong labels, and the best of them.

    Of equal ones that with the fewest wrong labels, of these the lowest. The hinge with
    margin rescaling is as much as n + score - score(own) is for any labeling with n
    wrong labels, so that those with n >= margin + 1 have not more than the own one.
    """
    cdef Py_ssize_t most_wrong = <Py_ssize_t> ceil(margin) if margin < length else length
    cdef Py_ssize_t t, i = own[length - 1], j, n, last, n_wrong = 0
    cdef double* now = room.best
    cdef double* before = room.best + (length + 1) * k
    cdef double* swapped
    cdef double most = 0.0, value
    # Entry [n, j] of ``now`` is of label j at token t, with n wrong labels up to there;
    # that of ``origins`` of n wrong labels before it, at most t.
    cdef unsigned short* origins = room.origins
    if most_wrong == 0:
        memcpy(labels, own, length * sizeof(Py_ssize_t))
        return 0.0
    for j in range(k):
        now[j] = -INFINITY
        now[k + j] = z[j]
    now[own[0]] = z[own[0]]
    now[k + own[0]] = -INFINITY
    for t in range(1, length):
        swapped = before
        before = now
        now = swapped
        origins += min(t, most_wrong + 1) * k
        for j in range(k):
            now[j] = -INFINITY
        last = min(t, most_wrong)
        for n in range(last + 1):
            _go_on(
                T, k, z + t * k, before + n * k, now + (n + 1) * k, origins + n * k
            )
            now[n * k + own[t]] = now[(n + 1) * k + own[t]]
        now[(last + 1) * k + own[t]] = -INFINITY
    for n in range(1, most_wrong + 1):
        j = _largest(now + n * k, k)
        value = n * (1.0 + now[n * k + j] - score)
        if value > most:
            most = value
            n_wrong = n
            i = j
    for t in range(length - 1, -1, -1):
        labels[t] = i
        if i != own[t]:
            n_wrong -= 1
        if t > 0:
            i = origins[n_wrong * k + i]
            origins -= min(t, most_wrong + 1) * k
    return most
