#include "cli/parse_errors.h"

#include "core/error.h"
#include "core/nearest.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace gainlens::cli {
namespace {

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
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
    if (name.size() > 2 && name.starts_with("--") && std::find(options.begin(), options.end(), name) == options.end())
      return name;
  }
  return "";
}

/// The subcommands that were recognised, outermost first: "train", "language-model".
std::vector<const CLI::App*> chosen_path(const CLI::App& app) {
  std::vector<const CLI::App*> path;
  for (const CLI::App* command = &app; !command->get_subcommands().empty();) {
    command = command->get_subcommands().front();
    path.push_back(command);
  }
  return path;
}

std::string joined_names(const std::vector<const CLI::App*>& path) {
  std::string names;
  for (const CLI::App* command : path) names += (names.empty() ? "" : " ") + command->get_name();
  return names;
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

std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error,
                                const std::vector<std::string>& arguments) {
  const std::vector<const CLI::App*> chosen = chosen_path(app);
  const std::string where = chosen.empty() ? "command line" : joined_names(chosen);
  const std::string help = chosen.empty() ? "" : fmt::format("; see gainlens {} --help", where);

  std::vector<std::string> options;
  append_option_names(app, options);
  for (const CLI::App* command : chosen) append_option_names(*command, options);
  if (const std::string name = unknown_option(arguments, options); !name.empty()) {
    const std::string suggestion = did_you_mean(name, options);
    return fmt::format("{}: unknown option '{}'{}", where, printable(name, 60), suggestion.empty() ? help : suggestion);
  }
  const CLI::App& last = chosen.empty() ? app : *chosen.back();
  if (const auto commands = subcommand_names(last); !commands.empty()) {
    const std::string known = fmt::format("; known are {}", fmt::join(commands, ", "));
    const auto left = app.remaining(true);
    if (left.empty()) return where + ": a subcommand is required" + known;
    const std::string word = left.front(), suggestion = did_you_mean(word, commands);
    return fmt::format("{}: unknown subcommand '{}'{}", where, printable(word, 60),
                       suggestion.empty() ? known : suggestion);
  }
  if (const auto extras = app.remaining(true);
      dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !extras.empty()) {
    return fmt::format("{}: unexpected argument '{}'{}", where, printable(extras.front(), 60), help);
  }
  return fmt::format("{}: {}{}", where, one_line(error.what()), help);
}

}  // namespace gainlens::cli
