#include "data/run_users.h"

#include <iterator>

namespace gainlens::data {

void set_users(runfile::RecommendRun& run, const LeaveOneOut& split) {
  const auto& users = split.interactions().users;
  run.units.assign(users.begin(), users.begin() + split.users());
  for (auto* numbers : {&run.target, &run.validation_target, &run.history_length, &run.training_length})
    numbers->clear();
  for (std::int64_t user = 0; user < split.users(); ++user) {
    run.target.push_back(split.target(user, HeldOut::test));
    run.validation_target.push_back(split.target(user, HeldOut::validation));
    run.history_length.push_back(std::ssize(split.history(user, HeldOut::test).items));
    run.training_length.push_back(std::ssize(split.training(user)));
  }
  run.item_train_count.assign(split.training_counts().begin() + 1, split.training_counts().end());
}

Json data_of_request(const LeaveOneOut& split, const std::string& name) {
  const Interactions& interactions = split.interactions();
  Json data = {{"name", Json::parse(json_text(name))},
               {"format", format_name(interactions.format)},
               {"users", split.users()},
               {"items", split.items()},
               {"interactions", interactions.interaction_count()},
               {"split", split.checksum()}};
  std::int64_t untested_items = 0;  // the training items of users without a test, who are no units of the run
  for (std::int64_t user = split.users(); user < split.training_users(); ++user)
    untested_items += std::ssize(split.training(user));
  if (untested_items > 0) data["untested_items"] = untested_items;
  return data;
}

}  // namespace gainlens::data
