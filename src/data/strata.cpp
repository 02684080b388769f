#include "data/strata.h"

namespace gainlens::data {

UserCounts user_counts(const LeaveOneOut& split) {
  UserCounts counts;
  for (std::int64_t user = 0; user < split.users(); ++user) {
    counts.target.push_back(split.target(user, HeldOut::test));
    counts.history_length.push_back(std::ssize(split.history(user, HeldOut::test)));
    counts.training_length.push_back(std::ssize(split.training(user)));
  }
  counts.item_train_count.assign(split.training_counts().begin() + 1, split.training_counts().end());
  return counts;
}

}  // namespace gainlens::data
