"""Dual coordinate ascent over sequences of chains, for the structured hinge.

``labeling_steps.pxd`` has the steps for one sequence.

Arrays of features are described in ``chain_ascent``. In ``w``, the parameters of
transitions follow the parameters of pairs.
"""

from .chain_features cimport check_features, gather, set_patterns, soft, write_scores
from .labeling_steps cimport shift, step_towards, take_steps
from .labelings cimport (
    Block,
    Labeling,
    Visit,
    drop_idle,
    keep,
    kept_labeling,
    new_labeling,
)
from .lattice cimport padded
from .rows cimport allocate
from .standard cimport free, memcpy, memset
from .viterbi cimport close_violations, most_violated, open_violations


cdef class Labelings:
    """Working sets of labelings of n sequences, with convex weights."""

    cdef Block* blocks
    cdef Py_ssize_t n
    cdef readonly Py_ssize_t n_bytes  # memory of all labelings

    def __cinit__(self, Py_ssize_t n):
        self.n = n
        self.n_bytes = 0
        self.blocks = <Block*> allocate(max(n, 1) * sizeof(Block))
        memset(self.blocks, 0, n * sizeof(Block))

    def __dealloc__(self):
        if self.blocks != NULL:
            self.clear()
            free(self.blocks)

    cpdef clear(self):
        """Reset the working sets to the true labels."""
        cdef Py_ssize_t i
        cdef Block* block
        cdef Labeling* y
        for i in range(self.n):
            block = self.blocks + i
            while block.first != NULL:
                y = block.first
                block.first = y.next
                free(y)
            free(block.products)
            block.products = NULL
            block.n_slots = 0
        self.n_bytes = 0

    def write(
        self,
        const Py_ssize_t[::1] starts,
        const Py_ssize_t[::1] targets,
        const double[::1] weights,
        double[:, ::1] nodes,
        double[:, ::1] pairs,
        double[::1] costs,
    ):
        """Write the dual: u of labels, (T, k), and of pairs, (k, k), and mean costs.

        ``nodes`` and ``pairs`` must be zero.
        """
        cdef Py_ssize_t i, t, start, length
        cdef double share
        cdef Labeling* y
        cdef const Py_ssize_t* truth
        self._check(starts, targets, weights.shape[0])
        if nodes.shape[0] != targets.shape[0] or costs.shape[0] != self.n:
            raise ValueError("arrays of tokens or sequences differ in length.")
        with nogil:
            for i in range(self.n):
                start, length = starts[i], starts[i + 1] - starts[i]
                truth = &targets[start]
                costs[i] = 0.0
                y = self.blocks[i].first
                while y != NULL:
                    costs[i] += y.share * y.cost
                    share = weights[i] * y.share * y.rate
                    if share > 0.0:
                        for t in range(length):
                            if y.labels[t] != truth[t]:
                                nodes[start + t, y.labels[t]] += share
                                nodes[start + t, truth[t]] -= share
                            if t > 0:
                                pairs[y.labels[t - 1], y.labels[t]] += share
                                pairs[truth[t - 1], truth[t]] -= share
                    y = y.next

    cdef int _check(
        self,
        const Py_ssize_t[::1] starts,
        const Py_ssize_t[::1] targets,
        Py_ssize_t n,
    ) except -1:
        if starts.shape[0] != self.n + 1 or n != self.n:
            raise ValueError("arrays of sequences differ in length.")
        if targets.shape[0] != starts[self.n]:
            raise ValueError("arrays of tokens differ in length.")
        return 0


def sweep(
    Labelings labelings,
    const double[::1] data,
    const int[::1] local,
    const Py_ssize_t[::1] indptr,
    const Py_ssize_t[::1] starts,
    const int[::1] own,
    const Py_ssize_t[::1] own_ptr,
    const int[::1] ptr,
    const unsigned short[::1] labels,
    const unsigned char[::1] mask,
    Py_ssize_t stride,
    double threshold,
    const double[::1] steps,
    const Py_ssize_t[::1] targets,
    double[::1] w,
    double[::1] scratch,
    const double[:, ::1] pattern,
    const int[::1] of_pairs,
    const double[:, ::1] ends,
    bint slack,
    const Py_ssize_t[::1] order,
    bint infer,
    const Py_ssize_t[::1] given,
    double[::1] gaps,
):
    """Take ascent steps for each sequence, in the given order.

    Parameters
    ----------
    steps : ndarray of shape (n,)
        Weights of sequences divided by alpha; zero skips the sequence.
    targets : ndarray of shape (T,)
        The true labels.
    w : ndarray
        Parameters of pairs and of m transitions, changed in place.
    scratch : ndarray of the shape of w
        Workspace of zeros.
    pattern : ndarray of shape (k, k)
        Minus infinity where a transition is forbidden, else zero.
    of_pairs : ndarray of shape (k * k,)
        For each pair of labels, the index among the m transitions with a parameter, or
        -1.
    ends : ndarray of shape (2, k)
        Zero or minus infinity, added to the scores of first and last tokens.
    slack : bool
        Whether the hinge has slack rescaling.
    infer : bool
        Whether to add the most violated labeling to the working set before the steps.
    given : ndarray of shape (T,) or None
        Labelings that receive weight one, instead of steps.
    gaps : ndarray of shape (n,)
        Receives, in sweeps without inference, the gap of each sequence within its
        working set.
    """
    cdef Py_ssize_t k = pattern.shape[0], width = padded(k), n_pairs, o, i, j, t
    cdef Py_ssize_t longest = 1, max_features = 1, entries = 1
    cdef bint failed = False
    cdef double* workspace
    cdef Labeling* y
    cdef Block* block
    cdef Visit v
    check_features(
        local, indptr, starts, own, own_ptr, ptr, labels, mask, w, stride, k, order
    )
    labelings._check(starts, targets, steps.shape[0])
    n_pairs = w.shape[0]
    for j in range(k * k):
        n_pairs -= of_pairs[j] >= 0
    if pattern.shape[1] != k or of_pairs.shape[0] != k * k:
        raise ValueError("transitions differ in number.")
    if ends.shape[0] != 2 or ends.shape[1] != k:
        raise ValueError("labels and what sequences may begin and end with differ.")
    if scratch.shape[0] != w.shape[0] or w.shape[0] > 2**31 - 1 or n_pairs < 0:
        raise ValueError("parameters differ in number, or are too many.")
    if gaps.shape[0] != steps.shape[0]:
        raise ValueError("arrays of sequences differ in length.")
    if given is not None and given.shape[0] != targets.shape[0]:
        raise ValueError("arrays of tokens differ in length.")
    for o in range(order.shape[0]):
        i = order[o]
        longest = max(longest, starts[i + 1] - starts[i])
        max_features = max(max_features, own_ptr[i + 1] - own_ptr[i])
        entries = max(entries, indptr[starts[i + 1]] - indptr[starts[i]])
    v.p.k, v.p.width, v.p.stride = k, width, stride
    v.p.ptr = &ptr[0]
    v.p.labels = &labels[0] if labels.shape[0] else NULL
    v.p.mask = &mask[0] if mask.shape[0] else NULL
    v.p.w = &w[0] if w.shape[0] else NULL
    v.p.threshold = threshold
    set_patterns(&v.p)
    v.features.data = &data[0] if data.shape[0] else NULL
    v.features.local = &local[0] if local.shape[0] else NULL
    v.scratch = &scratch[0] if scratch.shape[0] else NULL
    v.n_bytes = 0
    v.of_pairs, v.ends = &of_pairs[0], &ends[0, 0]
    workspace = <double*> allocate(
        (longest * (width + 1) + k * k + max_features * width) * sizeof(double)
        + 2 * (entries + longest) * sizeof(int)
    )
    v.z = workspace
    v.T = v.z + longest * width
    v.features.params = v.T + k * k
    v.worst = <Py_ssize_t*> (v.features.params + max_features * width)
    v.touched = <int*> (v.worst + longest)
    try:
        open_violations(&v.violations, k, longest, slack)
    except MemoryError:
        free(workspace)
        raise
    with nogil:
        for o in range(order.shape[0]):
            i = order[o]
            if steps[i] == 0.0:
                continue
            v.features.length = starts[i + 1] - starts[i]
            v.step = steps[i]
            block = labelings.blocks + i
            v.truth = &targets[starts[i]]
            v.features.indptr = &indptr[starts[i]]
            v.features.size = own_ptr[i + 1] - own_ptr[i]
            v.features.own = &own[0] + own_ptr[i]
            if given is not None:
                memcpy(
                    v.worst, &given[starts[i]],
                    v.features.length * sizeof(Py_ssize_t),
                )
            elif infer:
                labelings.n_bytes -= drop_idle(&block.first)
                _find_worst(&v, pattern, n_pairs)
            if given is not None or infer:
                t = 0
                while t < v.features.length and v.worst[t] == v.truth[t]:
                    t += 1
                if t < v.features.length and kept_labeling(&v, block.first, v.worst) == NULL:
                    y = new_labeling(&v, v.worst, slack, n_pairs)
                    if y == NULL:
                        failed = True
                        break
                    if not keep(&v, block, y):
                        free(y)
                        failed = True
                        break
                    v.n_bytes += y.n_bytes
            if given is not None:
                y = kept_labeling(&v, block.first, v.worst)
                if y != NULL:
                    shift(&v, y, 1.0)
            elif infer:
                y = kept_labeling(&v, block.first, v.worst)
                step_towards(&v, block, y)
            else:
                gaps[i] = take_steps(&v, block)
        close_violations(&v.violations)
        free(workspace)
    labelings.n_bytes += v.n_bytes
    if failed:
        raise MemoryError("no room for the labelings of a sequence.")


cdef void _find_worst(
    Visit* v, const double[:, ::1] pattern, Py_ssize_t n_pairs
) noexcept nogil:
    """Find the most violated labeling of the sequence."""
    cdef Py_ssize_t k = v.p.k, width = v.p.width, length = v.features.length, j, t
    gather(&v.features, &v.p)
    write_scores(&v.features, &v.p, v.z)
    for j in range(k * k):
        v.T[j] = pattern[j // k, j % k]
        if v.of_pairs[j] >= 0:
            v.T[j] += soft(v.p.w[n_pairs + v.of_pairs[j]], v.p.threshold)
    for t in range(length):
        for j in range(k):
            v.z[t * k + j] = v.z[t * width + j]
    for j in range(k):
        v.z[j] += v.ends[j]
        v.z[(length - 1) * k + j] += v.ends[k + j]
    most_violated(&v.violations, v.T, k, v.z, length, v.truth, v.worst)
