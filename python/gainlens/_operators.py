"""Opens the library of operators, and tells torch about their shapes, their gradients and other devices.

The library is built on torch's stable ABI (python/src/operators.cpp). `keys_of_query` [batch, query, 3] holds, for each
query, the keys [begin, end) that it sees and the origin, the key that is "key 0" of its text. A query with begin >= end
is padding.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import torch

from . import _composed

LIBRARY = pathlib.Path(__file__).with_name("gainlens_operators.so")

if not LIBRARY.exists():
    raise ImportError(f"gainlens: {LIBRARY} is missing; install the package with `pip install .` in its repository")
torch.ops.load_library(str(LIBRARY))

NAMES: list[str] = torch.ops.gainlens.scalar_names().split()
"""Names of the rows of `scalars`, the second result of the operator, in order."""

OPERATOR = "gainlens::attention_statistics"

DIFFERENTIABLE = ("n_eff", "entropy", "residual", "lse")
"""The scalars that have gradients, beside the output and the masses of the first keys."""


@torch.library.register_fake(OPERATOR)
def _shapes(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    keys_of_query: torch.Tensor,
    sink_logit: torch.Tensor | None,
    scale: float,
    soft_cap: float,
    prior_strength: float,
    prior_variance: float,
    prior_precision: float,
    summary: int,
    first_masses: int,
    top_keys: int,
) -> tuple[torch.Tensor, ...]:
    batch, heads, queries, _ = query.shape
    real = torch.float64 if query.dtype == torch.float64 else torch.float32
    rows = (batch, heads, queries)
    return (
        query.new_empty((batch, queries, heads, value.shape[3])).transpose(1, 2),
        query.new_empty((len(NAMES), *rows), dtype=real),
        query.new_empty((*rows, first_masses), dtype=real),
        query.new_empty((*rows, top_keys), dtype=torch.int64),
        query.new_empty((*rows, top_keys), dtype=real),
    )


@torch.library.register_kernel(OPERATOR, ["cuda", "xpu"])
def _on_other_devices(*arguments: Any) -> tuple[torch.Tensor, ...]:
    return _composed.statistics(NAMES, *arguments)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    query, key, value, keys_of_query, sink_logit, scale, soft_cap = inputs[:7]
    ctx.save_for_backward(query, key, value, keys_of_query, sink_logit)
    ctx.scale, ctx.soft_cap, ctx.first_masses, ctx.inputs = scale, soft_cap, inputs[11], len(inputs)
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
    query, key, value, keys_of_query, sink_logit = ctx.saved_tensors
    output, scalars, first_mass = gradients[:3]
    by_name = {} if scalars is None else {name: scalars[NAMES.index(name)] for name in DIFFERENTIABLE}
    found = _composed.gradients(
        query, key, value, keys_of_query, sink_logit, ctx.scale, ctx.soft_cap, output, by_name, first_mass
    )
    rest: Sequence[None] = [None] * (ctx.inputs - 5)
    return (*found[:3], None, found[3], *rest)


torch.library.register_autograd(OPERATOR, _gradients, setup_context=_save)
