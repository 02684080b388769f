#pragma once

#include "sweep/token_source.h"

#include <CLI/CLI.hpp>

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

}  // namespace gainlens::cli
