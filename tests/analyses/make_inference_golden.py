"""Numbers for tests/analyses/inference_golden_test.cpp: permutation tests by brute force and equivalence tests by SciPy.

    python tests/analyses/make_inference_golden.py > tests/analyses/inference_golden.json

Every arrangement is built as a whole array and correlated anew, with nothing shared with the C++ code, which adds up tables of cross
products instead. Needs numpy and scipy.
"""

import itertools
import json
import sys

import numpy
import scipy
from scipy import stats

TIES = 1e-9


def within(values):
    """Layer means taken off [layer, head]."""
    return values - values.mean(axis=1, keepdims=True)


def ranks_within(values):
    return within(numpy.apply_along_axis(stats.rankdata, 1, values))


def correlation(x, y):
    return float(numpy.corrcoef(x.ravel(), y.ravel())[0, 1])


def tested(values, statistic):
    """Of the statistic of every arrangement, that of the data first."""
    every = numpy.abs(values)
    return {
        "value": values[0],
        "p": float(numpy.mean(every >= every[0] - TIES)),
        "least_p": float(numpy.mean(every >= every.max() - TIES)),
        "arrangements": len(values),
        "statistic": statistic,
    }


def block_permutation(x, y, group):
    layers, heads = x.shape
    blocks = heads // group
    orders = list(itertools.permutations(range(blocks)))
    pearson, spearman = [], []
    for choice in itertools.product(orders, repeat=layers):  # the first is the identity
        moved = numpy.stack([y[layer].reshape(blocks, group)[list(order)].ravel() for layer, order in enumerate(choice)])
        pearson.append(correlation(within(x), within(moved)))
        spearman.append(correlation(ranks_within(x), ranks_within(moved)))
    return [tested(pearson, "pearson"), tested(spearman, "spearman")]


def circular_shift(x, y):
    pearson, spearman = [], []
    rank = lambda values: stats.rankdata(values).reshape(values.shape)
    for by in range(len(x)):
        moved = numpy.roll(y, -by, axis=0)
        pearson.append(correlation(x, moved))
        spearman.append(correlation(rank(x), rank(moved)))
    return [tested(pearson, "pearson"), tested(spearman, "spearman")]


def equivalence(differences, margin):
    lower = stats.ttest_1samp(differences, -margin, alternative="greater").pvalue
    upper = stats.ttest_1samp(differences, margin, alternative="less").pvalue
    test = stats.ttest_1samp(differences, 0.0)
    interval = test.confidence_interval(0.90)
    return {
        "differences": list(differences),
        "margin": margin,
        "p": float(max(lower, upper)),
        "difference_p": float(test.pvalue),
        "interval": [float(interval.low), float(interval.high)],
    }


def case(random, layers, heads, group, effect, test):
    x = random.normal(size=(layers, heads)).round(3)
    y = (effect * x + random.normal(size=(layers, heads)) + random.normal(size=(layers, 1))).round(3)
    results = circular_shift(x, y) if test == "shift" else block_permutation(x, y, group)
    return {"test": test, "group": group, "x": x.tolist(), "y": y.tolist(), "results": results}


def main():
    random = numpy.random.default_rng(4)
    golden = {
        "versions": {"python": sys.version.split()[0], "numpy": numpy.__version__, "scipy": scipy.__version__},
        "permutations": [
            case(random, 6, 4, 2, 0.5, "blocks"),
            case(random, 3, 4, 1, 0.5, "blocks"),
            case(random, 2, 6, 2, 0.0, "blocks"),
            case(random, 24, 3, 1, 0.5, "shift"),
            case(random, 21, 2, 1, 0.0, "shift"),
        ],
        "equivalences": [
            equivalence([0.01, -0.02, 0.03, 0.0, 0.02], 0.1),
            equivalence([0.12, 0.08, 0.15, 0.11], 0.1),
            equivalence([0.3, -0.2], 0.1),
        ],
    }
    json.dump(golden, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
