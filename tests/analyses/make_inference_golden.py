"""Makes the numbers for tests/analyses/inference_golden_test.cpp: permutation tests by brute force, equivalence tests
and a jackknife with SciPy, Holm's correction with statsmodels.

    python tests/analyses/make_inference_golden.py > tests/analyses/inference_golden.json

Every arrangement is built as a whole array, and its correlation is computed from scratch. Nothing is shared with the
C++ code, which adds up tables of cross products. Needs numpy, scipy and statsmodels.
"""

import itertools
import json
import sys

import numpy
import scipy
import statsmodels
from scipy import stats
from statsmodels.stats.multitest import multipletests

TIES = 1e-9


def within(values):
    """Values [layer, head] minus the mean of their layer."""
    return values - values.mean(axis=1, keepdims=True)


def ranks_within(values):
    return within(numpy.apply_along_axis(stats.rankdata, 1, values))


def correlation(x, y):
    return float(numpy.corrcoef(x.ravel(), y.ravel())[0, 1])


def tested(values, statistic):
    """p from the statistics of all arrangements, with the data first. A statistic far from their mean is extreme."""
    every = numpy.abs(numpy.array(values) - numpy.mean(values))
    return {
        "value": values[0],
        "null_mean": float(numpy.mean(values)),
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
        moved = numpy.stack(
            [y[layer].reshape(blocks, group)[list(order)].ravel() for layer, order in enumerate(choice)]
        )
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


def holm(p):
    return {"p": p, "adjusted": multipletests(p, method="holm")[1].tolist()}


def theory(random, chunks):
    """n_eff, S, K [length, chunk], where K follows the formula plus noise, and the jackknife of ln(K_opt / K)."""
    n_eff = (numpy.array([[10.0], [16.0], [25.0]]) * numpy.exp(0.1 * random.normal(size=(3, chunks)))).round(4)
    residual = (0.4 * numpy.exp(0.1 * random.normal(size=(3, chunks)))).round(4)
    variance, margin = 0.25, 0.01
    precision = (n_eff + 1) / (residual + variance)
    gain = (1 / (1 + numpy.exp(0.02 * random.normal(size=(3, chunks))) * 9.0 / precision)).round(6)

    def log_ratios(keep):
        n, s, k = (values[:, keep].mean(axis=1) for values in (n_eff, residual, gain))
        evidence = (n + 1) / (s + variance)
        prior = evidence[0] / k[0] - evidence[0]
        return numpy.log(evidence[1:] / (prior + evidence[1:]) / k[1:])

    every = numpy.arange(chunks)
    pseudo = numpy.stack([chunks * log_ratios(every) - (chunks - 1) * log_ratios(every[every != out]) for out in every])
    tests = [equivalence(pseudo[:, length].tolist(), float(numpy.log1p(margin))) for length in range(2)]
    return {
        "n_eff": n_eff.tolist(),
        "residual": residual.tolist(),
        "gain": gain.tolist(),
        "prior_variance": variance,
        "margin": margin,
        "error": numpy.expm1(pseudo.mean(axis=0)).tolist(),
        "interval": [numpy.expm1(test["interval"]).tolist() for test in tests],
        "within_p": [test["p"] for test in tests],
        "beyond_p": [test["exceeds_p"] for test in tests],
    }


def equivalence(differences, margin):
    lower = stats.ttest_1samp(differences, -margin, alternative="greater").pvalue
    upper = stats.ttest_1samp(differences, margin, alternative="less").pvalue
    test = stats.ttest_1samp(differences, 0.0)
    interval = test.confidence_interval(0.90)
    above = stats.ttest_1samp(differences, margin, alternative="greater").pvalue
    below = stats.ttest_1samp(differences, -margin, alternative="less").pvalue
    return {
        "differences": list(differences),
        "margin": margin,
        "p": float(max(lower, upper)),
        "difference_p": float(test.pvalue),
        "exceeds_p": float(min(1.0, 2 * min(above, below))),
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
        "versions": {
            "python": sys.version.split()[0],
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "statsmodels": statsmodels.__version__,
        },
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
        "holm": [holm([0.01, 0.04, 0.03, 0.005]), holm([0.2, 0.2, 0.9]), holm([0.02])],
        "theories": [theory(random, 3), theory(random, 7)],
    }
    json.dump(golden, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
