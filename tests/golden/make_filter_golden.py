"""Makes the golden checkpoints of the Bayesian filter layer and of the arms it is compared with.

    python tests/golden/make_filter_golden.py --out tests/golden/recommend [--only NAME ...]

Needs torch, numpy and safetensors (versions are stored in each golden.safetensors). The same versions and machine
give the same bytes. Each folder <out>/filter-<name> holds a small random checkpoint (config.json, model.safetensors in
float32) and `golden.safetensors`, everything in it computed in float64 (filter_reference.py) without dropout:
    sequence_lengths, sequences, hidden, scores, loss, gradient.<parameter>    as in make_sasrec_golden.py
and of the arms "bft", "textbook" and "least-error":
    precision.<layer> [valid position, width]               precision entering a layer; behind the last under <layers>
    observation_precision.<layer> [valid position, width]   precision of the estimate
    gain.<layer> [valid position, width]                    what multiplies the estimate, blended as the layer does
    evaluation_hidden [valid position, width]               hidden states with the running mean of the stretch, if any
Everything but evaluation_hidden has the stretch of the current weights. The factors of a low-rank Jacobian are those
of the stored weights and constants of the gradient. A parameter that nothing depends on has the gradient 0.
"""

import argparse
import pathlib

import safetensors.torch
import torch

import filter_reference
import golden_checks
import sasrec_reference
from filter_reference import Config, Filter
from make_sasrec_golden import hidden_states

COMMAND = "python tests/golden/make_filter_golden.py --out tests/golden/recommend"
SIZES = {"items": 12, "width": 8, "heads": 2, "inner_width": 16, "positions": 10}
LENGTHS = (9, 1, 7, 8, 5)


def config_of(arm="bft", layers=2, model=None, **settings):
    return Config(**SIZES, layers=layers, arm=arm, filter=Filter(**settings), **(model or {}))


CONFIGS = {
    "bft-paper": config_of(layers=3, jacobian_rank=4),
    "bft-exact": config_of(layers=3, jacobian="exact", initial_precision="table", most_precision=15),
    "bft-norm": config_of(layers=3, jacobian="exact", norm_jacobian=True),
    "bft-discount": config_of(predict="discount", jacobian="none", initial_precision="count"),
    "bft-decay": config_of(
        layers=3, predict="decay", jacobian="exact", initial_precision="em", running_jacobian=False
    ),
    "bft-per-dimension": config_of(kriging="per_dimension", jacobian="exact"),
    "bft-sandwich": config_of(estimator="sandwich", jacobian_rank=4, most_precision=2000),
    "bft-kish": config_of(estimator="kish", jacobian_rank=4, prior_variance=0.5),
    "bft-delta": config_of(estimator="delta", jacobian_rank=4),
    "bft-conjugate": config_of(
        estimator="reml_conjugate", jacobian_rank=4, prior_strength=1.5, recency_decay=False, most_process_noise=0
    ),
    "bft-delta-weight-free": config_of(estimator="delta_weight_free", score_noise=0.6, jacobian_rank=4),
    "bft-blend": config_of(jacobian_rank=4),
    "plain-no-wo": config_of("plain-no-wo"),
    "plain-decay": config_of("plain-decay"),
    "plain-popularity": config_of("plain-popularity"),
    "gate": config_of("gate"),
    "constant-k": config_of("constant-k"),
    "bft-projected": config_of(
        layers=3,
        jacobian_rank=4,
        output_projection=True,
        gain_place="after",
        decay_owner="head",
        model={"embedding_factor": "sqrt_width"},
    ),
    "bft-post": config_of(layers=3, jacobian_rank=4, model={"norm": "post", "embedding_norm": True}),
    "gate-projected": config_of(
        "gate", output_projection=True, gain_place="after", decay_owner="head", model={"norm": "post"}
    ),
    "textbook": config_of("textbook", layers=3, jacobian_rank=4),
    "textbook-after": config_of("textbook", jacobian="exact", output_projection=True, gain_place="after"),
    "textbook-blend": config_of("textbook", jacobian_rank=4, output_projection=True),
    "least-error": config_of("least-error", layers=3, jacobian_rank=4),
    "least-error-post": config_of(
        "least-error", estimator="kish", jacobian="exact", model={"norm": "post", "embedding_norm": True}
    ),
}
FIRST_SEED = 21  # with the seeds from here on, no small step of check_gradient moves a value across a bound
STRENGTHS = {"bft-blend": 0.3, "textbook-blend": 0.3}


def random_tensor(name, shape, generator):
    """float32 values that leave attention uneven and spread the precisions over positions and dimensions."""
    noise = torch.randn(shape, generator=generator)
    if "norm.weight" in name:
        return 1 + 0.3 * noise
    if name == "precision.base":  # ranks; the most seldom item has 0, which only the least precision saves
        ranks = (torch.argsort(noise[1:]).argsort() / (len(noise) - 2)).float()
        return torch.cat([torch.zeros(1), ranks])
    if name == "precision.items":
        return noise.exp()
    if name.endswith("filter.stretch"):
        return 0.2 + noise.abs()
    centres = {"recency": 1.5, "decay": 1, "process_noise": -2, "range": 3}
    scale = 1 if name == "precision.table" else 0.4
    return centres.get(name.split(".")[-1], 0) + scale * noise


def random_tensors(name, config, generator):
    """The weights of a checkpoint, constants included."""
    tensors = {}
    for key, tensor in filter_reference.FilteredSASRec(config).state_dict().items():
        tensors[key] = random_tensor(key, tensor.shape, generator)
    if "precision.strength" in tensors:
        tensors["precision.strength"] = torch.tensor([STRENGTHS.get(name, 1.0)])
    return tensors


def random_sequences(config, generator):
    """Sequences of LENGTHS items, the first and the last item of the catalogue and repeated items among them."""
    sequences = [torch.randint(1, config.items + 1, (length,), generator=generator).tolist() for length in LENGTHS]
    sequences[0][-3:-1] = [config.items, 1]
    sequences[2][3] = sequences[2][1]
    sequences[3][5] = sequences[3][4]
    return sequences


def filter_states(model, sequences):
    """precision.<layer>, observation_precision.<layer> and gain.<layer> of the kept items."""
    _, every_found, precision = model.states(sasrec_reference.pad(sequences, model.config))
    lengths = [len(sequence) for sequence in sequences]
    return {
        f"{name}.{layer}": torch.cat(
            [row[sasrec_reference.columns(n, model.config)] for row, n in zip(rows, lengths, strict=True)]
        )
        for layer, found in enumerate([*every_found, {"precision": precision}])
        for name, rows in found.items()
    }


def expected_tensors(model, sequences):
    """Everything that golden.safetensors holds. The model is left in training mode."""
    settings = model.config.filter
    expected = {
        "sequence_lengths": torch.tensor([len(sequence) for sequence in sequences]),
        "sequences": torch.tensor([item for sequence in sequences for item in sequence]),
    }
    with torch.no_grad():
        hidden = hidden_states(model.train(), sequences)
        expected["hidden"] = torch.cat(hidden)
        expected["scores"] = model.scores(torch.stack([rows[-1] for rows in hidden]))
        if model.config.arm in filter_reference.FILTERS:
            expected |= filter_states(model, sequences)
            if settings.running_jacobian and settings.jacobian != "none":
                expected["evaluation_hidden"] = torch.cat(hidden_states(model.eval(), sequences))
                model.train()
    rows = sasrec_reference.training_rows(sequences, model.config)
    golden_checks.add_gradients(model, sasrec_reference.training_loss(model, *rows), expected)
    return expected


def check_alone(model, sequences, expected):
    """Checks each sequence without a column of padding, and that its last item changes nothing before it."""
    config = model.config
    for sequence, rows in zip(sequences, expected["hidden"].split(list(LENGTHS)), strict=True):
        kept = torch.tensor([sequence])
        positions = torch.arange(config.positions)[sasrec_reference.columns(len(sequence), config)]
        with torch.no_grad():
            torch.testing.assert_close(model(kept, positions)[0], rows, rtol=1e-11, atol=1e-11)
            kept[0, -1] = kept[0, -1] % config.items + 1
            changed = model(kept, positions)[0]
        torch.testing.assert_close(changed[:-1], rows[:-1], rtol=1e-11, atol=1e-11)
        assert (changed[-1] - rows[-1]).abs().max() > 0.01


def check_jacobian(model, generator):
    """Checks the closed form of the Jacobian's diagonal, of which low rank is a truncation, against autograd."""
    for layer in model.layers:
        x = torch.randn(5, model.config.width, generator=generator, dtype=torch.float64)
        closed = filter_reference.gelu_slope(layer.mlp.up(x)) @ layer.couplings_now().T
        torch.testing.assert_close(closed, filter_reference.jacobian_diagonal(layer.mlp, x), rtol=1e-11, atol=1e-11)


def check_spread(config, expected):
    """Checks that precisions vary and few are at a bound; returns a line about them."""
    if config.arm not in filter_reference.FILTERS:
        return ""
    settings = config.filter
    stacked = {
        name: torch.cat([expected[f"{name}.{layer}"] for layer in range(config.layers)])
        for name in ("precision", "observation_precision", "gain")
    }
    shares = {}
    for name in ("precision", "observation_precision"):
        values = stacked[name]
        close = (values < settings.least_precision * 1.0001) | (values > settings.most_precision * 0.9999)
        shares[name] = close.double().mean().item()
        assert shares[name] < 0.2 and values.log().std() > 0.3, name
    assert stacked["gain"].std() > 0.03
    low, high = stacked["gain"].min().item(), stacked["gain"].max().item()
    return (
        f"; gain {low:.2f} to {high:.2f}; at a bound: precision {shares['precision']:.1%}, "
        f"of observations {shares['observation_precision']:.1%}"
    )


def make_golden(name, config, folder, seed):
    generator = torch.Generator().manual_seed(seed)
    sasrec_reference.save(config, random_tensors(name, config, generator), folder)
    sequences = random_sequences(config, generator)
    model = filter_reference.load(folder, torch.float64)
    expected = expected_tensors(model, sequences)
    spread = check_spread(config, expected)
    check_alone(model, sequences, expected)
    check_jacobian(model, generator)
    rows = sasrec_reference.training_rows(sequences, config)
    golden_checks.check_gradient(
        model, lambda: sasrec_reference.training_loss(model, *rows), expected, generator
    )
    found = expected_tensors(filter_reference.load(folder, torch.float32), sequences)
    errors = golden_checks.errors_by_group(found, expected)
    assert max(errors.values()) < 1e-3  # no precision so near to a bound that rounding moves it across
    metadata = golden_checks.provenance(f"filter-{name}", COMMAND)
    safetensors.torch.save_file(expected, folder / "golden.safetensors", metadata=metadata)
    worst = max(errors, key=errors.get)
    print(f"{name:21} loss {expected['loss'].item():.6f}; worst in float32: {worst} {errors[worst]:.1e}{spread}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write the golden folders to")
    parser.add_argument("--only", nargs="*", choices=CONFIGS, help="make these alone; the seeds stay the same")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # sums always in the same order
    for seed, (name, config) in enumerate(CONFIGS.items(), start=FIRST_SEED):
        if arguments.only is None or name in arguments.only:
            make_golden(name, config, arguments.out / f"filter-{name}", seed)


if __name__ == "__main__":
    main()
