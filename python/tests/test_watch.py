"""`watch` against the eager attention of transformers and T x T formulas, family by family; what it refuses."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

transformers = pytest.importorskip("transformers")
xarray = pytest.importorskip("xarray")

import torch
from transformers import masking_utils, modeling_utils

import gainlens
import oracle
from families import FAMILIES, small_model

ALL_FIELDS = ("n_eff", "entropy", "bos_mass", "residual", "observation_precision", "kalman_gain", "max_logit", "lse",
              "without_first_n_eff", "kalman_gain_scaled")

FLOAT32 = 5e-4  # of two passes in float32 that are computed in different ways


class Eager:
    """Keeps the weights and values of the model's own eager attention."""

    def __init__(self):
        self.layers = {}

    def __call__(self, module, query, key, value, mask, **kwargs):
        own = sys.modules[type(module).__module__].eager_attention_forward
        output, weights = own(module, query, key, value, mask, **kwargs)
        self.layers[module.layer_idx] = weights.double(), value.double()
        return output, weights


def eager_weights(model, **inputs):
    """The output, and by layer the weights [B, H, T, S] and values [B, KV, S, d] of the eager attention."""
    eager = Eager()
    modeling_utils.ALL_ATTENTION_FUNCTIONS.register("test_eager", eager)
    masking_utils.ALL_MASK_ATTENTION_FUNCTIONS.register("test_eager", masking_utils.eager_mask)
    before = model.config._attn_implementation
    try:
        model.config._attn_implementation = "test_eager"
        with torch.no_grad():
            output = model(**inputs)
    finally:
        model.config._attn_implementation = before
        modeling_utils.AttentionInterface._global_mapping.pop("test_eager")
        masking_utils.AttentionMaskInterface._global_mapping.pop("test_eager")
    return output, eager.layers


def formulas(weights, values, origin):
    """T x T formulas: weights [B, H, T, S] (without the sink), values [B, KV, S, d], origin [B]."""
    group = weights.shape[1] // values.shape[1]
    v = values.repeat_interleave(group, 1)
    first = torch.stack([weights[b, :, :, o] for b, o in enumerate(origin)])
    p = weights / weights.sum(-1, keepdim=True)
    n_eff = 1 / (p**2).sum(-1)
    e = p @ v
    S = torch.stack([(p[:, :, t, :, None] * (v - e[:, :, t, None]) ** 2).sum(2) for t in range(p.shape[2])], 2)
    precision = (n_eff[..., None] + 1) / (S + 1 / v.shape[3])
    return {
        "n_eff": n_eff,
        "entropy": -torch.where(p > 0, p * p.log(), 0).sum(-1),
        "bos_mass": first,
        "residual": S.mean(-1),
        "observation_precision": precision.mean(-1),
        "kalman_gain": (precision / (1 + precision)).mean(-1),
    }


def compare(dataset, layers, origin, real=None, limit=3e-5):  # eager attention rounds scores and weights to float32
    assert list(dataset.layer.values) == sorted(layers)
    for place, layer in enumerate(sorted(layers)):
        for name, wanted in formulas(*layers[layer], origin).items():
            found = dataset[name].isel(layer=place).values
            wanted = wanted.numpy()
            if real is not None:
                wanted = np.where(real[:, None], wanted, np.nan)
            error = oracle.error(found, wanted)
            assert error < limit, (layer, name, error)


def tokens(batch, length, seed=1):
    return torch.randint(3, 97, (batch, length), generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def llama():
    return small_model("LlamaConfig")


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_families(name):
    if not hasattr(transformers, name):
        pytest.skip(f"this transformers has no {name}")
    model = small_model(name)
    ids = tokens(2, 40)
    wanted, layers = eager_weights(model, input_ids=ids, use_cache=False)
    before = model.config._attn_implementation
    with gainlens.watch(model, fields=ALL_FIELDS) as seen, torch.no_grad():
        found = model(input_ids=ids, use_cache=False)
    assert model.config._attn_implementation == before
    assert seen.passes == 1 and len(layers) >= 1
    assert torch.allclose(found.logits, wanted.logits, atol=1e-6 * float(wanted.logits.abs().max()))
    dataset = seen.dataset()
    assert dataset.n_eff.dims == ("batch", "layer", "head", "query") and dataset.n_eff.shape[3] == 40
    assert float(dataset.n_eff.max()) > 1.5
    compare(dataset, layers, [0, 0])


@pytest.mark.parametrize("name", ["LlamaConfig", "Gemma3TextConfig", "GptOssConfig", "Llama4TextConfig"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding(name, side):
    model = small_model(name, torch.float32)  # in float64, eager attention makes NaN of padding on the left
    ids, mask = tokens(2, 30), torch.ones(2, 30, dtype=torch.int64)
    hidden = slice(0, 7) if side == "left" else slice(23, 30)
    mask[0, hidden], ids[0, hidden] = 0, 0
    position = (mask.cumsum(1) - 1).clamp(min=0)
    inputs = dict(input_ids=ids, attention_mask=mask, position_ids=position, use_cache=False)
    wanted, layers = eager_weights(model, **inputs)
    with gainlens.watch(model, fields=ALL_FIELDS) as seen, torch.no_grad():
        found = model(**inputs)
    real = mask.bool()
    largest = float(wanted.logits[real].abs().max())
    assert float((found.logits[real] - wanted.logits[real]).abs().max()) < 1e-4 * largest
    compare(seen.dataset(), layers, [7 if side == "left" else 0, 0], real.numpy(), FLOAT32)
    assert (seen.dataset().position.values == np.where(mask, mask.cumsum(1) - 1, -1)).all()
    if name == "LlamaConfig":  # the padded row is what it is alone
        alone = ids[:1][:, real[0]]
        with gainlens.watch(model, fields=ALL_FIELDS) as seen_alone, torch.no_grad():
            model(input_ids=alone, use_cache=False)
        a, b = seen.dataset().isel(batch=0), seen_alone.dataset().isel(batch=0)
        for field in ALL_FIELDS:
            assert oracle.error(a[field].values[..., real[0].numpy()], b[field].values) < FLOAT32, field


@pytest.mark.parametrize("name", ["LlamaConfig", "Gemma3TextConfig", "GptOssConfig", "MistralConfig"])
def test_generated_tokens(name):
    """Each new token of `generate`, against one eager pass over the whole text."""
    model = small_model(name, torch.float32)
    ids, mask = tokens(2, 12), torch.ones(2, 12, dtype=torch.int64)
    mask[0, :4], ids[0, :4] = 0, 0
    with gainlens.watch(model, fields=ALL_FIELDS) as seen:
        text = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=25, min_new_tokens=25, do_sample=False)
    assert text.shape == (2, 37) and seen.passes == 1
    whole = torch.cat((mask, torch.ones(2, 25, dtype=torch.int64)), 1)[:, :36]
    position = (whole.cumsum(1) - 1).clamp(min=0)
    _, layers = eager_weights(model, input_ids=text[:, :36], attention_mask=whole, position_ids=position,
                              use_cache=False)
    compare(seen.dataset(), layers, [4, 0], whole.bool().numpy(), FLOAT32)


def test_packed_texts(llama):
    ids, position = tokens(1, 30), torch.cat((torch.arange(11), torch.arange(18), torch.arange(1)))[None]
    bounds = torch.tensor([0, 11, 29, 30], dtype=torch.int32)
    parts = []
    for begin, end in zip(bounds[:-1], bounds[1:]):
        with gainlens.watch(llama) as seen, torch.no_grad():
            llama(input_ids=ids[:, begin:end], use_cache=False)
        parts.append(seen.dataset())
    by_positions = dict(input_ids=ids, position_ids=position, use_cache=False)
    by_lengths = dict(by_positions, attention_mask=torch.ones(1, 30, dtype=torch.int64), cu_seq_lens_q=bounds,
                      cu_seq_lens_k=bounds, max_length_q=18, max_length_k=18)
    for inputs in (by_positions, by_lengths):
        with gainlens.watch(llama) as seen, torch.no_grad():
            llama(**inputs)
        dataset = seen.dataset()
        assert (dataset.position.values[0] == position[0].numpy()).all()
        for field in dataset:
            joined = np.concatenate([part[field].values for part in parts], -1)
            assert np.allclose(dataset[field].values, joined, rtol=1e-9), field


def test_a_mask_of_the_users_own(llama):
    ids = tokens(1, 20)
    mask = torch.ones(20, 20, dtype=torch.bool).tril()
    mask[10:, :10] = False
    with gainlens.watch(llama) as seen, torch.no_grad():
        llama(input_ids=ids, attention_mask=mask[None, None], use_cache=False)
    assert float(seen.dataset().n_eff.isel(query=10).max()) == 1
    mask[15, 12] = False
    with gainlens.watch(llama), pytest.raises(gainlens.Refused, match="no range"):
        llama(input_ids=ids, attention_mask=mask[None, None], use_cache=False)


def test_layers_fields_passes_and_data_frames(llama):
    with gainlens.watch(llama, layers=[1], fields=["n_eff", "sink_logit_mass"]) as seen, torch.no_grad():
        for length in (5, 7):
            llama(input_ids=tokens(1, length))
    assert seen.passes == 2 and seen.layers == [1]
    assert seen.dataset(0).sizes["query"] == 5 and seen.dataset().sizes["query"] == 7
    assert float(seen.dataset().sink_logit_mass.max()) == 0
    assert seen.dataset().n_eff.attrs["units"] == "keys"
    frame = seen.to_pandas()
    assert frame.index.names == ["batch", "layer", "head", "query"] and len(frame) == 4 * 7
    seen.clear()
    with pytest.raises(ValueError, match="nothing was seen"):
        seen.dataset()


def test_training(llama):
    model = small_model("Gemma2Config").train()
    ids = tokens(2, 20)
    gradients = []
    for watched in (False, True):
        model.zero_grad()
        model.config._attn_implementation = "eager"
        if watched:
            with gainlens.watch(model) as seen:
                model(input_ids=ids, labels=ids).loss.backward()
            assert seen.dataset().sizes["batch"] == 2
        else:
            model(input_ids=ids, labels=ids).loss.backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    for own, ours in zip(*gradients, strict=True):
        assert float((own - ours).abs().max()) < 2e-6 * float(own.abs().max())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_dtypes(dtype):
    model = small_model("Qwen3Config", dtype)
    with gainlens.watch(model) as seen, torch.no_grad():
        model(input_ids=tokens(1, 30))
    assert seen.dataset().n_eff.dtype == np.float32


def test_everything_is_put_back(llama):
    registered = modeling_utils.AttentionInterface._global_mapping, masking_utils.AttentionMaskInterface._global_mapping
    before = [set(names) for names in registered]
    with pytest.raises(KeyError), gainlens.watch(llama):
        raise KeyError
    assert before == [set(names) for names in registered] and llama.config._attn_implementation == "sdpa"
    assert not llama._forward_pre_hooks


# What is refused, by name.


def refuses(model, message, call=lambda model: model(input_ids=tokens(1, 12)), **arguments):
    with pytest.raises(gainlens.Refused, match=message):
        with gainlens.watch(model, **arguments), torch.no_grad():
            call(model)


def test_refuses_dropout():
    model = small_model("LlamaConfig").train()
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.1
    refuses(model, "dropout of 0.1")


def test_refuses_an_unknown_keyword(llama):
    refuses(llama, "the keyword 'position_bias'", lambda m: m(input_ids=tokens(1, 12), position_bias=torch.zeros(1)))


def test_refuses_weights(llama):
    refuses(llama, "output_attentions|T x T", lambda m: m(input_ids=tokens(1, 12), output_attentions=True))


def test_refuses_a_static_cache(llama):
    cache = transformers.StaticCache(config=llama.config, max_cache_len=40)
    refuses(llama, "cache", lambda m: m(input_ids=tokens(1, 12), past_key_values=cache))


def test_refuses_a_cache_that_was_filled_outside(llama):
    cache = transformers.DynamicCache(config=llama.config)
    with torch.no_grad():
        llama(input_ids=tokens(1, 12), past_key_values=cache)
    refuses(llama, "begins at position 12", lambda m: m(input_ids=tokens(1, 3), past_key_values=cache))


def test_refuses_padding_in_the_middle(llama):
    mask = torch.ones(1, 12, dtype=torch.int64)
    mask[0, 5] = 0
    refuses(llama, "in the middle", lambda m: m(input_ids=tokens(1, 12), attention_mask=mask))


def test_refuses_an_attention_of_others(llama):
    modeling_utils.ALL_ATTENTION_FUNCTIONS.register("theirs", Eager())
    try:
        llama.config._attn_implementation = "theirs"
        refuses(llama, "'theirs' was registered by others")
    finally:
        llama.config._attn_implementation = "sdpa"
        modeling_utils.AttentionInterface._global_mapping.pop("theirs")


def test_refuses_another_thread(llama):
    found = []

    def run():
        try:
            llama(input_ids=tokens(1, 12))
        except gainlens.Refused as refused:
            found.append(str(refused))

    with gainlens.watch(llama):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert "another thread" in found[0]


def test_refuses_a_model_that_looks_ahead():
    """A planted leak: each value is mixed with that of the next token."""
    model = small_model("LlamaConfig")
    module = model.model.layers[0].self_attn.v_proj
    module.register_forward_hook(lambda _, __, output: output + 0.3 * output.roll(-1, 1))
    refuses(model, "is not causal")


def test_refuses_attention_that_does_more_than_it_says():
    """A planted difference: the model's own attention adds something to the output that ours is not told of."""
    model = small_model("LlamaConfig")
    model.config._attn_implementation = "eager"
    own = sys.modules[type(model).__module__]
    before = own.eager_attention_forward

    def planted(module, query, key, value, mask, **kwargs):
        output, weights = before(module, query, key, value, mask, **kwargs)
        return output * 1.1, weights

    own.eager_attention_forward = planted
    try:
        refuses(model, "the logits differ")
    finally:
        own.eager_attention_forward = before


def test_refuses_encoders():
    config = transformers.BertConfig(vocab_size=97, hidden_size=32, num_hidden_layers=1, num_attention_heads=4,
                                     intermediate_size=48)
    refuses(transformers.BertModel(config).eval(), "bidirectional")
    t5 = transformers.T5Config(vocab_size=97, d_model=32, num_layers=1, num_heads=4, d_kv=8, d_ff=48)
    refuses(transformers.T5ForConditionalGeneration(t5).eval(), "encoder and a decoder")


def test_refuses_what_is_no_transformers_model():
    refuses(torch.nn.Linear(2, 2), "no transformers model")


def test_wrong_arguments(llama):
    for arguments, message in (({"fields": ["n_ef"]}, "'n_ef' is no field"), ({"fields": []}, "empty"),
                               ({"layers": [2]}, "layer 2; the model has layers 0 to 1")):
        with pytest.raises(ValueError, match=message), gainlens.watch(llama, **arguments):
            pass
