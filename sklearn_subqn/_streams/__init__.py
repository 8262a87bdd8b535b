"""Base classes of online estimators: ``partial_fit`` on batches, ``fit`` by epochs.

The optimization methods are in ``_core/online``. Modules here may import
``_estimators`` and the layers below.
"""
