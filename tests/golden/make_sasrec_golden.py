"""Makes the golden checkpoints of the recommender, and their expected hidden states, scores, loss and gradients.

    python tests/golden/make_sasrec_golden.py --out tests/golden/recommend

Needs torch, numpy and safetensors (versions are stored in each golden.safetensors). The same versions and machine
give the same bytes. Each folder <out>/<name> holds a small random checkpoint (config.json, model.safetensors in
float32) and `golden.safetensors`, everything in it computed in float64 (sasrec_reference.py) without dropout:
    sequence_lengths [user] int64
    sequences [sum of the lengths] int64        the items of all users, one user after another
    hidden [valid position, width]              final hidden states of the kept items, user by user, in time order
    scores [user, n]                            scores of items 1 to n after the last item
    loss [1]                                    training loss of the users with at least two items
    gradient.<parameter>                        its gradient, as large as the parameter
"""

import argparse
import pathlib

import safetensors.torch
import torch

import golden_checks
import sasrec_reference
from sasrec_reference import Config

COMMAND = "python tests/golden/make_sasrec_golden.py --out tests/golden/recommend"
SIZES = {"items": 40, "width": 16, "heads": 2, "layers": 2, "inner_width": 24, "positions": 7}
CONFIGS = {
    "sasrec-pre-end": Config(**SIZES),
    "sasrec-pre-start": Config(**SIZES, embedding_norm=True, alignment="start"),
    "sasrec-post-end": Config(**SIZES, norm="post", embedding_norm=True, norm_epsilon=1e-12),
}
LENGTHS = (10, 1, 5, 8, 2, 7)  # with 7 positions: cut, exactly full, and full once the last item is a target


def random_tensors(config, generator):
    """float32 weights that make nothing trivial, the embedding of padding included."""
    tensors = {}
    for name, parameter in sasrec_reference.SASRec(config).named_parameters():
        noise = 0.3 * torch.randn(parameter.shape, generator=generator)
        tensors[name] = noise + 1 if "norm.weight" in name else noise
    return tensors


def random_sequences(config, generator):
    """Sequences of LENGTHS items, the first and the last item of the catalogue and repeated items among them."""
    sequences = [torch.randint(1, config.items + 1, (length,), generator=generator).tolist() for length in LENGTHS]
    sequences[0][-2:] = [config.items, 1]
    sequences[2][3] = sequences[2][1]
    sequences[3][5] = sequences[3][4]
    return sequences


def hidden_states(model, sequences):
    """The hidden states of the kept items of each sequence, a list of [length, width]."""
    hidden = model(sasrec_reference.pad(sequences, model.config))
    lengths = [min(len(sequence), model.config.positions) for sequence in sequences]
    return [
        row[sasrec_reference.columns(length, model.config)] for row, length in zip(hidden, lengths, strict=True)
    ]


def expected_tensors(model, sequences):
    """Everything that golden.safetensors holds."""
    with torch.no_grad():
        hidden = hidden_states(model, sequences)
        scores = model.scores(torch.stack([rows[-1] for rows in hidden]))
    model.zero_grad()
    loss = sasrec_reference.training_loss(model, *sasrec_reference.training_rows(sequences, model.config))
    loss.backward()
    expected = {
        "sequence_lengths": torch.tensor([len(sequence) for sequence in sequences]),
        "sequences": torch.tensor([item for sequence in sequences for item in sequence]),
        "hidden": torch.cat(hidden),
        "scores": scores,
        "loss": loss.detach().reshape(1),
    }
    return expected | {f"gradient.{name}": parameter.grad for name, parameter in model.named_parameters()}


def check_alone(model, sequences, hidden):
    """Checks each sequence without a column of padding, and that its last item changes nothing before it."""
    config = model.config
    for sequence, rows in zip(sequences, hidden.split([min(n, config.positions) for n in LENGTHS]), strict=True):
        kept = torch.tensor([sequence[-config.positions :]])
        positions = torch.arange(config.positions)[sasrec_reference.columns(kept.shape[1], config)]
        with torch.no_grad():
            torch.testing.assert_close(model(kept, positions)[0], rows, rtol=1e-12, atol=1e-12)
            kept[0, -1] = kept[0, -1] % config.items + 1
            changed = model(kept, positions)[0]
        torch.testing.assert_close(changed[:-1], rows[:-1], rtol=1e-12, atol=1e-12)
        assert (changed[-1] - rows[-1]).abs().max() > 0.01


def check_gradient(model, sequences, expected, generator):
    """Checks every gradient against a central difference along a random direction. Padding must have none."""
    assert not expected["gradient.item_embedding.weight"][0].any()
    rows = sasrec_reference.training_rows(sequences, model.config)
    step = 1e-5
    for name, parameter in model.named_parameters():
        direction = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
        losses = []
        with torch.no_grad():
            for offset in (step, -2 * step, step):
                parameter += offset * direction
                losses.append(sasrec_reference.training_loss(model, *rows))
        slope = (losses[0] - losses[1]) / (2 * step)
        torch.testing.assert_close(slope, (expected[f"gradient.{name}"] * direction).sum(), rtol=1e-6, atol=1e-9)


def make_golden(name, config, folder, seed):
    generator = torch.Generator().manual_seed(seed)
    sasrec_reference.save(config, random_tensors(config, generator), folder)
    sequences = random_sequences(config, generator)
    model = sasrec_reference.load(folder, torch.float64)
    expected = expected_tensors(model, sequences)
    check_alone(model, sequences, expected["hidden"])
    check_gradient(model, sequences, expected, generator)
    found = expected_tensors(sasrec_reference.load(folder, torch.float32), sequences)
    errors = golden_checks.errors_by_group(found, expected)
    metadata = golden_checks.provenance(name, COMMAND)
    safetensors.torch.save_file(expected, folder / "golden.safetensors", metadata=metadata)
    described = ", ".join(f"{group} {error:.1e}" for group, error in sorted(errors.items()))
    print(f"{name:16} loss {expected['loss'].item():.6f}; errors in float32: {described}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write the golden folders to")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # sums always in the same order
    for seed, (name, config) in enumerate(CONFIGS.items(), start=1):
        make_golden(name, config, arguments.out / name, seed)


if __name__ == "__main__":
    main()
