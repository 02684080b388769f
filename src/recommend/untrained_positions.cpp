#include "recommend/untrained_positions.h"

#include "recommend/filtered_positions.h"
#include "recommend/recommend_task.h"
#include "training/replicas.h"

namespace gainlens::recommend {

FilteredPositions untrained_positions(const Settings& settings, Arm arm, std::uint64_t seed,
                                      const data::LeaveOneOut& split, data::HeldOut held_out,
                                      const std::string& where) {
  training::SingleReplica alone;
  const auto keep_nothing = [](Backbone&) { return Json(); };
  RecommendTask task(settings, arm, split, seed, keep_nothing, alone);
  task.start_filter();
  return filtered_positions(task.model(), split, held_out, where);
}

}  // namespace gainlens::recommend
