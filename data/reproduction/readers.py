"""Figures of a run: rows of (what, the paper, here) from the JSON that gainlens prints or writes, and its size."""

import math

from parts import SIZES

METRICS = {"hr@10": "HR@10", "ndcg@10": "NDCG@10", "mrr": "MRR"}
NOTHING = "–"


class OtherRun(Exception):
    """The run is not that of the part's command."""


def check(part, json):
    """@throws OtherRun if the run that was read has another backbone or other data than the part's command"""
    if "comparisons" in json and len(json["comparisons"]) != 1:
        raise OtherRun(f"{part.id}: the run has {len(json['comparisons'])} comparisons in place of one")
    of = (json.get("comparisons") or json.get("arms") or [json])[0]
    for name, wanted in (("backbone", part.backbone), ("users", SIZES.get(part.data, (None, None))[0]),
                         ("items", SIZES.get(part.data, (None, None))[1])):
        if wanted and name in of and of[name] != wanted:
            raise OtherRun(f"{part.id}: the run has the {name} {of[name]}, and the part is of {wanted}")


def number(value, digits=4):
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def share(value):
    return f"{100 * value:+.1f}%"


def interval(low, high, form):
    return f"({form(low)} to {form(high)})"


def counted(count, one):
    return f"{count} {one}{'' if count == 1 else 's'}"


def seeds_of(pair):
    return counted(pair["metrics"]["hr@10"]["seeds"]["seeds"], "seed")


def change(of, relative_difference):
    """A relative change with its 95% interval and p over seeds and users, where there are enough of them."""
    if relative_difference is None:
        return "not defined"
    ratio, text = of["log_ratio"], share(relative_difference)
    if ratio and ratio["interval_95"]:
        text += f" {interval(*(math.expm1(edge) for edge in ratio['interval_95']), share)}, p {number(ratio['p'], 3)}"
    return text


def compare(json):
    (pair,) = json["comparisons"]
    rows = []
    for metric, name in METRICS.items():
        of = pair["metrics"][metric]
        seeds, paper = of["seeds"], of.get("paper")
        rows.append((
            name,
            f"{number(paper['baseline_mean'])} → {number(paper['candidate_mean'])}: "
            f"{share(paper['relative_difference'])}, p {paper['paired_t_naive_p']}" if paper else NOTHING,
            f"{number(seeds['baseline']['mean'])} → {number(seeds['candidate']['mean'])}: "
            f"{change(of, seeds['relative_difference'])}"))
    return rows, seeds_of(pair)


def strata(json, kind):
    (pair,) = json["comparisons"]
    of = pair["strata"][kind]
    rows = []
    for metric, name in METRICS.items():
        for index, (stratum, group) in enumerate(zip(of["metrics"][metric]["strata"], of["composition"])):
            paper = stratum.get("paper_relative_difference")
            rows.append((f"{name}, group {index}, {group['users']:,} users",
                         share(paper) if paper is not None else NOTHING,
                         change(stratum, stratum["relative_difference"])))
    return rows, seeds_of(pair)


def statistics(json):
    lengths = json["sequence_length"]
    mean = json["interactions"] / json["users"]
    return [("users", NOTHING, f"{json['users']:,}"), ("items", NOTHING, f"{json['items']:,}"),
            ("interactions", NOTHING, f"{json['interactions']:,}"),
            ("mean length of a history", NOTHING, f"{mean:.1f}"),
            ("longest history", NOTHING, f"{lengths['max']:,}"),
            ("density", NOTHING, f"{100 * json['density']:.2f}%")], "whole"


def evidence(json):
    (arm,) = json["arms"]
    rows = []
    for head in arm["heads"]:
        for key, name, digits in (("n_eff", "n_eff", 2), ("n_eff_share", "n_eff / keys", 3)):
            of = head[key]["mean"]
            rows.append((f"{name}, layer {head['layer']}, head {head['head']}", NOTHING,
                         f"{number(of['value'], digits)} {interval(*of['interval'], lambda x: number(x, digits))}"))
    return rows, counted(len(arm["seeds"]), "seed")


def frequency(json):
    (arm,) = json["arms"]
    paper = arm["paper"]
    last = arm["layers"][-1]
    rows = []
    for key, name, printed in (("gain", "K", paper["gain_rho"]), ("precision", "lambda", paper["precision_rho"])):
        rows.append((f"rho of {name}, last layer", f"{printed:+.3f}",
                     f"{last[key]['rho']:+.3f} {interval(*last[key]['interval'], '{:+.3f}'.format)}"))
        for placebo, title in zip(last[key]["placebos"], arm["placebos"]):
            rows.append((f"rho of {name}, placebo {title}", NOTHING, f"{placebo['rho']:+.3f}"))
    return rows, counted(len(arm["seeds"]), "seed")


def sensitivity(json):
    rows = [(f"`{knob['key']}`, {len(knob['settings'])} other settings", knob["paper"], knob["words"])
            for knob in json["knobs"]]
    return rows, f"{counted(len(json['seeds']), 'seed')} a setting"


def _samples(summary):
    return f"{counted(summary['lengths'][0]['chunks'], 'sample')} a length"


def answers(summary):
    """F1 of a fine-tuning against its first arm, arm by arm: at each level of noise, then over all levels."""
    of = summary["noise_levels"]
    levels = len(of["levels"])
    rows = []
    for gain in of["gains"]:
        if len(gain["levels"]) not in (1, levels):
            continue  # without one level
        if len(gain["levels"]) == 1:
            where = f"{gain['levels'][0]:g}% wrong words"
        else:
            where = "all levels"
        f1 = gain["comparison"]["scores"]["f1"]
        seeds = f1["seeds"]
        rows.append((f"F1, `{gain['arm']}`, {where}", NOTHING,
                     f"{number(seeds['baseline']['mean'])} → {number(seeds['candidate']['mean'])}: "
                     f"{change(f1, seeds['relative_difference'])}"))
    return rows, counted(min(len(cell["seeds"]) for cell in of["cells"]), "seed")


def context(summary):
    points = summary["context"]["points"]
    path = lambda key, digits: " → ".join(number(point[key], digits) for point in points)
    tokens = ", ".join(str(point["tokens"]) for point in points)
    return [("tokens", "1k, 2k, 4k, 6k, 8k, 10k", tokens),
            ("n_eff", "32.5 → 41.4 → 55.1 → 64.0 → 66.0 → 70.7", path("n_eff", 1)),
            ("gate", ".277 → .292 → .303 → .306 → .308 → .304", path("gate", 3)),
            ("lambda_obs, relative", "1.00 → 1.09 → 1.23 → 1.28 → 1.28 → 1.28", path("observation_precision_ratio", 2)),
            ], _samples(summary)


def theory(summary):
    of = summary["gain_theory"]
    return [("largest error of the formula, relative to K", "0.28%", f"{100 * of['max_relative_error']:.2f}%"),
            ("the same of a constant K", NOTHING, f"{100 * of['max_constant_error']:.2f}%")], _samples(summary)


def sinks(summary):
    of = summary["sink_vs_k"]["correlations"]["kalman_gain"]["pooled"]
    verdict = summary["verdicts"][0]
    return [("Pearson r of BOS mass and K", "+.25 over 448 points, p 1.3e-7",
             f"{of['pearson']:+.2f} over {of['points']} heads, naive p {of['pearson_naive_p']:.1g}"),
            ("verdict of the decisive test", "confirmed", verdict["verdict"])], _samples(summary)


def read(reader, json):
    """@throws KeyError if the JSON is that of another version of gainlens"""
    name, _, argument = reader.partition(":")
    function = globals()[name]
    return function(json, argument) if argument else function(json)
