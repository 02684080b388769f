#pragma once

#include "recommend/recommend_task.h"
#include "recommend/small_training.h"
#include "training/adamw.h"
#include "training/replicas.h"

#include <gtest/gtest.h>

#include <string>

namespace gainlens::recommend {

/// A backbone and its filter learn in ten epochs what follows in data with a rule.
inline void expect_what_follows_is_learned(const std::string& backbone, const data::LeaveOneOut& split) {
  for (const Arm arm : {Arm::plain, Arm::bft}) {
    const Settings settings = small(backbone);
    training::SingleReplica alone;
    RecommendTask task(
        settings, arm, split, 7, [](const Backbone&) { return Json(); }, alone);
    training::AdamW optimizer(task.parameters(), {.learning_rate = 0.01});
    const double before = task.validation_loss();
    for (std::int64_t step = 0; step < 10 * task.steps_per_epoch(); ++step) {
      optimizer.zero_gradients();
      task.accumulate_gradients(step);
      optimizer.step(1);
    }
    EXPECT_LT(task.validation_loss(), before - 0.15) << name_of(arm);  // the negative NDCG@10
  }
}

}  // namespace gainlens::recommend
