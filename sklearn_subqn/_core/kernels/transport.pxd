"""Flows of maximum cost from the relevant to the irrelevant labels of a row."""

from .standard cimport fabs


cdef inline double transport_row(
    const double* u,
    const unsigned char* relevant,
    const double* costs,
    Py_ssize_t l,
    double* left,
    Py_ssize_t* parent,
    double* flow,
) noexcept nogil:
    """Write the flows of one row, by relevant and then by irrelevant label.

    ``left`` is a workspace of 2 l numbers: the remaining supply or demand of each
    label, and its distance, which is minus the cost of the best path to the label.
    ``parent`` is a workspace of 2 l indices: the predecessor of each label, and its
    index among the labels of its kind.
    """
    cdef Py_ssize_t h, j, end, step, n_irrelevant = 0, n_relevant = 0
    cdef double total = 0.0, largest = 0.0, negligible, amount, further
    cdef double* distance = left + l
    cdef Py_ssize_t* place = parent + l
    cdef bint changed
    for j in range(l):
        left[j] = max(0.0, -u[j] if relevant[j] else u[j])
        largest = max(largest, left[j])
        if relevant[j]:
            place[j] = n_relevant
            n_relevant += 1
        else:
            place[j] = n_irrelevant
            n_irrelevant += 1
    for j in range(n_relevant * n_irrelevant):
        flow[j] = 0.0
    negligible = 1e-15 * largest
    while True:
        for j in range(l):
            distance[j] = 0.0 if relevant[j] and left[j] > negligible else 1e300
            parent[j] = -1
        changed = True
        step = 0
        while changed and step < l:
            changed = False
            step += 1
            for h in range(l):
                if not relevant[h] or distance[h] >= 1e300:
                    continue
                for j in range(l):
                    if relevant[j] or u[j] <= 0.0:
                        continue
                    further = distance[h] - costs[h * l + j]
                    if further < distance[j] - 1e-12 * (1.0 + fabs(further)):
                        distance[j], parent[j], changed = further, h, True
            for j in range(l):
                if relevant[j] or distance[j] >= 1e300:
                    continue
                for h in range(l):
                    if not relevant[h]:
                        continue
                    if flow[place[h] * n_irrelevant + place[j]] <= negligible:
                        continue
                    further = distance[j] + costs[h * l + j]
                    if further < distance[h] - 1e-12 * (1.0 + fabs(further)):
                        distance[h], parent[h], changed = further, j, True
        end = -1
        for j in range(l):
            if not relevant[j] and left[j] > negligible and distance[j] < 1e300:
                if end < 0 or distance[j] < distance[end]:
                    end = j
        if end < 0:
            break
        amount = left[end]
        j = end
        step = 0
        while parent[j] >= 0 and step <= 2 * l:
            if relevant[j]:
                amount = min(amount, flow[place[j] * n_irrelevant + place[parent[j]]])
            j = parent[j]
            step += 1
        if step > 2 * l:
            break
        amount = min(amount, left[j])
        left[j] -= amount
        left[end] -= amount
        j = end
        while parent[j] >= 0:
            h = parent[j]
            if relevant[j]:
                flow[place[j] * n_irrelevant + place[h]] -= amount
            else:
                flow[place[h] * n_irrelevant + place[j]] += amount
            j = h
    # Remaining supplies are rounding errors; any assignment of them gives a valid
    # bound.
    for h in range(l):
        for j in range(l):
            if relevant[h] and not relevant[j]:
                amount = min(left[h], left[j])
                left[h] -= amount
                left[j] -= amount
                step = place[h] * n_irrelevant + place[j]
                flow[step] += amount
                total += flow[step] * costs[h * l + j]
    return total
