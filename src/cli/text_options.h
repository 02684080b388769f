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
  sweep::TokenSourceOptions source() const;
};

void add_text_options(CLI::App& command, TextOptions& options);

}  // namespace gainlens::cli
