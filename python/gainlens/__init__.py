"""gainlens: how much evidence each attention head of a transformer is based on.

    import gainlens
    stats = gainlens.attention_statistics(q, k, v)   # n_eff, entropy, S, K, .. of every query, without T x T

    with gainlens.watch(model) as seen:              # any transformers decoder
        model(input_ids)
    seen.dataset().n_eff.mean("query")

    gainlens.open_run("run")                         # a run of the program, as labelled arrays
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .runs import Run, open_run
from .statistics import UNITS, AttentionStatistics, attention_statistics, keys_of_queries

if TYPE_CHECKING:
    from ._masks import Refused
    from .watching import Seen, watch

__all__ = [
    "FIELDS", "AttentionStatistics", "Refused", "Run", "Seen", "attention_statistics", "keys_of_queries", "open_run",
    "watch",
]
__version__ = "0.1.0"

FIELDS: tuple[str, ...] = tuple(UNITS)
"""The numbers of a query that `watch` can keep."""

_NEED_TRANSFORMERS = ("Refused", "Seen", "watch")


def __getattr__(name: str) -> Any:
    if name in _NEED_TRANSFORMERS:
        try:
            from . import watching as module
        except ModuleNotFoundError as missing:
            raise ImportError(f"gainlens.{name}: needs {missing.name}; pip install 'gainlens[watch]'") from missing
        for word in _NEED_TRANSFORMERS:
            globals()[word] = getattr(module, word)
        return globals()[name]
    raise AttributeError(f"module 'gainlens' has no attribute '{name}'")
