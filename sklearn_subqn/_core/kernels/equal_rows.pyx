"""Groups of equal rows."""

from .rows cimport allocate, index, same_length
from .standard cimport free, memcmp, memcpy, memset

ctypedef unsigned long long word


def add_to_hashes(
    const unsigned char[::1] data,
    const index[::1] bounds,
    Py_ssize_t size,
    word[::1] hashes,
):
    """Update the hashes of rows by the bytes of the rows.

    Parameters
    ----------
    data : ndarray of uint8
        The bytes of the entries of all rows.
    bounds : ndarray of shape (n + 1,)
        Row i has the entries from ``bounds[i]`` to ``bounds[i + 1]``.
    size : int
        Bytes of an entry.
    hashes : ndarray of shape (n,)
        Changed in place.
    """
    cdef Py_ssize_t n = hashes.shape[0], i, j, end
    cdef word h, bytes
    cdef unsigned int four
    _check(data, bounds, size, n)
    with nogil:
        for i in range(n):
            j, end = size * bounds[i], size * bounds[i + 1]
            h = hashes[i] + <word> (end - j)
            while j < end:
                bytes = 0
                # Copies of a constant size are single instructions.
                if end - j >= 8:
                    memcpy(&bytes, &data[j], 8)
                elif end - j == 4:
                    memcpy(&four, &data[j], 4)
                    bytes = four
                else:
                    memcpy(&bytes, &data[j], end - j)
                # Two factors (Stafford 2011) mix the exponents of round numbers, whose
                # other bits are zero, into all bits.
                h = (h ^ bytes) * <word> 0xBF58476D1CE4E5B9
                h = (h ^ (h >> 27)) * <word> 0x94D049BB133111EB
                h ^= h >> 31
                j += 8
            hashes[i] = h


def group_hashes(
    const word[::1] hashes, Py_ssize_t[::1] groups, Py_ssize_t[::1] first
):
    """Write the group of rows with the same hash, numbered by the first row of each.

    Parameters
    ----------
    hashes, groups : ndarray of shape (n,)
    first : ndarray of shape (most,)
        First row of each group.

    Returns
    -------
    int
        Number of groups, or ``most + 1`` as soon as there are more than ``most``.
    """
    cdef Py_ssize_t n = hashes.shape[0], most = first.shape[0], n_groups = 0, i, slot
    cdef Py_ssize_t n_slots = 2
    cdef Py_ssize_t group
    same_length(n, groups.shape[0])
    while n_slots < 2 * most:
        n_slots *= 2
    cdef Py_ssize_t* slots = <Py_ssize_t*> allocate(n_slots * sizeof(Py_ssize_t))
    with nogil:
        memset(slots, -1, n_slots * sizeof(Py_ssize_t))
        for i in range(n):
            slot = <Py_ssize_t> (hashes[i] & <word> (n_slots - 1))
            group = slots[slot]
            while group >= 0 and hashes[first[group]] != hashes[i]:
                slot = (slot + 1) & (n_slots - 1)
                group = slots[slot]
            if group < 0:
                if n_groups == most:
                    n_groups += 1
                    break
                group = slots[slot] = n_groups
                first[group] = i
                n_groups += 1
            groups[i] = group
    free(slots)
    return n_groups


def are_equal(
    const unsigned char[::1] data,
    const index[::1] bounds,
    Py_ssize_t size,
    const Py_ssize_t[::1] groups,
    const Py_ssize_t[::1] first,
):
    """Return whether each row equals the first row of its group.

    See ``add_to_hashes`` and ``group_hashes`` for the parameters.
    """
    cdef Py_ssize_t n = groups.shape[0], i, j, row, other, length
    cdef bint equal = True
    _check(data, bounds, size, n)
    with nogil:
        for i in range(n):
            row = first[groups[i]]
            j, other = size * bounds[i], size * bounds[row]
            length = size * bounds[i + 1] - j
            if length != size * bounds[row + 1] - other or (
                length > 0 and memcmp(&data[j], &data[other], length) != 0
            ):
                equal = False
                break
    return equal


cdef int _check(
    const unsigned char[::1] data, const index[::1] bounds, Py_ssize_t size, Py_ssize_t n
) except -1:
    same_length(n, bounds.shape[0] - 1)
    if not 0 <= size * bounds[0] <= size * bounds[n] <= data.shape[0]:
        raise ValueError("rows are outside of the data.")
    return 0
