#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace gainlens::cli {

/// --ignore-config-key, of every command that opens the checkpoint of a decoder (models::IgnoredKeys).
void add_ignored_keys(CLI::App& command, std::vector<std::string>& keys);

/// @param what  what the command was given in place of such a checkpoint: "a recommender"
/// @throws InvalidArgument  keys were given
void refuse_ignored_keys(const std::vector<std::string>& keys, std::string_view what);

}  // namespace gainlens::cli
