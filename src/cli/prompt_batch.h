#pragma once

#include "cli/text_options.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::cli {

/// --prompt and --batch, of commands that run a model over prompts.
struct PromptOptions {
  std::optional<std::string> prompt;
  std::string batch;
};

/// @param batch_help  ends the help of --batch
void add_prompt_options(CLI::App& command, PromptOptions& options, const std::string& batch_help);

/// Where a prompt comes from.
struct PromptSource {
  sweep::TokenSourceOptions from;
  std::string where;  ///< the line of a batch, for messages; else empty
};

/// The prompts that are asked for: that of --prompt, --text or --tokens, or those of --batch.
/// @throws InvalidArgument  none or more than one of these options; a batch with a line that is no {"prompt": ".."}
///     (names the line)
std::vector<PromptSource> prompt_sources(const PromptOptions& options, const TextOptions& text);

/// Calls it. What is wrong with a line of a batch names the line.
void naming_the_line(const PromptSource& source, const std::function<void()>& read);

}  // namespace gainlens::cli
