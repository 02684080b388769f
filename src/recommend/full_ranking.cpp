#include "recommend/full_ranking.h"

#include "core/check.h"

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
constexpr std::int64_t most_kept_scores = std::int64_t{1} << 23;

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
    const bool keep = users_.size(0) * items_ <= most_kept_scores;
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
    const at::Tensor of_block = scores.gather(1, column.clamp(0, scores.size(1) - 1).unsqueeze(1)).squeeze(1);
    found = found.defined() ? at::where(here, of_block, found) : of_block;
  });
  return found;
}

/// How the scores of a row compare with a score.
struct Comparison {
  std::int64_t better = 0, equal = 0;
  bool broken = false;  ///< NaN or infinity: neither better nor worse, it must not pass as a bad score
};

Comparison compare(const float* scores, std::int64_t count, float with) {
  std::int32_t better = 0, equal = 0, finite = 0;  // the compiler makes vector code of such sums
  for (std::int64_t i = 0; i < count; ++i) {
    better += scores[i] > with;
    equal += scores[i] == with;
    finite += scores[i] - scores[i] == 0;
  }
  return {better, equal, finite != count};
}

/// Ranks of the targets of a block of users.
/// @param targets  [user]: columns
/// @param known    columns that are no candidates; a target is one in any case
std::vector<float> ranks_of(ScoreBlocks& blocks, const std::vector<std::int64_t>& targets, const KnownItems& known) {
  const at::Tensor own = target_scores(blocks, at::tensor(targets, at::kLong).to(blocks.device())).to(at::kCPU);
  std::vector<Comparison> found(targets.size());
  blocks.for_each([&](std::int64_t first, const at::Tensor& given) {
    const at::Tensor scores = given.to(at::kCPU).contiguous();
    const std::int64_t columns = scores.size(1);
    at::parallel_for(0, std::ssize(targets), 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t user = begin; user < end; ++user) {
        const float* const row = scores.const_data_ptr<float>() + user * columns;
        const float with = own.const_data_ptr<float>()[user];
        Comparison& all = found[static_cast<std::size_t>(user)];
        const Comparison here = compare(row, columns, with);
        all.better += here.better;
        all.equal += here.equal;
        all.broken |= here.broken;
        for (const std::int64_t column : known.of(user, first, first + columns)) {
          if (column == targets[static_cast<std::size_t>(user)]) continue;
          all.better -= row[column - first] > with;
          all.equal -= row[column - first] == with;
        }
      }
    });
  });
  std::vector<float> ranks;
  for (const Comparison& of_user : found) {
    const auto others = static_cast<double>(of_user.equal - 1);  // the target is equal to itself
    const double rank = 1 + static_cast<double>(of_user.better) + 0.5 * others;
    ranks.push_back(of_user.broken ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(rank));
  }
  return ranks;
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
    const at::Tensor here = scores.to(at::kCPU, at::kFloat).contiguous();
    const std::int64_t columns = here.size(1);
    at::parallel_for(0, here.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t user = begin; user < end; ++user) {
        const float* const row = here.const_data_ptr<float>() + user * columns;
        const auto removed = known.of(user, first, first + columns);
        auto next = removed.begin();
        for (std::int64_t i = 0; i < columns; ++i) {
          if (next != removed.end() && *next == first + i) {
            ++next;
          } else {
            offer(heaps_[static_cast<std::size_t>(user)], {row[i], static_cast<data::ItemId>(first + i + 1)});
          }
        }
      }
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

/// The sum of exp(score - largest score) over candidates, a block of items at a time.
class SoftmaxPeak {
 public:
  /// @param removed  columns of the block that are no candidates, sorted; they count from `first`
  void add(std::span<const float> scores, std::span<const std::int64_t> removed, std::int64_t first) {
    const auto each_candidate = [&](const auto& visit) {
      auto next = removed.begin();
      for (std::size_t i = 0; i < scores.size(); ++i) {
        if (next != removed.end() && *next - first == static_cast<std::int64_t>(i)) {
          ++next;
        } else {
          visit(scores[i]);
        }
      }
    };
    float largest = largest_;
    each_candidate([&](float score) { largest = std::max(largest, score); });
    if (largest > largest_) sum_ = sum_ == 0 ? 0 : sum_ * std::exp(static_cast<double>(largest_ - largest));
    largest_ = largest;
    // score - score is NaN for what is not finite, else 0
    each_candidate([&](float score) { sum_ += std::exp(static_cast<double>(score - largest_)) + (score - score); });
  }
  /// At least 1; 0 without a candidate; NaN if a score is NaN or infinite.
  double sum() const { return sum_; }

 private:
  float largest_ = -std::numeric_limits<float>::infinity();
  double sum_ = 0;
};

Histories histories_of(const data::LeaveOneOut& split, data::HeldOut held_out, std::int64_t begin, std::int64_t end) {
  Histories histories;
  for (std::int64_t user = begin; user < end; ++user) histories.push_back(split.history(user, held_out));
  return histories;
}

}  // namespace

std::vector<float> rank_users(Scorer& scorer, const data::LeaveOneOut& split, data::HeldOut held_out,
                              std::pair<std::int64_t, std::int64_t> users, const RankingOptions& options) {
  const c10::InferenceMode inference;
  std::vector<float> ranks;
  for (std::int64_t begin = users.first; begin < users.second; begin += options.users_at_once) {
    const std::int64_t end = std::min(begin + options.users_at_once, users.second);
    const Histories histories = histories_of(split, held_out, begin, end);
    std::vector<std::int64_t> targets;
    for (std::int64_t user = begin; user < end; ++user) targets.push_back(split.target(user, held_out) - 1);
    ScoreBlocks blocks(scorer, histories, split.items(), options.items_at_once);
    const std::vector<float> found = ranks_of(blocks, targets, known_items(histories, options));
    for (std::int64_t i = 0; i < end - begin; ++i) {
      if (std::isnan(found[static_cast<std::size_t>(i)])) {
        throw_run_failed("ranking: the scores of user '{}' are NaN or infinite",
                         printable(split.interactions().users[static_cast<std::size_t>(begin + i)], 60));
      }
    }
    ranks.insert(ranks.end(), found.begin(), found.end());
  }
  return ranks;
}

std::vector<float> rank_all(Scorer& scorer, const data::LeaveOneOut& split, data::HeldOut held_out,
                            const RankingOptions& options) {
  return rank_users(scorer, split, held_out, {0, split.users()}, options);
}

Recommendations recommend_all(Scorer& scorer, const data::LeaveOneOut& split, std::int64_t count,
                              const RankingOptions& options) {
  const c10::InferenceMode inference;
  CHECK(count >= 1 && count <= split.items(), "--top-k: {}; the catalogue has {} items", count, split.items());
  Recommendations found{count, {}, {}};
  for (std::int64_t begin = 0; begin < split.users(); begin += options.users_at_once) {
    const std::int64_t end = std::min(begin + options.users_at_once, split.users());
    Histories histories;
    for (std::int64_t user = begin; user < end; ++user) histories.push_back(split.interactions().history(user));
    const KnownItems known = known_items(histories, options);
    BestCandidates best(end - begin, count);
    ScoreBlocks(scorer, histories, split.items(), options.items_at_once)
        .for_each([&](std::int64_t first, const at::Tensor& scores) { best.add(first, scores, known); });
    best.append_to(found);
  }
  return found;
}

std::vector<double> largest_probabilities(Scorer& scorer, const data::LeaveOneOut& split, data::HeldOut held_out,
                                          const RankingOptions& options) {
  const c10::InferenceMode inference;
  std::vector<double> found;
  for (std::int64_t begin = 0; begin < split.users(); begin += options.users_at_once) {
    const std::int64_t end = std::min(begin + options.users_at_once, split.users());
    const Histories histories = histories_of(split, held_out, begin, end);
    const KnownItems known = known_items(histories, options);
    std::vector<SoftmaxPeak> peaks(static_cast<std::size_t>(end - begin));
    ScoreBlocks(scorer, histories, split.items(), options.items_at_once)
        .for_each([&](std::int64_t first, const at::Tensor& given) {
          const at::Tensor scores = given.to(at::kCPU, at::kFloat).contiguous();
          const std::int64_t columns = scores.size(1);
          at::parallel_for(0, end - begin, 4, [&](std::int64_t user, std::int64_t last) {
            for (; user < last; ++user)
              peaks[static_cast<std::size_t>(user)].add(
                  {scores.const_data_ptr<float>() + user * columns, static_cast<std::size_t>(columns)},
                  known.of(user, first, first + columns), first);
          });
        });
    for (std::size_t i = 0; i < peaks.size(); ++i) {
      const std::string& user = split.interactions().users[static_cast<std::size_t>(begin) + i];
      CHECK(peaks[i].sum() != 0, "ranking: user '{}' has seen every item", printable(user, 60));
      if (!std::isfinite(peaks[i].sum()))
        throw_run_failed("ranking: the scores of user '{}' are NaN or infinite", printable(user, 60));
      found.push_back(1 / peaks[i].sum());
    }
  }
  return found;
}

at::Tensor BackboneScorer::represent(std::span<const data::History> histories) {
  const LastStates last = model_.last_states(pack(histories, model_.view(), model_.device()));
  if (precisions_ != nullptr && last.precision.defined()) {
    const at::Tensor means = last.precision.to(at::kDouble).mean(1).to(at::kCPU).contiguous();
    if (!means.isfinite().all().item<bool>()) throw_run_failed("ranking: the precision of a user is NaN or infinite");
    const double* const first = means.const_data_ptr<double>();
    precisions_->insert(precisions_->end(), first, first + means.numel());
  }
  return last.hidden;
}

at::Tensor BackboneScorer::scores(const at::Tensor& users, std::int64_t first, std::int64_t count) {
  return at::mm(users, model_.head().narrow(0, first, count).t());
}

}  // namespace gainlens::recommend
