#include "analyses/paper_gains.h"

#include "core/check.h"
#include "core/nearest.h"
#include "core/plain_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace gainlens::analyses {
namespace {

constexpr std::string_view no_effect = "zero measurable effect across an order of magnitude";

constexpr PaperKnob knobs[] = {
    {"initial_gain", "K0", "{/:Italic K}_0", false, no_effect},
    {"most_process_noise", "Q_max", "{/:Italic Q}_{max}", false, no_effect},
    {"prior_variance", "sigma0^2", "σ@_0^2", false, no_effect},
    {"initial_decay", "rho0", "ρ_0", false, no_effect},
    {"warm_up", "warm-up", "warm-up", true, "a cliff: 0 steps lose about 1%, and 200 or more lose too"},
    {"precision_learning_rate", "precision LR", "precision LR", true, "a U with its optimum at 100"},
    {"most_precision", "lambda_max", "λ_{max}", true, "10 is too tight; 50 or more are about equal to 100"},
};

constexpr PaperAnswerScore scores[] = {
    {"squad", 0, "bft", .359, .029},  {"squad", 0, "focal", .309, .035},  {"squad", 0, "sft", .331, .034},
    {"squad", 10, "bft", .288, .017}, {"squad", 10, "focal", .290, .017}, {"squad", 10, "sft", .290, .026},
    {"squad", 20, "bft", .300, .030}, {"squad", 20, "focal", .299, .034}, {"squad", 20, "sft", .293, .029},
    {"squad", 30, "bft", .291, .024}, {"squad", 30, "focal", .293, .028}, {"squad", 30, "sft", .280, .018},
    {"squad", 40, "bft", .299, .026}, {"squad", 40, "focal", .293, .021}, {"squad", 40, "sft", .284, .018},
    {"nq", 5, "sft", .2321, .0409},   {"nq", 5, "bft", .2561, .0416},     {"nq", 10, "sft", .1511, .0264},
    {"nq", 10, "bft", .1624, .0231},  {"nq", 15, "sft", .0939, .0147},    {"nq", 15, "bft", .0980, .0217},
    {"nq", 20, "sft", .0716, .0111},  {"nq", 20, "bft", .0748, .0165},
};

constexpr PaperGain gains[] = {
    {"sasrec", "ML-1M", "hr@10", 0.2240, 0.0030, 0.2324, 0.0029, 0.038, "<.0001"},
    {"sasrec", "ML-1M", "ndcg@10", 0.1271, 0.0019, 0.1313, 0.0020, 0.033, "<.0001"},
    {"sasrec", "ML-1M", "mrr", 0.1121, 0.0018, 0.1148, 0.0018, 0.024, ".0004"},
    {"sasrec", "Sports", "hr@10", 0.0496, 0.0011, 0.0522, 0.0009, 0.051, "<.0001"},
    {"sasrec", "Sports", "ndcg@10", 0.0273, 0.0007, 0.0289, 0.0006, 0.059, "<.0001"},
    {"sasrec", "Sports", "mrr", 0.0256, 0.0007, 0.0269, 0.0005, 0.054, "<.0001"},
    {"sasrec", "Instruments", "hr@10", 0.1182, 0.0046, 0.1226, 0.0046, 0.037, ".004"},
    {"sasrec", "Instruments", "ndcg@10", 0.0663, 0.0021, 0.0681, 0.0025, 0.027, ".021"},
    {"sasrec", "Instruments", "mrr", 0.0603, 0.0015, 0.0615, 0.0020, 0.02, ".045"},
    {"sasrec", "Games", "hr@10", 0.1350, 0.0016, 0.1376, 0.0014, 0.02, "<.0001"},
    {"sasrec", "Games", "ndcg@10", 0.0727, 0.0011, 0.0743, 0.0008, 0.021, "<.0001"},
    {"sasrec", "Games", "mrr", 0.0646, 0.0010, 0.0659, 0.0009, 0.02, ".0001"},
    {"sasrec", "Toys", "hr@10", 0.0872, 0.0016, 0.0886, 0.0016, 0.016, ".007"},
    {"sasrec", "Toys", "ndcg@10", 0.0509, 0.0010, 0.0518, 0.0008, 0.018, ".002"},
    {"sasrec", "Toys", "mrr", 0.0460, 0.0009, 0.0469, 0.0008, 0.018, ".002"},
    {"sasrec", "Beauty", "hr@10", 0.0881, 0.0018, 0.0890, 0.0009, 0.01, ".087"},
    {"sasrec", "Beauty", "ndcg@10", 0.0504, 0.0010, 0.0506, 0.0008, 0.005, ".361"},
    {"sasrec", "Beauty", "mrr", 0.0453, 0.0007, 0.0455, 0.0008, 0.005, ".392"},
    {"bert4rec", "ML-1M", "hr@10", 0.1648, 0.0028, 0.1707, 0.0034, 0.035, "<.0001"},
    {"bert4rec", "ML-1M", "ndcg@10", 0.0801, 0.0012, 0.0831, 0.0015, 0.037, "<.0001"},
    {"bert4rec", "ML-1M", "mrr", 0.0708, 0.0010, 0.0732, 0.0012, 0.033, "<.0001"},
    {"bert4rec", "Sports", "hr@10", 0.0506, 0.0024, 0.0546, 0.0015, 0.078, "<.0001"},
    {"bert4rec", "Sports", "ndcg@10", 0.0259, 0.0015, 0.0280, 0.0008, 0.081, "<.0001"},
    {"bert4rec", "Sports", "mrr", 0.0242, 0.0013, 0.0259, 0.0007, 0.072, "<.0001"},
    {"bert4rec", "Instruments", "hr@10", 0.1373, 0.0107, 0.1470, 0.0073, 0.071, ".003"},
    {"bert4rec", "Instruments", "ndcg@10", 0.0741, 0.0060, 0.0802, 0.0043, 0.083, ".001"},
    {"bert4rec", "Instruments", "mrr", 0.0667, 0.0052, 0.0715, 0.0046, 0.073, ".009"},
    {"bert4rec", "Toys", "hr@10", 0.0662, 0.0026, 0.0687, 0.0032, 0.038, ".017"},
    {"bert4rec", "Toys", "ndcg@10", 0.0345, 0.0011, 0.0353, 0.0017, 0.026, ".076"},
    {"bert4rec", "Toys", "mrr", 0.0319, 0.0010, 0.0325, 0.0013, 0.018, ".130"},
    {"bert4rec", "Beauty", "hr@10", 0.0876, 0.0037, 0.0901, 0.0034, 0.028, ".011"},
    {"bert4rec", "Beauty", "ndcg@10", 0.0452, 0.0021, 0.0463, 0.0018, 0.024, ".064"},
    {"bert4rec", "Beauty", "mrr", 0.0406, 0.0017, 0.0414, 0.0015, 0.02, ".112"},
    {"bert4rec", "Games", "hr@10", 0.1164, 0.0029, 0.1159, 0.0027, -0.004, ".512"},
    {"bert4rec", "Games", "ndcg@10", 0.0593, 0.0017, 0.0589, 0.0013, -0.006, ".371"},
    {"bert4rec", "Games", "mrr", 0.0528, 0.0015, 0.0525, 0.0012, -0.005, ".434"},
    {"hstu", "ML-1M", "hr@10", 0.2470, 0.0050, 0.2540, 0.0038, 0.028, "<.001"},
    {"hstu", "ML-1M", "ndcg@10", 0.1433, 0.0028, 0.1467, 0.0023, 0.024, "<.001"},
    {"hstu", "ML-1M", "mrr", 0.1253, 0.0024, 0.1279, 0.0021, 0.021, "<.001"},
    {"hstu", "Sports", "hr@10", 0.0438, 0.0014, 0.0472, 0.0011, 0.076, "<.001"},
    {"hstu", "Sports", "ndcg@10", 0.0246, 0.0008, 0.0263, 0.0006, 0.069, "<.001"},
    {"hstu", "Sports", "mrr", 0.0231, 0.0007, 0.0246, 0.0006, 0.065, "<.001"},
    {"hstu", "Instruments", "hr@10", 0.0948, 0.0058, 0.1091, 0.0054, 0.151, "<.001"},
    {"hstu", "Instruments", "ndcg@10", 0.0551, 0.0031, 0.0613, 0.0025, 0.114, "<.001"},
    {"hstu", "Instruments", "mrr", 0.0510, 0.0028, 0.0553, 0.0020, 0.084, "<.001"},
    {"hstu", "Games", "hr@10", 0.1232, 0.0017, 0.1300, 0.0023, 0.055, "<.001"},
    {"hstu", "Games", "ndcg@10", 0.0673, 0.0008, 0.0709, 0.0013, 0.054, "<.001"},
    {"hstu", "Games", "mrr", 0.0601, 0.0008, 0.0631, 0.0011, 0.049, "<.001"},
    {"hstu", "Toys", "hr@10", 0.0683, 0.0018, 0.0705, 0.0023, 0.032, ".002"},
    {"hstu", "Toys", "ndcg@10", 0.0425, 0.0012, 0.0429, 0.0016, 0.009, ".463"},
    {"hstu", "Toys", "mrr", 0.0393, 0.0012, 0.0395, 0.0015, 0.005, ".697"},
    {"hstu", "Beauty", "hr@10", 0.0715, 0.0015, 0.0750, 0.0022, 0.048, "<.001"},
    {"hstu", "Beauty", "ndcg@10", 0.0431, 0.0010, 0.0442, 0.0013, 0.026, ".011"},
    {"hstu", "Beauty", "mrr", 0.0395, 0.0008, 0.0403, 0.0011, 0.02, ".034"},
};

constexpr PaperStratum strata[] = {
    {"ML-1M", StratumKind::item_frequency, 0, {0.133, 0.142, 0.072}},
    {"ML-1M", StratumKind::item_frequency, 1, {0.053, 0.047, 0.035}},
    {"ML-1M", StratumKind::item_frequency, 2, {0.06, 0.062, 0.046}},
    {"ML-1M", StratumKind::item_frequency, 3, {0.004, 0.004, 0.005}},
    {"ML-1M", StratumKind::item_frequency, 4, {0.037, 0.05, 0.055}},
    {"ML-1M", StratumKind::user_activity, 0, {0.052, 0.066, 0.065}},
    {"ML-1M", StratumKind::user_activity, 1, {0.02, 0.035, 0.041}},
    {"ML-1M", StratumKind::user_activity, 2, {0.02, 0.017, 0.015}},
    {"ML-1M", StratumKind::user_activity, 3, {0.031, 0.043, 0.045}},
    {"ML-1M", StratumKind::user_activity, 4, {0.079, 0.055, 0.032}},
    {"Sports", StratumKind::item_frequency, 0, {0.145, 0.171, 0.124}},
    {"Sports", StratumKind::item_frequency, 1, {0.02, 0.036, 0.042}},
    {"Sports", StratumKind::item_frequency, 2, {0.014, 0.049, 0.065}},
    {"Sports", StratumKind::item_frequency, 3, {0.045, 0.049, 0.051}},
    {"Sports", StratumKind::item_frequency, 4, {0.004, -0.003, -0.004}},
    {"Sports", StratumKind::user_activity, 0, {0.066, 0.074, 0.068}},
    {"Sports", StratumKind::user_activity, 1, {0.029, 0.053, 0.059}},
    {"Sports", StratumKind::user_activity, 2, {0.076, 0.088, 0.08}},
    {"Sports", StratumKind::user_activity, 3, {0.048, 0.046, 0.037}},
    {"Sports", StratumKind::user_activity, 4, {0.025, 0.042, 0.046}},
};

constexpr PaperDataSet data_sets[] = {
    {"ML-1M", 6040, 3416, 999000},    {"Instruments", 1429, 900, 10300}, {"Beauty", 22363, 12101, 198000},
    {"Sports", 35598, 18357, 296000}, {"Toys", 19412, 11924, 167000},    {"Games", 24303, 10672, 233000},
};

/// Interactions are printed rounded, and not always to the nearest number.
bool are_about(std::int64_t interactions, std::int64_t printed) {
  constexpr double reach = 0.01;
  return std::abs(static_cast<double>(interactions - printed)) <= reach * static_cast<double>(printed);
}

}  // namespace

std::span<const PaperKnob> paper_knobs() {
  return knobs;
}

const PaperKnob* find_paper_knob(std::string_view key) {
  const auto* const found = std::ranges::find(knobs, key, &PaperKnob::key);
  return found == std::end(knobs) ? nullptr : found;
}

std::span<const PaperAnswerScore> paper_answer_scores() {
  return scores;
}

const PaperAnswerScore* find_paper_answer_score(std::string_view task, double condition, std::string_view arm) {
  for (const PaperAnswerScore& score : scores) {
    if (score.task == task && score.condition == condition && score.arm == arm) return &score;
  }
  return nullptr;
}

std::span<const PaperGain> paper_gains() {
  return gains;
}

std::span<const PaperStratum> paper_strata() {
  return strata;
}

std::span<const PaperDataSet> paper_data_sets() {
  return data_sets;
}

std::string parse_paper_data_set(std::string_view name) {
  std::vector<std::string> names;
  for (const PaperDataSet& set : data_sets) names.emplace_back(set.name);
  names.emplace_back(no_paper_data_set);
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const auto& known) { return ascii_lower(known) == ascii_lower(name); });
  CHECK(found != names.end(), "--paper: '{}'; must be one of {}{}", printable(name, 60), fmt::join(names, ", "),
        did_you_mean(std::string(name), names));
  return *found;
}

PaperMatch paper_match(std::string_view name, std::int64_t users, std::int64_t items, std::int64_t interactions) {
  if (name == no_paper_data_set) return {};
  if (!name.empty()) return {std::string(name), true};
  const auto* found = std::find_if(std::begin(data_sets), std::end(data_sets), [&](const PaperDataSet& set) {
    return set.users == users && set.items == items && are_about(interactions, set.interactions);
  });
  return found == std::end(data_sets) ? PaperMatch{} : PaperMatch{std::string(found->name), false};
}

std::string in_words(const PaperMatch& match) {
  return match.data_set + (match.named ? ", which --paper names" : ", which has as many users and items as these data");
}

const PaperGain* find_paper_gain(std::string_view backbone, std::string_view data_set, std::string_view metric) {
  const auto* found = std::find_if(std::begin(gains), std::end(gains), [&](const PaperGain& gain) {
    return gain.backbone == backbone && gain.data_set == data_set && gain.metric == metric;
  });
  return found == std::end(gains) ? nullptr : found;
}

const double* find_paper_stratum(std::string_view backbone, std::string_view data_set, StratumKind kind,
                                 std::size_t stratum, std::string_view metric) {
  constexpr std::string_view metrics[] = {"hr@10", "ndcg@10", "mrr"};
  const auto* column = std::find(std::begin(metrics), std::end(metrics), metric);
  if (backbone != "sasrec" || column == std::end(metrics)) return nullptr;
  const auto* found = std::find_if(std::begin(strata), std::end(strata), [&](const PaperStratum& row) {
    return row.data_set == data_set && row.kind == kind && row.stratum == stratum;
  });
  return found == std::end(strata) ? nullptr : &found->relative[static_cast<std::size_t>(column - std::begin(metrics))];
}

}  // namespace gainlens::analyses
