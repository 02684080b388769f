"""What the generators of recommender goldens share: gradients with their check, errors of float32, and provenance."""

import json
import platform

import numpy
import torch


def add_gradients(model, loss, expected):
    """Puts the loss and the gradient of each parameter into `expected`; 0 where the loss does not depend on it."""
    model.zero_grad()
    loss.backward()
    expected["loss"] = loss.detach().reshape(1)
    for name, parameter in model.named_parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        expected[f"gradient.{name}"] = parameter.grad


def check_gradient(model, loss, expected, generator):
    """Checks every gradient against a difference of five points along a random direction. Padding must have none.
    `loss()` is that of the model as it is."""
    assert not expected["gradient.item_embedding.weight"][0].any()
    step = 3e-5
    for name, parameter in model.named_parameters():
        direction = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
        start = parameter.detach().clone()
        slope = 0
        with torch.no_grad():
            for steps, factor in ((-2, 1), (-1, -8), (1, 8), (2, -1)):
                parameter.copy_(start + steps * step * direction)
                slope += factor * loss() / (12 * step)
            parameter.copy_(start)
        expected_slope = (expected[f"gradient.{name}"] * direction).sum()
        torch.testing.assert_close(slope, expected_slope, rtol=1e-7, atol=1e-9, msg=lambda text: f"{name}: {text}")


def relative_error(found, expected):
    """The largest difference of two tensors over the largest value of the expected one."""
    return ((found - expected).abs().max() / expected.abs().max().clamp(min=1e-3)).item()


def errors_by_group(found, expected):
    """The largest relative error of each group of tensors, which have the word before the dot in common."""
    errors = {}
    for name in sorted(expected.keys() - {"sequence_lengths", "sequences"}):
        group = name.split(".")[0]
        # The gradient of a bias of keys is 0 but for rounding: a constant moves no softmax.
        errors[group] = max(errors.get(group, 0.0), relative_error(found[name], expected[name]))
    return errors


def worst_error(found, expected):
    """The largest relative error of the tensors that float64 was computed for."""
    worst = max(
        relative_error(found[name], expected[name]) for name in expected if expected[name].dtype == torch.float64
    )
    assert worst < 1e-3  # no precision so near to a bound that rounding moves it across
    return worst


def provenance(checkpoint, command):
    """The one metadata key of a golden: the file format does not keep the order of several."""
    versions = {"torch": torch.__version__, "numpy": numpy.__version__, "python": platform.python_version()}
    return {"provenance": json.dumps({"checkpoint": checkpoint, "command": command, "versions": versions},
                                     sort_keys=True)}
