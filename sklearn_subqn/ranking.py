"""Linear ranking with the parameters of LightGBM's ranker, and a proven gap."""

from ._dropin.ranking import Ranker

__all__ = ["Ranker"]

for _name in __all__:
    globals()[_name].__module__ = __name__
