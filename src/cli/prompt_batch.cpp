#include "cli/prompt_batch.h"

#include "core/check.h"
#include "core/json.h"

#include <sstream>

namespace gainlens::cli {

void add_prompt_options(CLI::App& command, PromptOptions& options, const std::string& batch_help) {
  command.add_option("--prompt", options.prompt, "The prompt itself");
  command.add_option("--batch", options.batch, "File with a prompt a line, {\"prompt\": \"..\"}; " + batch_help);
}

std::vector<PromptSource> prompt_sources(const PromptOptions& options, const TextOptions& text) {
  sweep::TokenSourceOptions one = text.source();
  one.prompt = options.prompt;
  const bool other = one.prompt || !one.text.empty() || !one.token_ids.empty();
  if (options.batch.empty()) {
    CHECK(other, "there is no prompt; give --prompt '..', --text FILE, --tokens FILE.json or --batch FILE.jsonl");
    return {{one, ""}};
  }
  CHECK(!other, "--batch: there is another prompt too; give one of --batch, --prompt, --text and --tokens");
  std::istringstream lines(read_text_file(options.batch));
  std::vector<PromptSource> sources;
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    const std::string where = fmt::format("--batch: {}: line {}", printable(options.batch), number);
    CHECK(line.find_first_not_of(" \t\r") != std::string::npos, "{}: is blank", where);
    const Json json = parse_json(line, where);
    CHECK(json.is_object() && json.size() == 1 && json.contains("prompt") && json["prompt"].is_string(),
          "{}: must be {{\"prompt\": \"..\"}}", where);
    one.prompt = json["prompt"].get<std::string>();
    CHECK(!one.prompt->empty(), "{}: the prompt is empty", where);
    sources.push_back({one, where});
  }
  CHECK(!sources.empty(), "--batch: {} has no line", printable(options.batch));
  return sources;
}

void naming_the_line(const PromptSource& source, const std::function<void()>& read) {
  try {
    read();
  } catch (const InvalidArgument& error) {
    if (source.where.empty()) throw;
    throw_invalid("{}: {}", source.where, error.what());
  }
}

}  // namespace gainlens::cli
