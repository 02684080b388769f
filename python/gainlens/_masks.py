"""From the masks of transformers to the keys that each query sees.

A mask of transformers is a function of (batch row, head, query, key). Where it is a range of keys for each query, as
under causality, windows, padding, packing and chunks, the range says all: O(T) numbers in place of T x T. The function
registered with transformers returns them as int64 [batch, 1, query, 5]: begin and end among the keys that are given,
origin (the key that is "key 0" of the query's text), position of the query, and the number of keys. Every other mask is
refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from transformers import masking_utils

COLUMNS = 5
BEGIN, END, ORIGIN, POSITION, KEYS = range(COLUMNS)
QUERIES_PER_BLOCK = 128


class Refused(RuntimeError):
    """gainlens does not know how to measure this model or this call exactly, so it does not measure it."""


def _captured(function: Callable[..., Any]) -> dict[str, Any]:
    """The variables of an enclosing function that `function` uses."""
    cells = getattr(function, "__closure__", None) or ()
    return dict(zip(function.__code__.co_freevars, (cell.cell_contents for cell in cells)))


def _made_by(function: Callable[..., Any], maker: str) -> bool:
    name = f"{maker}.<locals>."
    return function.__module__ == masking_utils.__name__ and function.__qualname__.startswith(name)


def _parts(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """The mask functions that `function` is put together from."""
    if not hasattr(function, "__code__"):
        return
    yield function
    for captured in _captured(function).values():
        for part in captured if isinstance(captured, tuple) else (captured,):
            if callable(part) and not isinstance(part, torch.Tensor):
                yield from _parts(part)


def _causal_window(function: Callable[..., Any]) -> tuple[bool, int | None]:
    """Whether the mask is plain causality with or without a window, and this window."""
    if function is masking_utils.causal_mask_function:
        return True, None
    if not hasattr(function, "__code__") or not _made_by(function, "and_masks"):
        return False, None
    parts = _captured(function)["mask_functions"]
    if len(parts) != 2 or parts[1] is not masking_utils.causal_mask_function:
        return False, None
    if not _made_by(parts[0], "sliding_window_overlay"):
        return False, None
    window = _captured(parts[0])["sliding_window"]
    return isinstance(window, int), window if isinstance(window, int) else None


def _texts(padding: torch.Tensor | None, batch: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """First position and end of the real tokens of each batch row [batch], of `length` positions."""
    if padding is None:
        return torch.zeros(batch, dtype=torch.int64), torch.full((batch,), length)
    real = padding.detach().to("cpu", torch.bool)
    if real.shape[0] != batch:
        real = real.expand(batch, -1)
    if real.shape[1] != length:
        raise Refused(f"attention_mask: has {real.shape[1]} positions for {length} tokens seen so far; give one number "
                      "for each, with a cache that grows (no static cache)")
    count = real.sum(1)
    first = real.int().argmax(1)
    place = torch.arange(length)
    whole = (place >= first[:, None]) & (place < (first + count)[:, None])
    if bool((whole != real).any()):
        raise Refused("attention_mask: hides tokens in the middle of a row; padding must be on the left or on the "
                      "right")
    return first, first + count


def keys_of_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: Any = 0,
    mask_function: Callable[..., Any] = masking_utils.causal_mask_function,
    attention_mask: torch.Tensor | None = None,
    use_vmap: bool = False,
    device: torch.device | str = "cpu",
    **_: Any,
) -> torch.Tensor:
    """The mask function that is registered with transformers; int64 [batch, 1, query, 5] on the CPU."""
    if isinstance(q_offset, torch.Tensor) or isinstance(kv_offset, torch.Tensor):
        raise Refused("static cache: the number of tokens so far is a tensor; use a cache that grows (DynamicCache)")
    if kv_offset + kv_length != q_offset + q_length:
        raise Refused(f"cache: {kv_length} keys from position {kv_offset} on for queries {q_offset} to "
                      f"{q_offset + q_length - 1}; slots that hold no token, as in a static cache, are not known here. "
                      "Use DynamicCache")
    parts = list(_parts(mask_function))
    for part in parts:
        if part is masking_utils.bidirectional_mask_function or _made_by(part, "sliding_window_bidirectional_overlay"):
            raise Refused("bidirectional attention: queries see later keys; only decoders are measured")
    first, last = _texts(attention_mask, batch_size, q_offset + q_length)
    position = torch.arange(q_offset, q_offset + q_length).expand(batch_size, -1)
    is_padding = (position < first[:, None]) | (position >= last[:, None])
    origin = first[:, None].expand(-1, q_length)
    plain, window = _causal_window(mask_function)
    if plain:
        begin, end = origin, position + 1
        if window is not None:
            begin = torch.maximum(begin, position - window + 1)
        begin, end = begin - kv_offset, end - kv_offset
        if bool((begin.masked_fill(is_padding, 0) < 0).any()):
            if window is None:
                raise Refused("cache: full attention over a cache that has dropped its first keys")
            begin = begin.clamp(min=0)
    else:
        begin, end = _ranges(batch_size, q_length, kv_length, q_offset, kv_offset, mask_function, attention_mask,
                             use_vmap, device)
        packed = [_captured(part)["packed_sequence_mask"] for part in parts
                  if _made_by(part, "packed_sequence_mask_function")]
        if packed:
            number = packed[0].detach().cpu().expand(batch_size, -1)
            changes = torch.cat((torch.ones(batch_size, 1, dtype=torch.bool), number[:, 1:] != number[:, :-1]), 1)
            origin = torch.where(changes, position, -1).cummax(1).values
    begin, end = begin.masked_fill(is_padding, 0), end.masked_fill(is_padding, 0)
    keys = torch.full_like(position, kv_length)
    return torch.stack((begin, end, origin - kv_offset, position, keys), -1)[:, None]


def _ranges(
    batch: int,
    queries: int,
    keys: int,
    q_offset: int,
    kv_offset: int,
    mask_function: Callable[..., Any],
    attention_mask: torch.Tensor | None,
    use_vmap: bool,
    device: torch.device | str,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Begin and end of the keys of each query [batch, query], by evaluating the mask for some queries at a time."""
    begins, ends = [], []
    for first in range(0, queries, QUERIES_PER_BLOCK):
        count = min(QUERIES_PER_BLOCK, queries - first)
        seen = masking_utils.sdpa_mask(
            batch_size=batch, q_length=count, kv_length=keys, q_offset=q_offset + first, kv_offset=kv_offset,
            mask_function=mask_function, attention_mask=attention_mask, allow_is_causal_skip=False,
            allow_is_bidirectional_skip=False, use_vmap=use_vmap, device=device,
        )
        assert seen is not None
        begin, end = ranges_of_booleans(seen)
        begins.append(begin)
        ends.append(end)
    return torch.cat(begins, 1), torch.cat(ends, 1)


def ranges_of_booleans(seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Begin and end of the keys of each query [batch, query] of a mask [batch, head, query, key].

    @raises Refused  the keys of a query are no range, or heads see different keys
    """
    if seen.shape[1] > 1 and bool((seen != seen[:, :1]).any()):
        raise Refused("mask: heads see different keys")
    seen = seen[:, 0]
    count = seen.sum(2)
    begin = seen.int().argmax(2)
    end = torch.where(count > 0, seen.shape[2] - seen.flip(2).int().argmax(2), begin)
    if bool((end - begin != count).any()):
        raise Refused("mask: a query sees keys that are no range, with hidden keys between them; such masks are not "
                      "known")
    return begin.cpu(), end.cpu()


def keys_of_given_mask(mask: torch.Tensor, batch: int, queries: int, keys: int) -> torch.Tensor:
    """The same from a mask [batch, head, query, key] that a model or the user made.

    @raises Refused  it adds more than 0 or minus infinity to the scores
    """
    if mask.dim() != 4 or mask.shape[3] < keys or mask.shape[2] not in (1, queries):
        raise Refused(f"mask: has shape {list(mask.shape)} for {queries} queries and {keys} keys; not known")
    mask = mask[..., :keys]
    if mask.dtype == torch.bool:
        seen = mask
    elif mask.is_floating_point():
        seen = mask == 0
        hidden = mask <= torch.finfo(mask.dtype).min / 2
        if bool((~(seen | hidden)).any()):
            raise Refused("mask: adds numbers other than 0 and minus infinity to the scores (a position bias?); not "
                          "known")
    else:
        raise Refused(f"mask: has dtype {mask.dtype}; not known")
    begin, end = ranges_of_booleans(seen.expand(batch, -1, queries, -1))
    first = torch.where(begin < end, begin, keys).amin(1, keepdim=True)
    offset = keys - queries
    position = torch.arange(offset, keys).expand(batch, -1)
    columns = (begin, end, first.expand(-1, queries), position, torch.full_like(position, keys))
    return torch.stack(columns, -1)[:, None]
