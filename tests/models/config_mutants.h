#pragma once

#include "checkpoint_folder.h"
#include "models/checkpoint/checkpoint.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace gainlens::models::testing {

/// The configuration as a checkpoint with this config.json has it.
inline DecoderConfig read(const Json& config) {
  const CheckpointFolder folder(config);
  return read_decoder_config(folder.write());
}

/// tiny_config() with some keys replaced or added.
inline Json tiny_with(const Json& changes, const std::string& model_type = "llama") {
  Json config = tiny_config(model_type);
  config.update(changes);
  return config;
}

inline Json tiny_without(const std::string& key) {
  Json config = tiny_config();
  config.erase(key);
  return config;
}

/// A configuration that is refused.
struct Mutant {
  const char* family;
  const char* changes;  // JSON object whose keys replace those of tiny_config
  const char* message;  // must be part of the message
};

inline void expect_refused(const std::vector<Mutant>& mutants) {
  for (const Mutant& mutant : mutants) {
    const Json config = tiny_with(Json::parse(mutant.changes), mutant.family);
    EXPECT_THAT(message_of([&] { read(config); }),
                ::testing::AllOf(::testing::HasSubstr("config.json: "), ::testing::HasSubstr(mutant.message)))
        << mutant.family << " " << mutant.changes;
  }
}

}  // namespace gainlens::models::testing
