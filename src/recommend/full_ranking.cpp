#include "recommend/full_ranking.h"

#include "core/check.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <limits>

namespace gainlens::recommend {
namespace {

using Histories = std::vector<std::span<const data::ItemId>>;

/// Cells of a block of scores: for each known item its user's row and its column.
struct Cells {
  at::Tensor rows, columns;
};

/// The known items of a block of users, sorted by item, so that those of a block of items lie together.
class KnownItems {
 public:
  explicit KnownItems(const Histories& histories) {
    for (std::size_t user = 0; user < histories.size(); ++user) {
      for (const data::ItemId item : histories[user]) cells_.emplace_back(item - 1, static_cast<std::int64_t>(user));
    }
    std::sort(cells_.begin(), cells_.end());
    cells_.erase(std::unique(cells_.begin(), cells_.end()), cells_.end());
  }

  /// Those whose column lies in [first, last), counted from `first`.
  Cells between(std::int64_t first, std::int64_t last, at::Device device) const {
    const auto begin = std::lower_bound(cells_.begin(), cells_.end(), std::pair<std::int64_t, std::int64_t>(first, -1));
    const auto end = std::lower_bound(begin, cells_.end(), std::pair<std::int64_t, std::int64_t>(last, -1));
    std::vector<std::int64_t> rows, columns;
    for (auto cell = begin; cell != end; ++cell) {
      columns.push_back(cell->first - first);
      rows.push_back(cell->second);
    }
    return {at::tensor(rows, at::kLong).to(device), at::tensor(columns, at::kLong).to(device)};
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> cells_;  // column, row
};

/// Scores of a block of users, a block of items at a time.
class ScoreBlocks {
 public:
  ScoreBlocks(Scorer& scorer, const Histories& histories, std::int64_t items, std::int64_t items_at_once)
      : scorer_(scorer), users_(scorer.represent(histories)), items_(items), items_at_once_(items_at_once) {}

  /// Calls visit(first column, scores [user, column]) for each block; `scores` may be changed.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (std::int64_t first = 0; first < items_; first += items_at_once_)
      visit(first, scorer_.scores(users_, first, std::min(items_at_once_, items_ - first)));
  }
  at::Device device() const { return users_.device(); }

 private:
  Scorer& scorer_;
  at::Tensor users_;
  std::int64_t items_, items_at_once_;
};

/// Scores of one target for each user.
/// @param targets  int64 [user]: columns
at::Tensor target_scores(const ScoreBlocks& blocks, const at::Tensor& targets) {
  at::Tensor found;
  blocks.for_each([&](std::int64_t first, const at::Tensor& scores) {
    const at::Tensor column = targets - first, here = column.ge(0).logical_and(column.lt(scores.size(1)));
    const at::Tensor of_block = scores.gather(1, column.clamp(0, scores.size(1) - 1).unsqueeze(1)).squeeze(1);
    found = found.defined() ? at::where(here, of_block, found) : of_block;
  });
  return found;
}

/// Ranks of the targets of a block of users.
/// @param targets  int64 [user]: columns
at::Tensor ranks_of(const ScoreBlocks& blocks, const at::Tensor& targets, const KnownItems& removed) {
  const at::Tensor score = target_scores(blocks, targets).unsqueeze(1);
  const at::Tensor lowest = at::scalar_tensor(-std::numeric_limits<double>::infinity(), score.options());
  at::Tensor better = at::zeros({score.size(0)}, targets.options()), equal = at::zeros_like(better);
  at::Tensor broken = at::isfinite(score).logical_not().squeeze(1);
  blocks.for_each([&](std::int64_t first, at::Tensor scores) {
    // NaN is neither better nor worse than any score: it must not pass as a bad one.
    broken.logical_or_(at::isfinite(scores).all(1).logical_not());
    const Cells cells = removed.between(first, first + scores.size(1), scores.device());
    scores.index_put_({cells.rows, cells.columns}, lowest);
    // A target is no rival of itself, known or not.
    const at::Tensor column = targets - first;
    const at::Tensor here = column.ge(0).logical_and(column.lt(scores.size(1))).nonzero().squeeze(1);
    scores.index_put_({here, column.index_select(0, here)}, lowest);
    better += scores.gt(score).sum(1);
    equal += scores.eq(score).sum(1);
  });
  return (1 + better.to(at::kDouble) + 0.5 * equal.to(at::kDouble))
      .masked_fill(broken, std::numeric_limits<double>::quiet_NaN());
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

  /// @param scores  [user, column]; -infinity: no candidate
  void add(std::int64_t first_column, const at::Tensor& scores) {
    const at::Tensor here = scores.to(at::kCPU, at::kFloat).contiguous();
    const std::int64_t columns = here.size(1);
    at::parallel_for(0, here.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t user = begin; user < end; ++user) {
        const float* const row = here.const_data_ptr<float>() + user * columns;
        for (std::int64_t i = 0; i < columns; ++i) {
          if (row[i] > -std::numeric_limits<float>::infinity())
            offer(heaps_[static_cast<std::size_t>(user)], {row[i], static_cast<data::ItemId>(first_column + i + 1)});
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

Histories histories_of(const data::LeaveOneOut& split, data::HeldOut held_out, std::int64_t begin, std::int64_t end) {
  Histories histories;
  for (std::int64_t user = begin; user < end; ++user) histories.push_back(split.history(user, held_out));
  return histories;
}

}  // namespace

std::vector<float> rank_all(Scorer& scorer, const data::LeaveOneOut& split, data::HeldOut held_out,
                            const RankingOptions& options) {
  const c10::InferenceMode inference;
  std::vector<float> ranks;
  for (std::int64_t begin = 0; begin < split.users(); begin += options.users_at_once) {
    const std::int64_t end = std::min(begin + options.users_at_once, split.users());
    const Histories histories = histories_of(split, held_out, begin, end);
    std::vector<std::int64_t> targets;
    for (std::int64_t user = begin; user < end; ++user) targets.push_back(split.target(user, held_out) - 1);
    const ScoreBlocks blocks(scorer, histories, split.items(), options.items_at_once);
    const at::Tensor columns = at::tensor(targets, at::kLong).to(blocks.device());
    const KnownItems known(options.keep_seen ? Histories() : histories);
    const at::Tensor found = ranks_of(blocks, columns, known).to(at::kCPU);
    const auto* const rank = found.const_data_ptr<double>();
    for (std::int64_t i = 0; i < end - begin; ++i) {
      if (!(rank[i] >= 1)) {
        throw_run_failed("ranking: the scores of user '{}' are NaN or infinite",
                         printable(split.interactions().users[static_cast<std::size_t>(begin + i)], 60));
      }
      ranks.push_back(static_cast<float>(rank[i]));
    }
  }
  return ranks;
}

Recommendations recommend_all(Scorer& scorer, const data::LeaveOneOut& split, std::int64_t count,
                              const RankingOptions& options) {
  const c10::InferenceMode inference;
  CHECK(count >= 1 && count <= split.items(), "--top-k: {}; the catalogue has {} items", count, split.items());
  const double lowest = -std::numeric_limits<double>::infinity();
  Recommendations found{count, {}, {}};
  for (std::int64_t begin = 0; begin < split.users(); begin += options.users_at_once) {
    const std::int64_t end = std::min(begin + options.users_at_once, split.users());
    Histories histories;
    for (std::int64_t user = begin; user < end; ++user) histories.push_back(split.interactions().of_user(user));
    const KnownItems known(options.keep_seen ? Histories() : histories);
    BestCandidates best(end - begin, count);
    ScoreBlocks(scorer, histories, split.items(), options.items_at_once)
        .for_each([&](std::int64_t first, at::Tensor scores) {
          const Cells cells = known.between(first, first + scores.size(1), scores.device());
          scores.index_put_({cells.rows, cells.columns}, at::scalar_tensor(lowest, scores.options()));
          best.add(first, scores);
        });
    best.append_to(found);
  }
  return found;
}

at::Tensor SasRecScorer::represent(std::span<const std::span<const data::ItemId>> histories) {
  const PackedSequences packed = pack(histories, model_.config(), model_.weights().item_embedding.device());
  return model_.hidden(packed).index_select(0, packed.last_rows());
}

at::Tensor SasRecScorer::scores(const at::Tensor& users, std::int64_t first, std::int64_t count) {
  return at::mm(users, model_.head().narrow(0, first, count).t());
}

}  // namespace gainlens::recommend
