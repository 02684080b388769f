#include "cli/misspelling.h"

#include "core/error.h"
#include "core/nearest.h"

#include <fmt/ranges.h>

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

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
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
  if (chosen.empty()) {
    const auto commands = subcommand_names(app);
    for (const std::string& word : arguments) {
      if (word.starts_with("-")) {
        std::vector<std::string> options;
        append_option_names(app, options);
        const std::string name = word.substr(0, word.find('='));
        if (std::find(options.begin(), options.end(), name) != options.end()) continue;
        return fmt::format("command line: unknown option '{}' before the subcommand{}", printable(name, 60), did_you_mean(name, options));
      }
      const std::string suggestion = did_you_mean(word, commands);
      return fmt::format("command line: unknown subcommand '{}'{}", printable(word, 60),
                         suggestion.empty() ? "; known are " + joined(commands) : suggestion);
    }
    return "command line: a subcommand is required; known are " + joined(commands);
  }
  const std::string where = chosen.front()->get_name();
  if (const auto extras = chosen.front()->remaining(); dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !extras.empty()) {
    const std::string name = extras.front().substr(0, extras.front().find('='));
    if (!name.starts_with("-"))
      return fmt::format("{}: unexpected argument '{}'; see gainlens {} --help", where, printable(name, 60), where);
    std::vector<std::string> options;
    append_option_names(*chosen.front(), options);
    append_option_names(app, options);
    const std::string suggestion = did_you_mean(name, options);
    return fmt::format("{}: unknown option '{}'{}", where, printable(name, 60),
                       suggestion.empty() ? "; see gainlens " + where + " --help" : suggestion);
  }
  return fmt::format("{}: {}; see gainlens {} --help", where, one_line(error.what()), where);
}

}  // namespace gainlens::cli
