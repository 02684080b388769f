#include "cli/misspelling.h"

#include "core/error.h"
#include "core/nearest.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace gainlens::cli {
namespace {

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
  return names;
}

void append_option_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
}

/// The first word that is written as an option and is none.
std::string unknown_option(const std::vector<std::string>& arguments, const std::vector<std::string>& options) {
  for (const std::string& word : arguments) {
    const std::string name = word.substr(0, word.find('='));
    if (name.size() > 2 && name.starts_with("--") && std::find(options.begin(), options.end(), name) == options.end()) return name;
  }
  return "";
}

/// CLI11's own text without line breaks: messages here are one line.
std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return printable(text, 400);
}

}  // namespace

std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& arguments) {
  const auto chosen = app.get_subcommands();
  const std::string where = chosen.empty() ? "command line" : chosen.front()->get_name();
  const std::string help = chosen.empty() ? "" : fmt::format("; see gainlens {} --help", where);

  std::vector<std::string> options;
  append_option_names(app, options);
  if (!chosen.empty()) append_option_names(*chosen.front(), options);
  if (const std::string name = unknown_option(arguments, options); !name.empty()) {
    const std::string suggestion = did_you_mean(name, options);
    return fmt::format("{}: unknown option '{}'{}", where, printable(name, 60), suggestion.empty() ? help : suggestion);
  }
  if (chosen.empty()) {
    const auto commands = subcommand_names(app);
    const std::string known = fmt::format("; known are {}", fmt::join(commands, ", "));
    if (app.remaining().empty()) return where + ": a subcommand is required" + known;
    const std::string word = app.remaining().front(), suggestion = did_you_mean(word, commands);
    return fmt::format("{}: unknown subcommand '{}'{}", where, printable(word, 60), suggestion.empty() ? known : suggestion);
  }
  if (const auto extras = app.remaining(true); dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !extras.empty()) {
    return fmt::format("{}: unexpected argument '{}'{}", where, printable(extras.front(), 60), help);
  }
  return fmt::format("{}: {}{}", where, one_line(error.what()), help);
}

}  // namespace gainlens::cli
