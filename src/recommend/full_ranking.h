#pragma once

#include "data/leave_one_out.h"
#include "recommend/backbone.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::recommend {

/// Scores the items of the catalogue for some users: what a ranking needs of a model.
class Scorer {
 public:
  virtual ~Scorer() = default;
  /// What the scores of a block of users follow from. Calculated once for each block.
  /// @param histories  known interactions of some users, in time order
  /// @returns [user, ..]
  virtual at::Tensor represent(std::span<const data::History> histories) = 0;
  /// The scores of items first + 1 to first + count. The same arguments give the same bits.
  /// @param users  as represent() returned it
  /// @returns [user, count], float32
  virtual at::Tensor scores(const at::Tensor& users, std::int64_t first, std::int64_t count) = 0;
};

struct RankingOptions {
  bool keep_seen = false;  ///< known items of a user stay candidates; else only the target does if it is known
  std::int64_t users_at_once = 512;
  std::int64_t items_at_once = 4096;
};

/// The rank of the held-out item of some users among all items: 1 + the number of better ones + half the number of
/// equal ones. Counted in blocks of users and items: no tensor of users times items exists. The scores of a large
/// catalogue are computed twice, once for the target and once for the comparison: equal scores are equal bits.
/// @param users  first and one past the last
/// @returns [user], 1 to the number of items
/// @throws RunFailed  a score is NaN or infinite (names the user)
std::vector<float> rank_users(Scorer& scorer, const data::LeaveOneOut& split, data::HeldOut held_out,
                              std::pair<std::int64_t, std::int64_t> users, const RankingOptions& options = {});
/// Those of all users.
std::vector<float> rank_all(Scorer& scorer, const data::LeaveOneOut& split, data::HeldOut held_out,
                            const RankingOptions& options = {});

/// The best items of each user, from the best score to the worst; of equal scores the smaller id first.
struct Recommendations {
  std::int64_t count = 0;           ///< for each user; if candidates run out, the id is 0 and the score NaN
  std::vector<data::ItemId> items;  ///< [user, count]
  std::vector<float> scores;        ///< [user, count]
};

/// Recommends from all items of each user (training, validation and test).
/// @param count  at least 1, at most the number of items
Recommendations recommend_all(Scorer& scorer, const data::LeaveOneOut& split, std::int64_t count,
                              const RankingOptions& options = {});

/// The best items of each user, at the point of a ranking: when the held-out item is to be predicted.
/// @param count  at least 1, at most the number of items
Recommendations best_items(Scorer& scorer, const data::LeaveOneOut& split, data::HeldOut held_out, std::int64_t count,
                           const RankingOptions& options = {});

/// metrics_of_lists() of these items, for lists of list_length items (or of the whole catalogue, if it is smaller).
std::map<std::string, double> list_metrics_of(Scorer& scorer, const data::LeaveOneOut& split, data::HeldOut held_out,
                                              const RankingOptions& options = {});

struct ConfidentRanks {
  std::vector<float> ranks;  ///< [user] as rank_all()
  /// [user] in (0, 1]: the probability of the best item, by the softmax of the scores over all candidates of the
  /// ranking. The held-out item is a candidate as any other; it is none if the user has seen it before.
  std::vector<double> largest_probability;
};
/// The ranks, with how confident the model is: one pass over users and scores for both.
/// @throws RunFailed        a score is NaN or infinite (names the user)
/// @throws InvalidArgument  a user has seen every item
ConfidentRanks rank_with_confidence(Scorer& scorer, const data::LeaveOneOut& split, data::HeldOut held_out,
                                    const RankingOptions& options = {});

/// The last position of a model that predicts the next item. Evaluation only.
class BackboneScorer : public Scorer {
 public:
  /// @param model       must exist as long as this object
  /// @param precisions  takes up the precision of each user that is represented, in order: the mean over the dimensions
  ///     of LastStates::precision, in double. Nothing if it is undefined. Null: not wanted
  explicit BackboneScorer(const Backbone& model, std::vector<double>* precisions = nullptr)
      : model_(model), precisions_(precisions) {}
  /// @throws RunFailed  a precision that is wanted is NaN or infinite
  at::Tensor represent(std::span<const data::History> histories) override;
  at::Tensor scores(const at::Tensor& users, std::int64_t first, std::int64_t count) override;

 private:
  const Backbone& model_;
  std::vector<double>* precisions_;
};

}  // namespace gainlens::recommend
