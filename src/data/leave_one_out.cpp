#include "data/leave_one_out.h"

#include "core/check.h"
#include "core/sha256.h"

namespace gainlens::data {

LeaveOneOut::LeaveOneOut(Interactions interactions) : interactions_(std::move(interactions)) {
  training_counts_.resize(static_cast<std::size_t>(items()) + 1);
  for (std::int64_t user = 0; user < training_users(); ++user) {
    const auto sequence = interactions_.items_of(user);
    CHECK(sequence.size() >= 3 || user >= users(),
          "leave-one-out: user '{}' has {} interactions; at least 3, for training, validation and "
          "test",
          printable(interactions_.users[static_cast<std::size_t>(user)], 40), sequence.size());
    for (const ItemId item : training(user)) ++training_counts_[static_cast<std::size_t>(item)];
  }
}

std::span<const ItemId> LeaveOneOut::training(std::int64_t user) const {
  const auto sequence = interactions_.items_of(user);
  return sequence.first(sequence.size() - held_out(user));
}

History LeaveOneOut::training_inputs(std::int64_t user) const {
  const History all = interactions_.history(user);
  return all.first(all.size() - held_out(user) - 1);
}

History LeaveOneOut::history(std::int64_t user, HeldOut held_out) const {
  ASSERT(user < users(), "user {} has no test", user);
  const History all = interactions_.history(user);
  return all.first(all.size() - (held_out == HeldOut::test ? 1 : 2));
}

ItemId LeaveOneOut::target(std::int64_t user, HeldOut held_out) const {
  ASSERT(user < users(), "user {} has no test", user);
  const auto sequence = interactions_.items_of(user);
  return sequence[sequence.size() - (held_out == HeldOut::test ? 1 : 2)];
}

std::string LeaveOneOut::checksum_of_times() const {
  Sha256 hash;
  for (const double time : interactions_.time) hash.update(fmt::format("{}\n", time));
  return hash.hex();
}

std::string LeaveOneOut::checksum() const {
  Sha256 hash;
  const auto name = [&](ItemId item) -> const std::string& {
    return interactions_.items[static_cast<std::size_t>(item)];
  };
  for (std::int64_t user = 0; user < training_users(); ++user) {
    std::string line = interactions_.users[static_cast<std::size_t>(user)];
    char before = '\t';
    for (const ItemId item : training(user)) {
      line += before + name(item);
      before = ' ';
    }
    const bool tested = user < users();
    for (const HeldOut item : {HeldOut::validation, HeldOut::test})
      line += '\t' + (tested ? name(target(user, item)) : "");
    line += '\n';
    hash.update(line);
  }
  return hash.hex();
}

}  // namespace gainlens::data
