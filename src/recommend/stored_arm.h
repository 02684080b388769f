#pragma once

#include "bft/filter_options.h"
#include "core/json.h"
#include "models/families/config_reader.h"
#include "recommend/arm.h"

#include <string>

// What the config.json of every backbone with arms says. Without libtorch.

namespace gainlens::recommend {

/// Reads the arm with the options of its filter; without the keys it stays plain.
/// @throws InvalidArgument  one key without the other, no such arm, options that are unknown or out of range
void read_arm(models::ConfigReader& reader, Arm& arm, bft::FilterOptions& filter);
/// Writes what read_arm() reads. A plain model has neither key.
void write_arm(OrderedJson& document, Arm arm, const bft::FilterOptions& filter);

/// @throws InvalidArgument  the key is missing or has another value
void expect_text(models::ConfigReader& reader, const std::string& key, const std::string& only);

/// @throws InvalidArgument  keys that nothing has read
void check_all_read(models::ConfigReader& reader);

/// "the default options", and what differs from them.
std::string changed_options(const bft::FilterOptions& filter);

}  // namespace gainlens::recommend
