#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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

/// A data set of the paper with the sizes that it prints. Source: bft.tex, Table data-stats. There Sports has 25,598
/// users, a misprint: the paper's own groups of users add up to 35,598, as Amazon's data do.
struct PaperDataSet {
  std::string_view name;
  std::int64_t users, items;
  std::int64_t interactions;  ///< rounded to thousands (Instruments: to hundreds)
};
std::span<const PaperDataSet> paper_data_sets();

/// The data set of the paper beside which some data stand; `data_set` is empty if there is none.
struct PaperMatch {
  std::string data_set;  ///< name of a PaperDataSet
  bool named = false;    ///< the user named it; otherwise the sizes are the same
};
/// What stands for "no data set of the paper" where one can be named.
inline constexpr std::string_view no_paper_data_set = "none";
/// A data set of the paper by its name, in any case; or "none".
/// @throws InvalidArgument  no such name (nearest match named)
std::string parse_paper_data_set(std::string_view name);
/// @param name  as parse_paper_data_set() gave it; empty: the data set with the same numbers of users and items, and
/// the
///     same number of interactions within 1%. Names of files play no part. The paper's split is not known.
PaperMatch paper_match(std::string_view name, std::int64_t users, std::int64_t items, std::int64_t interactions);
/// "Beauty, which has as many users and items as these data", for captions.
std::string in_words(const PaperMatch& match);

/// The paper's cell of a backbone and metric on one of its data sets; null if there is none.
/// @param data_set  name of a PaperDataSet, or empty
const PaperGain* find_paper_gain(std::string_view backbone, std::string_view data_set, std::string_view metric);

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
const double* find_paper_stratum(std::string_view backbone, std::string_view data_set, StratumKind kind,
                                 std::size_t stratum, std::string_view metric);

/// F1 of an arm in the paper's fine-tuning of TinyLlama-1.1B: mean and standard deviation over 20 seeds.
struct PaperAnswerScore {
  std::string_view task;  ///< "squad", or "nq"
  int condition;          ///< percent of corrupted answer words; number of passages of nq
  std::string_view arm;   ///< "bft", "focal", "sft"
  double f1;
  double deviation;
};

/// Source: bft.tex, Tables squad-detail and nq-detail.
std::span<const PaperAnswerScore> paper_answer_scores();

/// Null if the paper has no such number.
const PaperAnswerScore* find_paper_answer_score(std::string_view task, double condition, std::string_view arm);

/// A setting of the filter whose sensitivity the paper shows.
struct PaperKnob {
  std::string_view key;     ///< of the settings
  std::string_view symbol;  ///< as text: "K0"
  std::string_view plot;    ///< the same in gnuplot's markup
  bool tunable;             ///< the paper calls it worth tuning; otherwise flat
  std::string_view says;    ///< what the paper says of it, in few words
};

/// The seven, in the order of the paper's figures: four flat, three tunable.
/// Source: bft.tex, appendix ablations (Beauty, HR@10, 10 seeds).
std::span<const PaperKnob> paper_knobs();
/// Null for other settings.
const PaperKnob* find_paper_knob(std::string_view key);

}  // namespace gainlens::analyses
