#pragma once

#include "analyses/arm_pairs.h"
#include "analyses/crossed_estimate.h"
#include "analyses/measured.h"
#include "analyses/seed_comparison.h"
#include "core/json.h"
#include "core/ranking_metrics.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// One setting of a recommender at a time: how much does the metric change?

namespace gainlens::analyses {

struct SensitivityOptions {
  std::string arm = {};  ///< name; empty: the only one that has variants
  RankingMetric metric = {RankingMetric::Kind::hit, 10};
  /// Largest relative change that still counts as flat: a mean within 1 / (1 + margin) and 1 + margin of the
  /// reference's. The paper calls a change of 0.5% to 1% a signal that is worth tuning.
  double margin = 0.01;
};

/// One setting of a knob against the reference, which differs in nothing else.
struct SettingResult {
  std::string arm;  ///< "bft/initial_gain-0.5"
  Json value;
  std::string text;                  ///< of the value, for readers: "0.5", "1/d"
  std::optional<double> place;       ///< the value as a number; absent for words
  std::vector<std::uint64_t> seeds;  ///< finished here and in the reference
  ArmSummary summary;                ///< the metric over these seeds
  ArmSummary reference;              ///< the reference over the same seeds
  /// The ranks of all users are those of the reference with every seed: the setting changes nothing.
  bool same_ranks = false;
  Maybe<CrossedEstimate> change;  ///< ln(mean / mean of the reference), over seeds and users
  Measured p;                     ///< of `change`
  Measured holm;                  ///< corrected for all settings of all knobs that have a p
  Equivalence equivalence;        ///< of `change`, within ±ln(1 + margin)

  bool is_flat() const { return same_ranks || equivalence.flatness == Flatness::equivalent; }
  bool differs() const;  ///< after Holm
  /// The smallest relative margin within which the setting would be shown to be flat: the end of the 90% interval of
  /// the log ratio that is farther from 0. So -6.8% asks for 7.3%: 1 / (1 + 0.073) is 1 - 0.068.
  Measured reach() const;
};

enum class KnobAnswer {
  flat,     ///< every setting is shown to lie within the margin
  differs,  ///< at least one setting differs after Holm, and not all lie within the margin
  open,     ///< neither of these
};

/// A setting of the run with the values that it has in its variants.
struct KnobResult {
  std::string key;
  Json reference;                         ///< value of the run
  std::string reference_text;             ///< the same for readers
  std::optional<double> reference_place;  ///< the same as a number; absent for words
  std::vector<SettingResult> settings;    ///< by value
  KnobAnswer answer = KnobAnswer::open;
  /// The p of "flat": the largest equivalence p of the settings. It needs no correction, because every setting has to
  /// pass.
  Measured flat_p = Measured::none("not computed");
  Measured flat_holm = Measured::none("not computed");  ///< corrected for all knobs that have one

  std::string in_words(double margin) const;
};

/// An arm that takes no part.
struct LeftOutVariant {
  std::string arm, reason;
};

struct Sensitivity {
  std::string data_set, backbone, arm;
  RankingMetric metric;
  double margin;
  std::vector<std::uint64_t> seeds;  ///< of the reference
  std::size_t users;
  ArmSummary reference;
  std::vector<KnobResult> knobs;  ///< those of the paper first, in its order
  std::vector<LeftOutVariant> left_out;

  std::string label() const { return arm; }
  /// Half the width of the 95% interval of a change, as a relative change; the median over all settings that have one.
  Measured median_half_width() const;
};

/// Relative change of a logarithm of a ratio.
double relative_change(double log_ratio);
Maybe<Interval> relative_change(const Maybe<Interval>& log_ratios);

/// @throws InvalidArgument  a margin that is not between 0 and 1
void check(const SensitivityOptions& options);

/// Source: bft.tex, appendix ablations; docs/analyses/sensitivity.md.
/// @param path  of the run, for messages
/// @throws InvalidArgument  as check(); no such arm (nearest match named), none or several
///     with variants; no finished seed without a variant; no variant that differs in one setting and has a seed of the
///     reference; variants of the request that are no objects
Sensitivity sensitivity(const std::filesystem::path& path, const std::shared_ptr<const runfile::RecommendRun>& run,
                        const SensitivityOptions& options);

OrderedJson to_json(const Sensitivity& sensitivity);

}  // namespace gainlens::analyses
