#pragma once

#include "core/error.h"
#include "recommend/settings.h"
#include "recommend/train_recommend.h"

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::recommend {

/// Settings that train in a moment.
inline Settings small(const std::string& backbone = "sasrec") {
  return settings_of({{"width", 16},
                      {"inner_width", 32},
                      {"positions", 8},
                      {"batch", 16},
                      {"epochs", 6},
                      {"dropout", 0.1},
                      {"attention_dropout", 0.1},
                      {"learning_rate", 0.01},
                      {"save_every", 2},
                      {"warm_up", 1}},
                     "test", backbone_named(backbone, "test"));
}

/// The arms that a backbone has.
inline std::vector<Arm> arms_of(const std::string& backbone = "sasrec") {
  const Settings settings = small(backbone);
  std::vector<Arm> arms;
  for (const ArmParts& parts : all_arms()) {
    try {
      settings.backbone->check(plan_of(settings, parts.arm, /*items=*/9), "test");
      arms.push_back(parts.arm);
    } catch (const InvalidArgument&) {
      continue;
    }
  }
  return arms;
}

/// A run of two seeds, 3 and 4, with 6 epochs of these settings. Its data has the name "ring".
inline RecommendRequest request_in(const std::filesystem::path& out) {
  RecommendRequest request;
  request.data_name = "ring";
  request.settings = small();
  request.seeds = 2;
  request.seed = 3;
  request.out = out;
  request.quiet = true;
  return request;
}

/// The same with seed 3 alone.
inline RecommendRequest one_seed_in(const std::filesystem::path& out) {
  RecommendRequest request = request_in(out);
  request.seeds = 1;
  return request;
}

}  // namespace gainlens::recommend
