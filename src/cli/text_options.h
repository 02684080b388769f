#pragma once

#include "sweep/token_source.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace gainlens::cli {

/// Options of every command that runs a model over text.
struct TextOptions {
  std::string text;
  std::string tokens;
  std::string bos = "auto";

  /// @throws InvalidArgument  an unknown --bos policy
  data::BosPolicy policy() const;
  /// @throws InvalidArgument  as policy()
  sweep::TokenSourceOptions source() const;
};

/// The checkpoint, which is required.
/// @param also  what may be given besides: "; or .."
void add_model_option(CLI::App& command, std::string& model, const std::string& also = "");
void add_text_options(CLI::App& command, TextOptions& options);
void add_dtype_option(CLI::App& command, std::string& dtype);

/// --targets of commands whose losses may be those of the last tokens alone.
void add_targets_option(CLI::App& command, std::optional<std::int64_t>& targets);
/// @returns  0: all tokens but the first
/// @throws InvalidArgument  below 1
std::int64_t chosen_targets(std::optional<std::int64_t> targets);

}  // namespace gainlens::cli
