"""Makes the numbers for tests/analyses/recommender_golden_test.cpp with SciPy, statsmodels and brute force in numpy.

    python tests/analyses/make_recommender_golden.py > tests/analyses/recommender_golden.json

Needs numpy, scipy and statsmodels.
"""

import itertools
import json
import sys

import numpy
import scipy
import statsmodels
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects
from statsmodels.stats.multitest import multipletests


def as_float32(values):
    return numpy.asarray(values, dtype=numpy.float32).astype(float)


def metrics(ranks):
    ranks = numpy.array(ranks)
    return {
        "ranks": ranks.tolist(),
        "hr@10": (ranks <= 10).astype(float).tolist(),
        "ndcg@10": numpy.where(ranks <= 10, 1 / numpy.log2(1 + ranks), 0).tolist(),
        "mrr": (1 / ranks).tolist(),
        "mrr@10": numpy.where(ranks <= 10, 1 / ranks, 0).tolist(),
    }


def seeds(baseline, candidate):
    a, b = numpy.array(baseline), numpy.array(candidate)
    d = b - a
    t = stats.ttest_rel(b, a)
    interval = t.confidence_interval(0.95)
    every = numpy.array([numpy.mean(d * signs) for signs in itertools.product([1, -1], repeat=len(d))])
    exact = stats.PermutationMethod(n_resamples=2 ** len(d) + 1)
    used = d[d != 0]
    return {
        "baseline": a.tolist(),
        "candidate": b.tolist(),
        "means": [a.mean(), b.mean()],
        "deviations": [a.std(ddof=1), b.std(ddof=1)],
        "relative": b.mean() / a.mean() - 1,
        "correlation": stats.pearsonr(a, b).statistic,
        "t": t.statistic,
        "p": t.pvalue,
        "interval": [interval.low, interval.high],
        "sign_p": stats.binomtest(int((used > 0).sum()), len(used)).pvalue,
        "rank_p": stats.wilcoxon(used, method=exact).pvalue,
        "flip_p": float(numpy.mean(numpy.abs(every) >= abs(d.mean()) * (1 - 1e-9))),
        "pairs": len(used),
    }


def long_ranks(random):
    d = numpy.round(random.normal(0.1, 1, size=260), 1)
    used = d[d != 0]
    test = stats.wilcoxon(used, method="approx", correction=False)
    return {"differences": d.tolist(), "p": test.pvalue, "pairs": len(used)}


def anova(values, unit=None):
    """Variances of the mean of values [seed, user], from mean squares of a two-way table. With units: by leaving out
    all users of one unit at a time; the degrees of freedom are the effective number of units - 1."""
    seeds_count, users = values.shape
    by_seed = values.mean(axis=1)
    seed_variance = by_seed.var(ddof=1) / seeds_count
    unit = numpy.arange(users) if unit is None else numpy.array(unit)
    groups, sizes = numpy.unique(unit, return_counts=True)
    shrink = (len(groups) - 1) / len(groups)
    changes = numpy.stack([by_seed - values[:, unit != g].mean(axis=1) for g in groups], axis=1)
    means = changes.mean(axis=0)
    unit_variance = shrink * (means**2).sum()
    noise = shrink * ((changes - means) ** 2).sum() / (seeds_count * (seeds_count - 1))
    unit_df = users**2 / (sizes**2).sum() - 1
    return combine(float(values.mean()), seed_variance, unit_variance, noise, seeds_count - 1, float(unit_df))


def combine(value, seed, unit, noise, seed_df, unit_df):
    variance = max(seed + unit - noise, seed, unit)
    df = variance**2 / (seed**2 / seed_df + unit**2 / unit_df + noise**2 / (seed_df * unit_df))
    error = variance**0.5
    reach = max(stats.t.ppf(0.975, df) * error, stats.t.ppf(0.975, seed_df) * seed**0.5)
    return {
        "value": value,
        "seed_variance": seed,
        "unit_variance": unit,
        "noise_variance": noise,
        "error": error,
        "df": df,
        "interval": [value - reach, value + reach],
        "p": max(2 * stats.t.sf(abs(value) / error, df), 2 * stats.t.sf(abs(value) / seed**0.5, seed_df)),
    }


def two_way_table(values):
    """The same variances from the analysis of variance of statsmodels."""
    from statsmodels.formula.api import ols

    seeds_count, users = values.shape
    frame = {
        "y": values.ravel(),
        "s": numpy.repeat(numpy.arange(seeds_count), users),
        "u": numpy.tile(numpy.arange(users), seeds_count),
    }
    table = sm.stats.anova_lm(ols("y ~ C(s) + C(u)", frame).fit())
    square = table["mean_sq"]
    cells = seeds_count * users
    return [float(square[name] / cells) for name in ("C(s)", "C(u)", "Residual")]


def crossed(random):
    seeds_count, users = 4, 14
    a = as_float32(random.uniform(0.1, 1, size=(seeds_count, users)))
    b = as_float32(a * 0.5 + 0.1 * random.normal(size=(seeds_count, 1)) + random.uniform(0.2, 1, size=a.shape))
    unit = [0, 0, 1, 1, 1, 2, 3, 4, 4, 5, 6, 6, 7, 8]
    d = b - a
    first, second = d[:, :6], d[:, 6:]
    parts = [anova(first), anova(second)]
    by_seed = first.mean(axis=1) - second.mean(axis=1)
    contrast = combine(
        float(by_seed.mean()),
        by_seed.var(ddof=1) / seeds_count,
        sum(part["unit_variance"] for part in parts),
        sum(part["noise_variance"] for part in parts),
        seeds_count - 1,
        5,
    )
    log_ratio = anova(b / b.mean() - a / a.mean())
    value = float(numpy.log(b.mean() / a.mean()))
    log_ratio = combine(
        value, log_ratio["seed_variance"], log_ratio["unit_variance"], log_ratio["noise_variance"], 3, users - 1
    )
    return {
        "seeds": seeds_count,
        "users": users,
        "baseline": a.ravel().tolist(),
        "candidate": b.ravel().tolist(),
        "unit": unit,
        "difference": anova(d),
        "anova_table": two_way_table(d),
        "by_unit": anova(d, unit),
        "log_ratio": log_ratio,
        "contrast": contrast,
    }


def pigeonhole(random):
    """The exact distribution over all resamples of 3 seeds and 4 users."""
    a = as_float32(random.integers(0, 2, size=(3, 4)) + 0.25)
    b = as_float32(random.integers(0, 2, size=(3, 4)) + 0.5)
    differences, ratios = [], []
    for rows in itertools.product(range(3), repeat=3):
        for columns in itertools.product(range(4), repeat=4):
            mean_a, mean_b = a[numpy.ix_(rows, columns)].mean(), b[numpy.ix_(rows, columns)].mean()
            differences.append(mean_b - mean_a)
            ratios.append(numpy.log(mean_b / mean_a))
    result = {"baseline": a.ravel().tolist(), "candidate": b.ravel().tolist()}
    for name, values in (("difference", numpy.array(differences)), ("log_ratio", numpy.array(ratios))):
        tail = min((values <= 1e-12).mean(), (values >= -1e-12).mean())
        result[name] = {"error": values.std(), "mean": values.mean(), "p": min(1.0, 2 * tail)}
        result[name]["quantiles"] = numpy.quantile(values, [0.025, 0.975]).tolist()
    return result


def pooled(random):
    p = [0.0001, 0.03, 0.4, 0.87, 0.2, 0.011]
    signs = [1, 1, -1, 1, -1, 1]
    z = stats.norm.isf(numpy.array(p) / 2) * signs
    total = z.sum() / len(z) ** 0.5
    cases = []
    for spread in (0.0, 0.05):
        error = random.uniform(0.01, 0.03, size=6)
        value = 0.03 + spread * random.normal(size=6) + error * random.normal(size=6)
        result = combine_effects(value, error**2, method_re="dl", use_t=True)
        tau = max(0.0, result.tau2)  # statsmodels lets it be negative
        weight = 1 / (error**2 + tau)
        mean = (weight * value).sum() / weight.sum()
        factor = (weight * (value - mean) ** 2).sum() / 5
        own = (factor / weight.sum()) ** 0.5  # without the floor it is that of statsmodels
        assert tau == 0 or numpy.allclose([own, mean], [result.sd_eff_w_re_hksj, result.mean_effect_re])
        floored = (max(1.0, factor) / weight.sum()) ** 0.5
        reach = stats.t.ppf(0.975, 5) * floored
        cases.append(
            {
                "values": value.tolist(),
                "errors": error.tolist(),
                "tau2": float(tau),
                "mean": float(mean),
                "q": float(result.q),
                "q_p": float(stats.chi2.sf(result.q, 5)),
                "error": float(floored),
                "interval": [float(mean - reach), float(mean + reach)],
                "p": float(2 * stats.t.sf(abs(mean) / floored, 5)),
            }
        )
    fisher = stats.combine_pvalues(p, method="fisher")
    return {
        "p": p,
        "signs": signs,
        "fisher": [fisher.statistic, fisher.pvalue],
        "stouffer": [total, 2 * stats.norm.sf(abs(total))],
        "random_effects": cases,
        "holm": multipletests(p, method="holm")[1].tolist(),
    }


def flips(random):
    """Two data sets that share seeds; one seed is missing in the second."""
    a = random.normal(0.4, 1, size=9).round(3)
    b = random.normal(0.4, 1, size=8).round(3)
    every = []
    for signs in itertools.product([1, -1], repeat=9):
        total = 0
        for d in (a, b):
            d = d * numpy.array(signs)[: len(d)]
            total += d.mean() / numpy.sqrt((d**2).mean())
        every.append(total)
    every = numpy.array(every)
    return {
        "first": a.tolist(),
        "second": b.tolist(),
        "statistic": every[0],
        "p": float(numpy.mean(numpy.abs(every) >= abs(every[0]) - 1e-9)),
        "correlation": stats.pearsonr(a[:8], b).statistic,
    }


def regression(random):
    seeds_count, users = 3, 40
    target = random.integers(0, 12, size=users)
    frequency = random.integers(0, 50, size=12)[target]
    length = random.integers(2, 60, size=users)
    a = as_float32(random.uniform(0, 1, size=(seeds_count, users)))
    b = as_float32(random.uniform(0, 1, size=a.shape) + 0.05 * numpy.log1p(frequency))
    x = numpy.stack([numpy.log1p(frequency), numpy.log(length)], axis=1)
    x = sm.add_constant(x - x.mean(axis=0))
    items = sorted(set(target.tolist()))
    fit = lambda d, keep=slice(None): sm.OLS(d[keep], x[keep]).fit().params
    # How each coefficient changes if the users of one item are left out.
    changes = lambda d: numpy.array([fit(d) - fit(d, target != item) for item in items])
    shrink = (len(items) - 1) / len(items)
    variance = lambda d: shrink * numpy.sum(changes(d) ** 2, axis=0)
    shares = numpy.array([numpy.sum(x[target == item] ** 2, axis=0) for item in items]) / numpy.sum(x**2, axis=0)
    unit_df = 1 / numpy.sum(shares**2, axis=0) - 1
    runs = b - a
    values = fit(runs.mean(axis=0))
    errors = numpy.sqrt(variance(runs.mean(axis=0)))
    by_seed = numpy.array([fit(d) for d in runs])
    # The noise: what is left of each run's slopes after taking off the mean over the runs.
    noise = numpy.sum([variance(d - runs.mean(axis=0)) for d in runs], axis=0)
    crossed_terms = [
        combine(
            float(values[j]),
            by_seed[:, j].var(ddof=1) / seeds_count,
            float(errors[j] ** 2),
            float(noise[j]) / (seeds_count * (seeds_count - 1)),
            seeds_count - 1,
            float(unit_df[j]),
        )
        for j in range(3)
    ]
    return {
        "seeds": seeds_count,
        "users": users,
        "target": target.tolist(),
        "frequency": frequency.tolist(),
        "length": length.tolist(),
        "baseline": a.ravel().tolist(),
        "candidate": b.ravel().tolist(),
        "clusters": len(items),
        "values": values.tolist(),
        "errors": errors.tolist(),
        "p": (2 * stats.t.sf(numpy.abs(values) / errors, unit_df)).tolist(),
        "crossed": crossed_terms,
    }


def main():
    random = numpy.random.default_rng(7)
    base = 0.05 + 0.001 * random.normal(size=12)
    golden = {
        "versions": {
            "python": sys.version.split()[0],
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
            "statsmodels": statsmodels.__version__,
        },
        "metrics": metrics([1, 1.5, 2, 9.5, 10, 10.5, 11, 5000.5]),
        "seeds": [
            seeds(base, base + 0.0006 + 0.001 * random.normal(size=12)),
            seeds([3, 4, 5, 6, 7, 8, 9, 5, 4], [4, 6, 4, 8, 8, 8, 12, 7, 3]),  # ties and a zero
        ],
        "long_ranks": long_ranks(random),
        "crossed": crossed(random),
        "pigeonhole": pigeonhole(random),
        "pooled": pooled(random),
        "flips": flips(random),
        "regression": regression(random),
    }
    json.dump(golden, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
