#pragma once

#include "data/interactions.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gainlens::data {

/// Which item of each user a model has to predict.
enum class HeldOut {
  validation,  ///< the item before the last; the items before it are known
  test,        ///< the last item; all items before it are known
};

/// The split: of each user the last item is for the test, the one before it for validation, the others for training.
/// Each user has at least 3 items. With a temporal split (SplitPolicy) other users follow, whose items are all for
/// training.
class LeaveOneOut {
 public:
  /// @throws InvalidArgument  a user has fewer than 3 interactions (read with min_user_interactions below 3)
  explicit LeaveOneOut(Interactions interactions);

  const Interactions& interactions() const { return interactions_; }
  std::int64_t users() const { return interactions_.user_count() - interactions_.untested; }  ///< with a test
  /// Those, and behind them the users for training alone.
  std::int64_t training_users() const { return interactions_.user_count(); }
  std::int64_t items() const { return interactions_.item_count(); }

  /// @param user  below training_users(), also for training_inputs(); below users() everywhere else
  std::span<const ItemId> training(std::int64_t user) const;
  /// What a model reads in training: the training items but the last one, which it only predicts.
  History training_inputs(std::int64_t user) const;
  /// What is known when `held_out` is to be predicted: the training items, for the test also the validation item.
  History history(std::int64_t user, HeldOut held_out) const;
  ItemId target(std::int64_t user, HeldOut held_out) const;

  /// [item id]: how often each item stands in the training items; entry 0 is 0.
  const std::vector<std::int64_t>& training_counts() const { return training_counts_; }

  /// SHA-256, 64 hex digits, over one line for each user in order: its name, a tab, the names of its training items
  /// with a space between them, a tab, the validation item, a tab, the test item, a newline. A user for
  /// training alone has neither, but the tabs.
  std::string checksum() const;
  /// SHA-256 of the times of all interactions, by user and in order; a line each, as the shortest decimal number that
  /// gives it. For models that read times, which checksum() leaves out.
  std::string checksum_of_times() const;

 private:
  /// Items of a user that are not for training.
  std::size_t held_out(std::int64_t user) const { return user < users() ? 2 : 0; }

  Interactions interactions_;
  std::vector<std::int64_t> training_counts_;
};

}  // namespace gainlens::data
