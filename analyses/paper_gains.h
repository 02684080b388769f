#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace gainlens::analyses {

/// A cell of the paper's main tables: means and standard deviations over 20 seeds, of the backbone and of the same with
/// BFT. Source: bft.tex, Tables main-sasrec, main-bert4rec and main-hstu.
struct PaperGain {
  std::string_view backbone;  ///< "sasrec"
  std::string_view data_set;  ///< as the paper calls it: "Beauty"
  std::string_view metric;    ///< "hr@10", "ndcg@10" or "mrr"
  double baseline;
  double baseline_deviation;
  double candidate;
  double candidate_deviation;
  double relative;     ///< as printed: 0.038 is +3.8%
  std::string_view p;  ///< of the paired t, as printed
};
std::span<const PaperGain> paper_gains();

/// The paper's cell of a backbone and metric on a data set; null if there is none.
/// @param data_name  name of a data file. It stands for a data set of the paper if it contains exactly one of the
///     paper's names ("reviews_Beauty_5" is Beauty). The paper's version of the data may still be another one.
const PaperGain* find_paper_gain(std::string_view backbone, std::string_view data_name, std::string_view metric);

enum class StratumKind { item_frequency, user_activity };

/// A row of the paper's tables of strata: relative gains of SASRec with BFT. The paper's item strata are not quintiles
/// of its items (core/strata.h). Source: bft.tex, Tables cold-item and cold-user.
struct PaperStratum {
  std::string_view data_set;
  StratumKind kind;
  std::size_t stratum;             ///< 0: rarest items, least active users
  std::array<double, 3> relative;  ///< of hr@10, ndcg@10, mrr
};
std::span<const PaperStratum> paper_strata();
/// The paper's relative gain in a stratum; null if there is none.
const double* find_paper_stratum(std::string_view backbone, std::string_view data_name, StratumKind kind,
                                 std::size_t stratum, std::string_view metric);

}  // namespace gainlens::analyses
