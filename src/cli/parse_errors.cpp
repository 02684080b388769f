#include "cli/parse_errors.h"

#include "core/check.h"
#include "core/nearest.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

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

/// The names of the options of the app and of all its subcommands.
void append_all_option_names(const CLI::App& app, std::vector<std::string>& names) {
  append_option_names(app, names);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    append_all_option_names(*command, names);
}

bool is_option(const std::string& word, const std::vector<std::string>& options) {
  return std::find(options.begin(), options.end(), word.substr(0, word.find('='))) != options.end();
}

void refuse_empty(const std::string& name) {
  throw_invalid("{}: is empty; give it a value", name);
}

/// Refuses `--out=`: CLI11 takes the next word as its value.
void refuse_nothing_after_equals(const std::vector<std::string>& arguments, const std::vector<std::string>& options) {
  for (const std::string& word : arguments) {
    if (word == "--") return;  // only arguments without a name follow
    if (word.find('=') + 1 == word.size() && is_option(word, options)) refuse_empty(word.substr(0, word.size() - 1));
  }
}

/// Refuses values that were given and are empty or names of options.
/// @param app  after parsing, also if that has failed
void refuse_missing_values(const CLI::App& app, const std::vector<std::string>& options) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty() && option->get_expected_min() > 0) refuse_empty(option->get_name());  // some need none
      CHECK(option->get_positional() || !is_option(value, options),
            "{}: its value is missing, since '{}' is an option; put a value between them", option->get_name(),
            printable(value, 40));
    }
  }
  for (const CLI::App* command : app.get_subcommands()) refuse_missing_values(*command, options);
}

/// The first word that starts like an option but is not an option; empty if there is none.
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

/// Whether a word stands for a count: "512", "4k".
bool is_count(const std::string& word) {
  const std::size_t digits = word.find_first_not_of("0123456789");
  if (digits == 0 || word.empty()) return false;
  return digits == std::string::npos || (digits + 1 == word.size() && (word.back() == 'k' || word.back() == 'K'));
}

/// Counts that follow an option as separate words, where one word with commas is wanted.
struct SeparateCounts {
  std::string option;
  std::vector<std::string> counts;
};

bool takes_commas(const CLI::App& command, const std::string& word) {
  const CLI::Option* option = word.starts_with("--") ? command.get_option_no_throw(word) : nullptr;
  return option != nullptr && option->get_description().find("comma-separated") != std::string::npos;
}

/// The first comma-separated option that is followed by two or more counts; no counts if there is none.
SeparateCounts separate_counts(const CLI::App& command, const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!takes_commas(command, arguments[i])) continue;
    SeparateCounts found{arguments[i], {}};
    for (std::size_t next = i + 1; next < arguments.size() && is_count(arguments[next]); ++next)
      found.counts.push_back(arguments[next]);
    if (found.counts.size() > 1) return found;
  }
  return {};
}

/// The message about a subcommand that is missing or not known.
/// @param left  words that no option and no subcommand has taken
std::string explain_subcommand(const std::string& where, const std::vector<std::string>& commands,
                               const std::vector<std::string>& left) {
  const std::string known = fmt::format("; known are {}", fmt::join(commands, ", "));
  if (left.empty()) return where + ": a subcommand is required" + known;
  const std::string& word = left.front();
  const std::string suggestion = did_you_mean(word, commands);
  constexpr std::size_t few = 3;  // so few that the word is rather what should follow one of them
  if (suggestion.empty() && commands.size() <= few) {
    return fmt::format("{}: the subcommand is missing; write gainlens {} {} {} ...", where, where,
                       fmt::join(commands, "|"), printable(word, 60));
  }
  return fmt::format("{}: unknown subcommand '{}'{}", where, printable(word, 60),
                     suggestion.empty() ? known : suggestion);
}

/// The text of CLI11 as one line.
std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return printable(text, 400);
}

/// One line that explains why a command line could not be parsed: what was found, and the nearest option or subcommand.
/// @param app        the application after the parse that failed
/// @param arguments  the words after the program's name
std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error,
                                const std::vector<std::string>& arguments) {
  const std::vector<const CLI::App*> chosen = chosen_path(app);
  const std::string where = chosen.empty() ? "command line" : joined_names(chosen);
  const std::string help = chosen.empty() ? "" : fmt::format("; see gainlens {} --help", where);

  const CLI::App& last = chosen.empty() ? app : *chosen.back();
  const auto commands = subcommand_names(last);
  // Options of a subcommand that is missing are not known here, so the subcommand goes first.
  if (!chosen.empty() && !commands.empty()) return explain_subcommand(where, commands, app.remaining(true));

  // A word where the subcommand should be is a misspelt one, whatever follows it.
  if (const auto left = app.remaining(true);
      chosen.empty() && !commands.empty() && !left.empty() && !left.front().starts_with("-"))
    return explain_subcommand(where, commands, left);

  std::vector<std::string> options;
  append_option_names(app, options);
  for (const CLI::App* command : chosen) append_option_names(*command, options);
  if (const std::string name = unknown_option(arguments, options); !name.empty()) {
    const std::string suggestion = did_you_mean(name, options);
    return fmt::format("{}: unknown option '{}'{}", where, printable(name, 60), suggestion.empty() ? help : suggestion);
  }
  if (!commands.empty()) return explain_subcommand(where, commands, app.remaining(true));
  if (const auto extras = app.remaining(true);
      dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !extras.empty()) {
    if (const auto [option, counts] = separate_counts(last, arguments); !counts.empty()) {
      return fmt::format("{}: unexpected argument '{}'; separate the numbers by commas: {} {}", where,
                         printable(extras.front(), 60), option, fmt::join(counts, ","));
    }
    return fmt::format("{}: unexpected argument '{}'{}", where, printable(extras.front(), 60), help);
  }
  return fmt::format("{}: {}{}", where, one_line(error.what()), help);
}

}  // namespace

void parse_command_line(CLI::App& app, int argc, const char* const* argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::vector<std::string> options;
  append_all_option_names(app, options);
  refuse_nothing_after_equals(arguments, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success&) {
    throw;
  } catch (const CLI::ParseError& error) {
    refuse_missing_values(app, options);
    throw_invalid("{}", explain_parse_error(app, error, arguments));
  }
  refuse_missing_values(app, options);
}

}  // namespace gainlens::cli
