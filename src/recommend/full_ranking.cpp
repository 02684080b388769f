#include "recommend/full_ranking.h"

#include "core/check.h"
#include "core/list_metrics.h"
#include "recommend/row_means.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gainlens::recommend {
namespace {

using Histories = std::vector<data::History>;

/// Scores of a block of users that are kept: 32 MiB in float32. With more items they are computed twice.
constexpr std::int64_t max_kept_scores = std::int64_t{1} << 23;

/// The columns of the known items of each user of a block, sorted.
class KnownItems {
 public:
  explicit KnownItems(const Histories& histories) {
    for (const data::History& history : histories) {
      std::vector<std::int64_t>& columns = columns_.emplace_back(history.items.begin(), history.items.end());
      for (std::int64_t& column : columns) --column;
      std::sort(columns.begin(), columns.end());
      columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    }
  }

  /// Those in [first, last).
  std::span<const std::int64_t> of(std::int64_t user, std::int64_t first, std::int64_t last) const {
    const std::vector<std::int64_t>& columns = columns_[static_cast<std::size_t>(user)];
    const auto begin = std::lower_bound(columns.begin(), columns.end(), first);
    return {begin, std::lower_bound(begin, columns.end(), last)};
  }

 private:
  std::vector<std::vector<std::int64_t>> columns_;  // [user]
};

/// The known items, or none of them if they are to stay candidates.
KnownItems known_items(const Histories& histories, const RankingOptions& options) {
  return KnownItems(options.keep_seen ? Histories(histories.size()) : histories);
}

/// Scores of a block of users, a block of items at a time.
class ScoreBlocks {
 public:
  ScoreBlocks(Scorer& scorer, const Histories& histories, std::int64_t items, std::int64_t items_at_once)
      : scorer_(scorer), users_(scorer.represent(histories)), items_(items), items_at_once_(items_at_once) {}

  /// Calls visit(first column, scores [user, column]) for each block.
  template <typename Visit>
  void for_each(const Visit& visit) {
    const bool keep = users_.size(0) * items_ <= max_kept_scores;
    for (std::int64_t first = 0; first < items_; first += items_at_once_) {
      const auto block = static_cast<std::size_t>(first / items_at_once_);
      const at::Tensor scores =
          block < kept_.size() ? kept_[block] : scorer_.scores(users_, first, std::min(items_at_once_, items_ - first));
      if (keep && block == kept_.size()) kept_.push_back(scores);
      visit(first, scores);
    }
  }
  at::Device device() const { return users_.device(); }

 private:
  Scorer& scorer_;
  at::Tensor users_;
  std::int64_t items_, items_at_once_;
  std::vector<at::Tensor> kept_;  // so that a small catalogue is scored once
};

/// Scores of one target for each user.
/// @param targets  int64 [user]: columns
at::Tensor target_scores(ScoreBlocks& blocks, const at::Tensor& targets) {
  at::Tensor found;
  blocks.for_each([&](std::int64_t first, const at::Tensor& scores) {
    const at::Tensor column = targets - first, here = column.ge(0).logical_and(column.lt(scores.size(1)));
    const at::Tensor block_scores = scores.gather(1, column.clamp(0, scores.size(1) - 1).unsqueeze(1)).squeeze(1);
    found = found.defined() ? at::where(here, block_scores, found) : block_scores;
  });
  return found;
}

/// How the scores of a row compare with a score.
struct Comparison {
  std::int64_t better = 0, equal = 0;
  bool broken = false;  ///< NaN or infinity: neither better nor worse, it must not pass as a bad score
};

Comparison compare(std::span<const float> scores, float with) {
  std::int32_t better = 0, equal = 0, finite = 0;  // the compiler makes vector code of such sums
  for (const float score : scores) {
    better += score > with;
    equal += score == with;
    finite += score - score == 0;
  }
  return {better, equal, finite != std::ssize(scores)};
}

/// Calls visit(user of the block, its scores) for a block of items, on several threads.
/// @param scores  [user, column]
template <typename Visit>
void for_each_user(const at::Tensor& scores, std::int64_t users_of_thread, const Visit& visit) {
  const at::Tensor here = scores.to(at::kCPU, at::kFloat).contiguous();
  const auto columns = static_cast<std::size_t>(here.size(1));
  at::parallel_for(0, here.size(0), users_of_thread, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t user = begin; user < end; ++user)
      visit(user, std::span(here.const_data_ptr<float>() + user * here.size(1), columns));
  });
}

/// Ranks of the targets of a block of users.
/// @param targets  [user]: columns
/// @param known    columns that are no candidates; a target is one in any case
std::vector<float> ranks_of(ScoreBlocks& blocks, const std::vector<std::int64_t>& targets, const KnownItems& known) {
  const at::Tensor own = target_scores(blocks, at::tensor(targets, at::kLong).to(blocks.device())).to(at::kCPU);
  std::vector<Comparison> found(targets.size());
  blocks.for_each([&](std::int64_t first, const at::Tensor& scores) {
    for_each_user(scores, 4, [&](std::int64_t user, std::span<const float> row) {
      const float with = own.const_data_ptr<float>()[user];
      Comparison& all = found[static_cast<std::size_t>(user)];
      const Comparison here = compare(row, with);
      all.better += here.better;
      all.equal += here.equal;
      all.broken |= here.broken;
      for (const std::int64_t column : known.of(user, first, first + std::ssize(row))) {
        if (column == targets[static_cast<std::size_t>(user)]) continue;
        const float score = row[static_cast<std::size_t>(column - first)];
        all.better -= score > with;
        all.equal -= score == with;
      }
    });
  });
  std::vector<float> ranks;
  for (const Comparison& comparison : found) {
    const auto others = static_cast<double>(comparison.equal - 1);  // the target is equal to itself
    const double rank = 1 + static_cast<double>(comparison.better) + 0.5 * others;
    ranks.push_back(comparison.broken ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(rank));
  }
  return ranks;
}

/// Calls visit(column, score) for the candidates of a user in a block, in order.
/// @param scores   of the block, whose first column is `first`
/// @param removed  columns that are no candidates, sorted
template <typename Visit>
void for_each_candidate(std::span<const float> scores, std::int64_t first, std::span<const std::int64_t> removed,
                        const Visit& visit) {
  auto next = removed.begin();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::int64_t column = first + static_cast<std::int64_t>(i);
    if (next != removed.end() && *next == column) {
      ++next;
    } else {
      visit(column, scores[i]);
    }
  }
}

/// An item and its score. Better ones come first; of equal scores the smaller id.
struct Candidate {
  float score;
  data::ItemId item;
  bool operator<(const Candidate& other) const {
    return score != other.score ? score > other.score : item < other.item;
  }
};

/// Keeps the best candidates of each user while blocks of items pass by.
class BestCandidates {
 public:
  BestCandidates(std::int64_t users, std::int64_t count)
      : count_(static_cast<std::size_t>(count)), heaps_(static_cast<std::size_t>(users)) {}

  /// @param scores  [user, column]
  /// @param known   columns that are no candidates
  void add(std::int64_t first, const at::Tensor& scores, const KnownItems& known) {
    for_each_user(scores, 1, [&](std::int64_t user, std::span<const float> row) {
      const auto removed = known.of(user, first, first + std::ssize(row));
      for_each_candidate(row, first, removed, [&](std::int64_t column, float score) {
        offer(heaps_[static_cast<std::size_t>(user)], {score, static_cast<data::ItemId>(column + 1)});
      });
    });
  }

  void append_to(Recommendations& to) {
    for (std::vector<Candidate>& heap : heaps_) {
      std::sort_heap(heap.begin(), heap.end());
      heap.resize(count_, {std::numeric_limits<float>::quiet_NaN(), 0});
      for (const Candidate& candidate : heap) {
        to.items.push_back(candidate.item);
        to.scores.push_back(candidate.score);
      }
    }
  }

 private:
  /// The front of a heap is its worst candidate.
  void offer(std::vector<Candidate>& heap, const Candidate& candidate) const {
    if (heap.size() == count_) {
      if (!(candidate < heap.front())) return;
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
    }
    heap.push_back(candidate);
    std::push_heap(heap.begin(), heap.end());
  }

  std::size_t count_;
  std::vector<std::vector<Candidate>> heaps_;  // [user]
};

/// The sum of exp(score - largest score) over candidates, a block of items at a time. Scores are finite.
class SoftmaxPeak {
 public:
  /// @param scores, first, removed  as for_each_candidate()
  void add(std::span<const float> scores, std::int64_t first, std::span<const std::int64_t> removed) {
    float largest = largest_;
    for_each_candidate(scores, first, removed, [&](std::int64_t, float score) { largest = std::max(largest, score); });
    if (largest > largest_) sum_ = sum_ == 0 ? 0 : sum_ * std::exp(static_cast<double>(largest_ - largest));
    largest_ = largest;
    for_each_candidate(scores, first, removed,
                       [&](std::int64_t, float score) { sum_ += std::exp(static_cast<double>(score - largest_)); });
  }
  /// The sum: at least 1; 0 without a candidate.
  double sum() const { return sum_; }

 private:
  float largest_ = -std::numeric_limits<float>::infinity();
  double sum_ = 0;
};

/// [user] the largest probability of a candidate, by the softmax of the scores; 0: there is none.
/// @param blocks  of finite scores
std::vector<double> largest_probabilities(ScoreBlocks& blocks, std::int64_t users, const KnownItems& known) {
  std::vector<SoftmaxPeak> peaks(static_cast<std::size_t>(users));
  blocks.for_each([&](std::int64_t first, const at::Tensor& scores) {
    for_each_user(scores, 4, [&](std::int64_t user, std::span<const float> row) {
      peaks[static_cast<std::size_t>(user)].add(row, first, known.of(user, first, first + std::ssize(row)));
    });
  });
  std::vector<double> found;
  found.reserve(peaks.size());
  for (const SoftmaxPeak& peak : peaks) found.push_back(peak.sum() == 0 ? 0 : 1 / peak.sum());
  return found;
}

using Users = std::pair<std::int64_t, std::int64_t>;

/// Calls visit(first user, number of users, their scores, their known items) for one block of users after the other.
/// @param history_of  of a user
template <typename HistoryOf, typename Visit>
void for_each_user_block(Scorer& scorer, const data::LeaveOneOut& split, Users users, const RankingOptions& options,
                         const HistoryOf& history_of, const Visit& visit) {
  const c10::InferenceMode inference;
  for (std::int64_t begin = users.first; begin < users.second; begin += options.users_at_once) {
    const std::int64_t end = std::min(begin + options.users_at_once, users.second);
    Histories histories;
    for (std::int64_t user = begin; user < end; ++user) histories.push_back(history_of(user));
    ScoreBlocks blocks(scorer, histories, split.items(), options.items_at_once);
    visit(begin, end - begin, blocks, known_items(histories, options));
  }
}

/// Appends the ranks of the held-out items of users from `begin` on.
/// @throws RunFailed  a score is NaN or infinite (names the user)
void append_ranks(std::vector<float>& ranks, ScoreBlocks& blocks, const KnownItems& known,
                  const data::LeaveOneOut& split, data::HeldOut held_out, std::int64_t begin, std::int64_t users) {
  std::vector<std::int64_t> targets;
  for (std::int64_t user = begin; user < begin + users; ++user) targets.push_back(split.target(user, held_out) - 1);
  const std::vector<float> found = ranks_of(blocks, targets, known);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(found[i]))
      throw_run_failed("ranking: the scores of user '{}' are NaN or infinite",
                       printable(split.interactions().users[static_cast<std::size_t>(begin) + i], 60));
  }
  ranks.insert(ranks.end(), found.begin(), found.end());
}

/// @param history_of  of a user
template <typename HistoryOf>
Recommendations best_after(Scorer& scorer, const data::LeaveOneOut& split, std::int64_t count,
                           const RankingOptions& options, const HistoryOf& history_of) {
  Recommendations found{count, {}, {}};
  for_each_user_block(
      scorer, split, {0, split.users()}, options, history_of,
      [&](std::int64_t, std::int64_t users, ScoreBlocks& blocks, const KnownItems& known) {
        BestCandidates best(users, count);
        blocks.for_each([&](std::int64_t first, const at::Tensor& scores) { best.add(first, scores, known); });
        best.append_to(found);
      });
  return found;
}

}  // namespace

std::vector<float> rank_users(Scorer& scorer, const data::LeaveOneOut& split, data::HeldOut held_out,
                              std::pair<std::int64_t, std::int64_t> users, const RankingOptions& options) {
  std::vector<float> ranks;
  for_each_user_block(
      scorer, split, users, options, [&](std::int64_t user) { return split.history(user, held_out); },
      [&](std::int64_t begin, std::int64_t count, ScoreBlocks& blocks, const KnownItems& known) {
        append_ranks(ranks, blocks, known, split, held_out, begin, count);
      });
  return ranks;
}

std::vector<float> rank_all(Scorer& scorer, const data::LeaveOneOut& split, data::HeldOut held_out,
                            const RankingOptions& options) {
  return rank_users(scorer, split, held_out, {0, split.users()}, options);
}

Recommendations recommend_all(Scorer& scorer, const data::LeaveOneOut& split, std::int64_t count,
                              const RankingOptions& options) {
  CHECK(count >= 1 && count <= split.items(), "--top-k: {}; the catalogue has {} items", count, split.items());
  return best_after(scorer, split, count, options,
                    [&](std::int64_t user) { return split.interactions().history(user); });
}

Recommendations best_items(Scorer& scorer, const data::LeaveOneOut& split, data::HeldOut held_out, std::int64_t count,
                           const RankingOptions& options) {
  return best_after(scorer, split, count, options, [&](std::int64_t user) { return split.history(user, held_out); });
}

std::map<std::string, double> list_metrics_of(Scorer& scorer, const data::LeaveOneOut& split, data::HeldOut held_out,
                                              const RankingOptions& options) {
  const Recommendations lists = best_items(scorer, split, held_out, std::min(list_length, split.items()), options);
  return metrics_of_lists(lists.items, std::span(split.training_counts()).subspan(1));
}

ConfidentRanks rank_with_confidence(Scorer& scorer, const data::LeaveOneOut& split, data::HeldOut held_out,
                                    const RankingOptions& options) {
  ConfidentRanks found;
  for_each_user_block(
      scorer, split, {0, split.users()}, options, [&](std::int64_t user) { return split.history(user, held_out); },
      [&](std::int64_t begin, std::int64_t users, ScoreBlocks& blocks, const KnownItems& known) {
        append_ranks(found.ranks, blocks, known, split, held_out, begin, users);
        for (const double probability : largest_probabilities(blocks, users, known)) {
          CHECK(probability > 0, "ranking: user '{}' has seen every item",
                printable(split.interactions().users[found.largest_probability.size()], 60));
          found.largest_probability.push_back(probability);
        }
      });
  return found;
}

at::Tensor BackboneScorer::represent(std::span<const data::History> histories) {
  const LastStates last = model_.last_states(pack(histories, model_.view(), model_.device()));
  if (precisions_ != nullptr && last.precision.defined()) {
    const std::size_t before = precisions_->size();
    append_row_means(*precisions_, last.precision);
    if (!std::all_of(precisions_->begin() + static_cast<std::ptrdiff_t>(before), precisions_->end(),
                     [](double mean) { return std::isfinite(mean); }))
      throw_run_failed("ranking: the precision of a user is NaN or infinite");
  }
  return last.hidden;
}

at::Tensor BackboneScorer::scores(const at::Tensor& users, std::int64_t first, std::int64_t count) {
  const at::Tensor products = at::mm(users, model_.head().narrow(0, first, count).t()), bias = model_.head_bias();
  return bias.defined() ? products + bias.narrow(0, first, count) : products;
}

}  // namespace gainlens::recommend
