"""Watching the attention of a transformers decoder while it runs."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import re
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from transformers import masking_utils, modeling_utils

from . import _masks
from ._masks import Refused
from .statistics import UNITS, attention_statistics

if TYPE_CHECKING:
    import pandas
    import xarray

DEFAULT_FIELDS = (
    "n_eff", "entropy", "bos_mass", "observation_precision", "kalman_gain", "max_logit", "lse",
)
"""What `watch` keeps unless it is told otherwise."""

KNOWN_IMPLEMENTATIONS = (
    "eager", "sdpa", "flash_attention_2", "flash_attention_3", "flash_attention_4", "flex_attention", None,
)

# Keywords that say nothing about which weights attention computes.
_IGNORED = frozenset(("position_ids", "cache_position", "max_length_q", "max_length_k", "use_cache", "return_dict",
                      "output_hidden_states", "output_router_logits", "num_items_in_batch", "logits_to_keep",
                      "sliding_window", "deterministic"))
_numbers = itertools.count(1)
_probed: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()


class Seen:
    """What `watch` has seen: passes, each with the statistics of every query.

    A pass begins with position 0. Forward calls that continue from a cache, as those of `generate`, extend it: so the
    query axis of a pass is the text so far. Numbers are kept as tensors, O(T) for each head; `dataset` labels them.
    """

    def __init__(self, fields: tuple[str, ...], layers: frozenset[int] | None) -> None:
        self.fields = fields
        self.wanted_layers = layers
        self._passes: list[dict[int, list[dict[str, torch.Tensor]]]] = []
        self._in_forward: dict[int, str] = {}
        self._length = 0

    @property
    def passes(self) -> int:
        """How many passes were seen."""
        return len(self._passes)

    @property
    def layers(self) -> list[int]:
        """The layers of the last pass."""
        return sorted(self._passes[-1]) if self._passes else []

    def clear(self) -> None:
        """Forgets all passes."""
        self._passes, self._in_forward, self._length = [], {}, 0

    def _begin_forward(self) -> None:
        self._in_forward = {}

    def _add(self, layer: int, module: str, position: int, queries: int, numbers: dict[str, torch.Tensor]) -> None:
        if layer in self._in_forward:
            raise Refused(f"layer {layer}: two attentions in one forward call, {self._in_forward[layer]} and {module}; "
                          "not known")
        if not self._in_forward:  # the first layer of a forward call
            if position == 0 or not self._passes:
                self._passes.append({})
                self._length = 0
            if position != self._length:
                raise Refused(f"cache: a call begins at position {position}, but {self._length} positions were seen; "
                              "begin the text inside of the `with` block")
            self._length = position + queries
        elif self._length != position + queries:
            raise Refused("layers: one forward call has layers with different numbers of queries; not known")
        self._in_forward[layer] = module
        self._passes[-1].setdefault(layer, []).append(numbers)

    def dataset(self, index: int = -1) -> xarray.Dataset:
        """A pass as an xarray Dataset: each field of `fields` with the axes (batch, layer, head, query).

        index  which pass; the last by default

        NaN: the query is padding, or the layer has fewer heads. The coordinate `position` (batch, query) counts in the
        text of the query; -1 for padding. Units and meanings are attributes.
        """
        import numpy
        import xarray

        if not self._passes:
            raise ValueError("watch: nothing was seen; call the model inside of the `with` block")
        chosen = self._passes[index]
        layers = sorted(chosen)
        joined = {layer: {name: torch.cat([part[name] for part in chosen[layer]], -1) for name in chosen[layer][0]}
                  for layer in layers}
        shapes = {joined[layer][self.fields[0]].shape for layer in layers}
        if len({(shape[0], shape[2]) for shape in shapes}) > 1:
            raise Refused("layers: saw different numbers of queries; not known")
        heads = max(shape[1] for shape in shapes)
        variables = {}
        for name in self.fields:
            stacked = []
            for layer in layers:
                numbers = joined[layer][name]
                missing = heads - numbers.shape[1]
                stacked.append(torch.nn.functional.pad(numbers, (0, 0, 0, missing), value=torch.nan).cpu().numpy())
            unit, meaning = UNITS[name]
            variables[name] = (("batch", "layer", "head", "query"), numpy.stack(stacked, 1),
                               {"units": unit, "long_name": meaning})
        position = joined[layers[0]]["position"].numpy()
        return xarray.Dataset(
            variables,
            coords={
                "batch": numpy.arange(position.shape[0]),
                "layer": numpy.array(layers),
                "head": numpy.arange(heads),
                "query": numpy.arange(position.shape[1]),
                "position": (("batch", "query"), position, {"long_name": "position in the query's text; -1: padding"}),
            },
        )

    def to_pandas(self, index: int = -1) -> pandas.DataFrame:
        """The same as a data frame, with the index (batch, layer, head, query)."""
        frame: pandas.DataFrame = self.dataset(index).to_dataframe()
        return frame


class _Attention:
    """The attention function of one `watch`."""

    def __init__(self, model: torch.nn.Module, seen: Seen) -> None:
        self.seen = seen
        self.names = {id(module): name for name, module in model.named_modules()}
        self.thread = threading.get_ident()
        self.recording = True
        self.called = False

    def __call__(
        self,
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        dropout: float = 0.0,
        scaling: float | None = None,
        is_causal: bool | None = None,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, None]:
        self.called = True
        name = self.names.get(id(module))
        if name is None or threading.get_ident() != self.thread:
            raise Refused(f"{type(module).__name__}: is not a part of the model that is watched, or runs in another "
                          "thread; copies of a model (DataParallel) are not watched")
        where = f"{name} ({type(module).__name__})"
        if dropout:
            raise Refused(f"{where}: dropout of {dropout} on the attention weights; call model.eval(), or set it to 0")
        softcap, sinks = kwargs.pop("softcap", None), kwargs.pop("s_aux", None)
        lengths = kwargs.pop("cu_seq_lens_q", None), kwargs.pop("cu_seq_lens_k", None)
        if kwargs.get("output_attentions"):
            raise Refused(f"{where}: output_attentions asks for T x T weights, which are never formed; leave it out")
        unknown = [word for word, given in kwargs.items()
                   if given is not None and given is not False and word not in _IGNORED]
        if unknown:
            raise Refused(f"{where}: the keyword '{unknown[0]}' is not known here and may change the weights")
        columns = self._columns(where, module, query, key, attention_mask, is_causal, kwargs.get("sliding_window"))
        if lengths[0] is not None or lengths[1] is not None:
            columns = _within_sequences(where, columns, *lengths)
        if key.shape[1] == 0 or query.shape[1] % key.shape[1] != 0:
            raise Refused(f"{where}: {query.shape[1]} query heads over {key.shape[1]} kv heads")
        layer = self._layer(name, module)
        kept = self.recording and (self.seen.wanted_layers is None or layer in self.seen.wanted_layers)
        stats = attention_statistics(
            query, key, value,
            softcap=softcap, sinks=sinks, scale=scaling,
            keys_of_query=columns[:, 0, :, :3].contiguous(),
            first_masses=1 if kept and "bos_mass" in self.seen.fields else 0,
        )
        if kept:
            numbers = {field: _field(stats, field) for field in self.seen.fields}
            place = columns[:, 0]
            numbers["position"] = _position_in_text(place)
            self.seen._add(layer, name, int(place[0, 0, _masks.POSITION]), query.shape[2], numbers)
        return stats.output.transpose(1, 2), None

    def _layer(self, name: str, module: torch.nn.Module) -> int:
        layer = getattr(module, "layer_idx", None)
        if isinstance(layer, int):
            return layer
        numbers = re.findall(r"\.(\d+)(?:\.|$)", name)
        if not numbers:
            raise Refused(f"{name}: has no layer_idx and no number in its name")
        return int(numbers[0])

    @staticmethod
    def _columns(
        where: str,
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        mask: torch.Tensor | None,
        is_causal: bool | None,
        window: int | None,
    ) -> torch.Tensor:
        batch, queries, keys = query.shape[0], query.shape[2], key.shape[2]
        if mask is None:  # the model did not ask for a mask
            causal = getattr(module, "is_causal", None) if is_causal is None else is_causal
            if queries > 1 and causal is not True:
                raise Refused(f"{where}: bidirectional attention; only decoders are measured")
            if window is not None and keys > window:
                raise Refused(f"{where}: a window of {window} without a mask")
            if queries not in (1, keys):
                raise Refused(f"{where}: {queries} queries over {keys} keys without a mask")
            position = torch.arange(keys - queries, keys).expand(batch, -1)
            zero = torch.zeros_like(position)
            return torch.stack((zero, position + 1, zero, position, zero + keys), -1)[:, None]
        if not isinstance(mask, torch.Tensor):
            raise Refused(f"{where}: a mask of type {type(mask).__name__}")
        if mask.dtype != torch.int64:
            try:
                return _masks.keys_of_given_mask(mask.detach(), batch, queries, keys)
            except Refused as refused:
                raise Refused(f"{where}: {refused}") from None
        if mask.dim() != 4 or mask.shape[1] != 1 or mask.shape[2:] != (queries, _masks.COLUMNS):
            raise Refused(f"{where}: changed the mask to shape {list(mask.shape)}, for {queries} queries")
        columns = mask.to("cpu").expand(batch, -1, -1, -1)
        if int(columns[0, 0, 0, _masks.KEYS]) != keys:
            raise Refused(f"{where}: {keys} keys, but the mask was made for {int(columns[0, 0, 0, _masks.KEYS])}")
        return columns


def _field(stats: Any, name: str) -> torch.Tensor:
    numbers = getattr(stats, name)
    if numbers is None:  # no sink logits in this layer
        numbers = torch.zeros_like(stats.n_eff).masked_fill(stats.n_eff.isnan(), torch.nan)
    kept: torch.Tensor = numbers.detach().clone()
    return kept


def _position_in_text(columns: torch.Tensor) -> torch.Tensor:
    """[batch, query] int64, from columns [batch, query, 5]: counted from the origin; -1 for padding."""
    position = columns[..., _masks.POSITION]
    kv_offset = position[:, -1:] + 1 - columns[:, -1:, _masks.KEYS]
    in_text = position - kv_offset - columns[..., _masks.ORIGIN]
    return in_text.masked_fill(columns[..., _masks.BEGIN] >= columns[..., _masks.END], -1)


def _within_sequences(
    where: str, columns: torch.Tensor, query_bounds: torch.Tensor | None, key_bounds: torch.Tensor | None
) -> torch.Tensor:
    """Keeps each query within its packed sequence, by the cumulative lengths that were given."""
    if query_bounds is None or key_bounds is None or not torch.equal(query_bounds, key_bounds):
        raise Refused(f"{where}: cu_seq_lens of queries and keys must both be given and be the same")
    bounds = query_bounds.detach().to("cpu", torch.int64)
    batch, _, queries, _ = columns.shape
    if batch != 1 or int(bounds[0]) != 0 or int(bounds[-1]) != queries or int(columns[0, 0, 0, _masks.KEYS]) != queries:
        raise Refused(f"{where}: cu_seq_lens must cover one row of a batch from 0 to its end, without a cache")
    start = bounds[torch.searchsorted(bounds, torch.arange(queries), right=True) - 1]
    columns = columns.clone()
    columns[0, 0, :, _masks.BEGIN] = torch.maximum(columns[0, 0, :, _masks.BEGIN], start)
    columns[0, 0, :, _masks.ORIGIN] = start
    return columns


def _check_model(model: torch.nn.Module) -> Any:
    if not isinstance(model, modeling_utils.PreTrainedModel):
        raise Refused(f"watch: {type(model).__name__} is no transformers model; pass the PreTrainedModel itself")
    config = model.config
    if getattr(config, "is_encoder_decoder", False):
        raise Refused(f"watch: {type(model).__name__} has an encoder and a decoder; only decoders are measured")
    if not type(model)._can_set_attn_implementation():
        raise Refused(f"watch: {type(model).__name__} computes attention in its own code, not by the attention "
                      "interface")
    if model.training and getattr(model, "is_gradient_checkpointing", False):
        raise Refused("watch: gradient checkpointing computes attention twice; switch it off")
    text = config.get_text_config(decoder=True)
    name = text._attn_implementation
    if name not in KNOWN_IMPLEMENTATIONS:
        raise Refused(f"watch: the attention '{name}' was registered by others, and what it computes is not known "
                      "here; call model.set_attn_implementation('sdpa') or 'eager' first")
    return text


@contextlib.contextmanager
def _implementation(model: torch.nn.Module, text: Any, name: str) -> Iterator[None]:
    """Sets the attention of the text part, in every copy of its configuration."""
    configs = {id(text): text}
    for module in model.modules():
        config = getattr(module, "config", None)
        if type(config) is type(text):
            configs[id(config)] = config
    before = [(config, config._attn_implementation_internal) for config in configs.values()]
    try:
        for config, _ in before:
            config._attn_implementation_internal = name
        yield
    finally:
        for config, old in before:
            config._attn_implementation_internal = old


def _logits(output: Any) -> torch.Tensor:
    for name in ("logits", "last_hidden_state"):
        if getattr(output, name, None) is not None:
            found: torch.Tensor = getattr(output, name)
            return found
    raise Refused("watch: the model returns neither logits nor last_hidden_state")


PROBE_TOKENS = 24


def _probe(model: torch.nn.Module, text: Any, name: str, given: Mapping[str, torch.Tensor] | None) -> None:
    """Compares the model with itself under its own attention, and asks whether a later token changes earlier ones."""
    generator = torch.Generator().manual_seed(0)
    device = next(model.parameters()).device
    if given is None:
        special = {number for config in (model.config, text) for key, number in vars(config).items()
                   if key.endswith(("_token_id", "_token_index")) and isinstance(number, int)}
        allowed = torch.tensor([i for i in range(min(text.vocab_size, 4096)) if i not in special])
        draw = torch.randint(len(allowed), (1, PROBE_TOKENS), generator=generator)
        inputs: dict[str, Any] = {"input_ids": allowed[draw].to(device)}
    else:
        inputs = dict(given)
    if "use_cache" in inspect.signature(model.forward).parameters:
        inputs["use_cache"] = False
    changed = dict(inputs)
    ids = inputs["input_ids"]
    changed["input_ids"] = ids.clone()
    changed["input_ids"][:, -1] = ids[:, 0] if bool((ids[:, 0] != ids[:, -1]).all()) else ids[:, 1]
    if bool((changed["input_ids"] == ids).all()):
        raise Refused("watch: the probe needs two different tokens")
    training = [module for module in model.modules() if module.training]
    try:
        for module in training:
            module.training = False
        with torch.no_grad():
            own = _logits(model(**inputs)).double()
            with _implementation(model, text, name):
                ours, after = (_logits(model(**batch)).double() for batch in (inputs, changed))
    finally:
        for module in training:
            module.training = True
    half = next(model.parameters()).dtype in (torch.float16, torch.bfloat16)
    largest = float(own.abs().max())
    limit = (5e-2 if half else 1e-4) * max(largest, 1e-30)
    difference = float((own - ours).abs().max())
    if not difference <= limit:
        raise Refused(f"watch: the logits differ by {difference:.2g} from those of the model's own attention (largest "
                      f"{largest:.2g}); the model does something with attention that is not known here")
    leak = float((ours[:, :-1] - after[:, :-1]).abs().max())
    if not leak <= (2e-2 if half else 1e-5) * max(largest, 1e-30):
        raise Refused(f"watch: changing the last token changes earlier logits by {leak:.2g}; the model is not causal")


@contextlib.contextmanager
def watch(
    model: torch.nn.Module,
    layers: Iterable[int] | None = None,
    fields: Iterable[str] | None = None,
    *,
    probe_inputs: Mapping[str, torch.Tensor] | None = None,
) -> Iterator[Seen]:
    """Measures the attention of a transformers decoder while it runs, with memory of O(T) for each head.

        with gainlens.watch(model) as seen:
            model(input_ids)
        seen.dataset().n_eff.mean("query")

    model         a PreTrainedModel with eager, sdpa, flash or flex attention, on the CPU or a GPU
    layers        which layers are kept; all by default
    fields        which numbers are kept: of gainlens.FIELDS; DEFAULT_FIELDS by default
    probe_inputs  keyword arguments of a call that the probe makes, with `input_ids`; 24 random tokens by default

    Inside of the block, attention and masks of the model are ours, under one private name; its own come back at the
    end. Before the first block of a model, three short calls test that its logits are those of its own attention, and
    that a later token changes nothing before it. Padding on the left or right is exact: keys of padding take no
    weight, queries of padding are NaN. What is not known exactly is refused.

    @raises gainlens.Refused  with the name of what is not known: a keyword, a mask, a cache, an attention of others
    """
    chosen = tuple(DEFAULT_FIELDS if fields is None else fields)
    for name in chosen:
        if name not in UNITS:
            raise ValueError(f"watch: '{name}' is no field; take some of {', '.join(UNITS)}")
    if not chosen:
        raise ValueError("watch: fields is empty; name at least one")
    text = _check_model(model)
    wanted = None if layers is None else frozenset(int(layer) for layer in layers)
    depth = getattr(text, "num_hidden_layers", None)
    for layer in wanted or ():
        if layer < 0 or (depth is not None and layer >= depth):
            raise ValueError(f"watch: layer {layer}; the model has layers 0 to {(depth or 0) - 1}")
    seen = Seen(chosen, wanted)
    attention = _Attention(model, seen)
    own_name = f"gainlens_{next(_numbers)}"
    modeling_utils.ALL_ATTENTION_FUNCTIONS.register(own_name, attention)
    masking_utils.ALL_MASK_ATTENTION_FUNCTIONS.register(own_name, _masks.keys_of_mask)
    try:
        if model not in _probed:
            attention.recording = False
            _probe(model, text, own_name, probe_inputs)
            attention.recording = True
            if not attention.called:
                raise Refused(f"watch: {type(model).__name__} has no layer that calls the attention interface")
            _probed.add(model)
        hooks = [part.register_forward_pre_hook(lambda *_: seen._begin_forward())
                 for part in model.modules() if isinstance(part, modeling_utils.PreTrainedModel)]
        try:
            with _implementation(model, text, own_name):
                yield seen
        finally:
            for hook in hooks:
                hook.remove()
    finally:
        type(modeling_utils.ALL_ATTENTION_FUNCTIONS)._global_mapping.pop(own_name, None)
        type(masking_utils.ALL_MASK_ATTENTION_FUNCTIONS)._global_mapping.pop(own_name, None)
