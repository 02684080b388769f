"""Computes what a sweep of a golden checkpoint must store in run.h5, from the reference's numbers for every query.

Written from the definitions (docs/method.md and docs/run-file.md) with numpy alone. It shares nothing with the C++
sweep. tests/journeys compares runs with it. make_sweep_golden.py uses it to measure the error of the reference's own
bfloat16 runs.

A chunk of T tokens is a dictionary of float64 arrays:
    n_eff, entropy, ... [layer, head, query]     first_mass [layer, head, query, key]     value_variance [layer,
    kv_head] value_norm [layer, kv_head, key]             nll [position], of the token after it
"""

import json

import numpy as np

BINS, KEYS, RANKS, LARGEST = 64, 8, 16, 3
LEAST_MEAN = 0.1  # of a key that is stored in /sinks


def fewest_queries(length, window):
    """That see a key which is stored in /sinks."""
    return max(16, min(length, window) // 8)


SINKS = (
    "position",
    "token",
    "text",
    "queries",
    "column_mean",
    "second_half_mean",
    "last_quarter_mean",
    "value_norm_ratio",
    "key_norm_ratio",
    "key_query_cosine",
    "stream_ratio",
    "stream_ratio_after",
    "stream_cosine",
    "stream_dimension",
)
STREAM = ("position", "token", "dimension", "value", "median")
LAST_QUARTER = (
    "n_eff",
    "entropy",
    "residual",
    "observation_precision",
    "log_observation_precision",
    "kalman_gain",
    "kalman_gain_scaled",
    "gate",
)
HALF_TOO = ("kalman_gain", "kalman_gain_scaled")
SECOND_HALF = ("without_first_n_eff", "without_first_kalman_gain", "bos_mass", "sink_logit_mass")
SECOND_HALF_ONLY_SUMMARISED = ("estimate_norm", "gained_estimate_norm", "without_first_norm")
WHOLE_CHUNK = ("kalman_gain_scaled", "value_variance")  # fields that also depend on later tokens
SHARES = ("summary/sink_bound_vacuous", "summary/sink_bound_gain_violated")
# Goldens only grow. A field that a sweep got after goldens were made has the statistics version that added it here:
# {"name": 5}. `make_sweep_golden.py --add name` computes it for the goldens that hold it, in a file of its own; the
# other goldens stay as they are, and are compared without it.
ADDED = {}
FIRST_VERSION = 4  # of goldens that hold no statistics_version
BOUND_ROUNDING = 1e-5  # a weight below its bound by more than this counts as a violation


def read_safetensors(path):
    """Every tensor of a file by its name."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        content = file.read()
    kinds = {"F64": np.float64, "I64": np.int64}
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(content[slice(*entry["data_offsets"])], kinds[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }


def read_expected(folder):
    """Every tensor of a golden's sweep: those of expected_sweep.safetensors, and those that were added."""
    stored = read_safetensors(folder / "expected_sweep.safetensors")
    first = run_datasets(chunks_of(stored))
    errors = dict(zip(sorted(first), stored.pop("bfloat16_error").tolist(), strict=True))
    for path in sorted(folder.glob("expected_sweep-*.safetensors")):
        added = read_safetensors(path)
        assert not added.keys() & stored.keys(), f"{path} replaces what the golden holds"
        stored |= added
    return stored, errors | {
        name.removeprefix("bfloat16_error."): float(error[0])
        for name, error in stored.items()
        if name.startswith("bfloat16_error.")
    }


def fields_without_golden(models):
    """Added fields that no golden holds: nothing would compare them."""
    return [field for field in ADDED if not list(models.glob(f"*/expected_sweep-{field}.safetensors"))]


def may_lack(path, datasets):
    """Whether a golden, of which these are the datasets, need not hold this one: it is of a field that was added."""
    name = path.split("/")[-1]
    return path not in datasets and any(
        version > FIRST_VERSION and name in (field, f"{field}_var", f"{field}_half", f"{field}_half_var")
        for field, version in ADDED.items()
    )


def mean(values):
    """Mean over the last axis without NaN entries; NaN if all entries are NaN."""
    there = ~np.isnan(values)
    count = there.sum(-1)
    return np.where(count > 0, np.where(there, values, 0).sum(-1) / np.maximum(count, 1), np.nan)


def variance(values):
    return mean((values - mean(values)[..., None]) ** 2)


def bin_means(values):
    """Means over bins, [.., position] to [.., 64]. Position t of T lies in bin floor(64 t / T)."""
    length = values.shape[-1]
    bins = np.full((*values.shape[:-1], BINS), np.nan)
    for which in range(BINS):
        inside = [t for t in range(length) if BINS * t // length == which]
        if inside:
            bins[..., which] = mean(values[..., inside])
    return bins


def sink_lemma(chunk, groups):
    """For every query: the weight of key 0 among the keys, its bound, its bound with K o e in place of e, and c."""
    others, first = chunk["without_first_norm"], chunk["value_norm"][..., 0]
    smallest = chunk["value_norm"][..., 1:].min(-1)
    first, smallest = (np.repeat(norm, groups, axis=1)[..., None] for norm in (first, smallest))
    alignment = np.minimum(1, others / smallest)
    weight = chunk["first_mass"][..., 0]
    if "sink_logit_mass" in chunk:
        weight = weight / (1 - chunk["sink_logit_mass"])
    bound = 1 - (chunk["estimate_norm"] + first) / (smallest * alignment)
    with_gain = 1 - (chunk["gained_estimate_norm"] + first) / (smallest * alignment)
    return weight, bound, with_gain, alignment


def distances(chunk):
    """For every query of the second half: how far it is from being counted differently, by the names of the shares."""
    groups = chunk["n_eff"].shape[1] // chunk["value_norm"].shape[1]
    half = -(-chunk["n_eff"].shape[-1] // 2)
    weight, bound, with_gain, _ = (of_query[..., half:] for of_query in sink_lemma(chunk, groups))
    return dict(zip(SHARES, (np.abs(bound), np.abs(weight - with_gain + BOUND_ROUNDING)), strict=True))


def lemma_datasets(chunk, half):
    groups = chunk["n_eff"].shape[1] // chunk["value_norm"].shape[1]
    weight, bound, with_gain, alignment = (of_query[..., half:] for of_query in sink_lemma(chunk, groups))
    return {
        "sink_bound": mean(np.maximum(0, bound)),
        "sink_bound_gain": mean(np.maximum(0, with_gain)),
        "sink_bound_vacuous": mean((bound <= 0).astype(float)),
        "sink_bound_gain_violated": mean((weight < with_gain - BOUND_ROUNDING).astype(float)),
        "sink_bound_slack": mean(np.where(bound > 0, weight - bound, np.nan)),
        "sink_bound_slack_min": (weight - bound).min(-1),
        "sink_alignment": mean(alignment),
    }


def chunk_datasets(chunk):
    """Every dataset of one chunk by its path; paths in /queries are without the length."""
    length = chunk["n_eff"].shape[-1]
    quarter, half = -(-3 * length // 4), -(-length // 2)
    chunk = chunk | {"bos_mass": chunk["first_mass"][..., 0]}
    found = {}
    for name in LAST_QUARTER + SECOND_HALF + SECOND_HALF_ONLY_SUMMARISED:
        if name not in chunk:
            continue
        of_query = chunk[name]
        window = of_query[..., quarter if name in LAST_QUARTER else half :]
        found[f"summary/{name}"] = mean(window)
        if name != "sink_logit_mass":
            found[f"summary/{name}_var"] = variance(window)
        if name in HALF_TOO:
            found[f"summary/{name}_half"] = mean(of_query[..., half:])
            found[f"summary/{name}_half_var"] = variance(of_query[..., half:])
        if name not in SECOND_HALF_ONLY_SUMMARISED:
            found[f"profile/{name}"] = bin_means(of_query)
            if name != "sink_logit_mass":
                found[f"queries/{name}"] = of_query
    first_mass = chunk["first_mass"]
    found["queries/first_mass"] = first_mass
    found["summary/first_mass"] = first_mass[:, :, half:].mean(2)
    found["summary/column_mean"] = np.stack([first_mass[:, :, m:, m].mean(2) for m in range(KEYS)], axis=-1)
    found |= {f"summary/{name}": value for name, value in lemma_datasets(chunk, half).items()}
    found["summary/nll"] = chunk["nll"].mean()
    norm = chunk["value_norm"]
    found |= {
        "values/norm": bin_means(norm),
        "values/first_norm": norm[..., :KEYS],
        "values/min_norm": norm[..., 1:].min(-1),
        "values/variance": chunk["value_variance"],
    }
    return found


def sinks_of_head(chunk, layer, head, window):
    """Of each of the first keys that enough queries see: column mean, second-half mean and last-quarter mean; and the
    value norm of every key by the median."""
    weights = chunk["first_mass"][layer, head]
    length = len(weights)
    quarter, half = -(-3 * length // 4), -(-length // 2)
    means = {}
    for key in range(min(KEYS, length)):
        seen_by = weights[key : key + window, key]
        if len(seen_by) >= fewest_queries(length, window):
            means[key] = (seen_by.mean(), weights[half:, key].mean(), weights[quarter:, key].mean())
    groups = chunk["n_eff"].shape[1] // chunk["value_norm"].shape[1]
    norms = chunk["value_norm"][layer, head // groups]
    return means, norms / np.median(norms)


def wrong_sinks(stored, expected, tokens, length, window, margin):
    """What is wrong with the stored keys of a head. `expected`: of sinks_of_head."""
    means, ratios = expected
    positions = stored["position"]
    count = int((positions >= 0).sum())
    wrong = []
    if (positions[count:] >= 0).any() or len(set(positions[:count])) < count or (positions >= length).any():
        return [f"positions {positions}"]
    if (np.diff(stored["column_mean"][:count]) > 0).any() or (stored["column_mean"][:count] < LEAST_MEAN - 1e-6).any():
        wrong.append(f"column means {stored['column_mean']}")
    for key, (column_mean, *_) in means.items():
        clear = abs(column_mean - LEAST_MEAN) > margin and count < RANKS
        if clear and (key in positions) != (column_mean > LEAST_MEAN):
            wrong.append(f"key {key} has a column mean of {column_mean}; stored are {positions}")
    for rank, position in enumerate(positions[:count]):
        found = [stored[name][rank] for name in ("column_mean", "second_half_mean", "last_quarter_mean")]
        if position in means and not np.allclose(found, means[position], rtol=0, atol=margin):
            wrong.append(f"key {position} has the means {found}; expected {means[position]}")
        if stored["token"][rank] != tokens[position] or stored["text"][rank] != b"":
            wrong.append(f"key {position} has the token {stored['token'][rank]} {stored['text'][rank]}")
        seen_by = min(window, length - position)
        if stored["queries"][rank] != seen_by or seen_by < fewest_queries(length, window):
            wrong.append(f"key {position} is seen by {stored['queries'][rank]} queries")
        if abs(stored["value_norm_ratio"][rank] / ratios[position] - 1) > 10 * margin:
            wrong.append(f"key {position}: value {stored['value_norm_ratio'][rank]}; expected {ratios[position]}")
    return wrong


def run_datasets(chunks):
    """Every dataset of run.h5 by its path, from the chunks by their length.

    Shapes: [length, sample, layer, ...], and [sample, ...] in /queries/<T>.
    """
    by_length = {length: chunk_datasets(chunk) for length, chunk in sorted(chunks.items())}
    run = {}
    for length, datasets in by_length.items():
        for path, values in datasets.items():
            group, name = path.split("/")
            if group == "queries":
                run[f"queries/{length}/{name}"] = values[None]
    for path in next(iter(by_length.values())):
        if not path.startswith("queries/"):
            run[path] = np.stack([datasets[path] for datasets in by_length.values()])[:, None]
    return run


def chunks_of(stored):
    """The chunks of an expected_sweep.safetensors.

    Fields that depend only on earlier tokens are stored once, for the longest chunk.
    """
    chunks, lengths = {}, stored["lengths"].tolist()
    whole = {
        name.removeprefix(f"{lengths[-1]}."): array
        for name, array in stored.items()
        if name.startswith(f"{lengths[-1]}.")
    }
    for length in lengths:
        chunk = {name: array[:, :, :length] for name, array in whole.items() if name not in ("nll", *WHOLE_CHUNK)}
        chunk["nll"] = whole["nll"][: length - 1]
        chunks[length] = chunk | {
            name: stored[f"{length}.{name}"] for name in WHOLE_CHUNK if f"{length}.{name}" in stored
        }
    return chunks


def relative_error(found, expected, reduce=np.max):
    """max |a-b| / max(|b|, 1e-3 max|b|), or another summary.

    Infinite if the NaNs are at different places. 0 if all entries are NaN.
    """
    known = ~np.isnan(expected)
    if found.shape != expected.shape or not np.array_equal(known, ~np.isnan(found)):
        return np.inf
    found, expected = found[known], expected[known]
    if not (np.isfinite(found).all() and np.isfinite(expected).all()):
        return np.inf
    if expected.size == 0 or np.array_equal(found, expected):
        return 0.0
    scale = np.maximum(np.abs(expected), 1e-3 * np.abs(expected).max())
    return np.inf if scale.min() == 0 else float(reduce(np.abs(found - expected) / scale))


def root_mean_square(errors):
    return np.sqrt(np.mean(np.square(errors)))


def error_of_dataset(path, found, expected, reduce=np.max):
    """Error of a dataset, each layer of each chunk on its own scale.

    Shares of queries are compared without a scale, because a share may be 0.
    """
    if path in SHARES and found.shape == expected.shape:
        return float(np.abs(found - expected).max())
    axes = 1 if path == "summary/nll" else 2 if path.startswith("queries/") else 3
    if found.shape != expected.shape:
        return np.inf
    cells = np.ndindex(*expected.shape[:axes])
    return float(
        reduce([relative_error(np.atleast_1d(found[cell]), np.atleast_1d(expected[cell]), reduce) for cell in cells])
    )
