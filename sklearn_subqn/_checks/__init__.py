"""Checks of parameters, data and weights, and the errors that name what is accepted."""

from .arrays import (
    check_label_cost,
    check_label_margins,
    check_matrix,
    check_no_file,
    check_no_times,
    check_offset,
    check_range,
    check_rescaling,
    check_start,
    check_targets,
    check_unmasked,
)
from .labels import (
    check_classes,
    check_labels,
    check_no_nul,
    distinct_classes,
    is_missing,
)
from .options import checked_options
from .parameters import check_parameters, warn_of_unused
from .sparse_matrices import check_sparse_structure, plain_csr
from .values import (
    AUTO,
    check_callback,
    check_fraction,
    check_n_jobs,
    check_number,
    check_option,
)
from .weights import (
    as_sample_weights,
    check_class_weight,
    check_sample_weight,
    check_weights,
    class_factors,
    non_negative_weights,
    row_weights,
    total_of,
    weights_of_classes,
)

__all__ = [
    "AUTO",
    "as_sample_weights",
    "check_callback",
    "check_class_weight",
    "check_classes",
    "check_fraction",
    "check_label_cost",
    "check_label_margins",
    "check_labels",
    "check_matrix",
    "check_n_jobs",
    "check_no_file",
    "check_no_nul",
    "check_no_times",
    "check_number",
    "check_offset",
    "check_option",
    "check_parameters",
    "check_range",
    "check_rescaling",
    "check_sample_weight",
    "check_sparse_structure",
    "check_start",
    "check_targets",
    "check_unmasked",
    "check_weights",
    "checked_options",
    "class_factors",
    "distinct_classes",
    "is_missing",
    "non_negative_weights",
    "plain_csr",
    "row_weights",
    "total_of",
    "warn_of_unused",
    "weights_of_classes",
]
