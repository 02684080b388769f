// Every option of every subcommand of both programs has a row in a table (tables_of_*.cpp): a call in which it changes
// what is printed or written, or in which it is refused. An option that is read and does nothing is found.
#include "options/option_inputs.h"
#include "options/option_table.h"

#include "cli/application.h"
#include "support/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

namespace gainlens::testing {
namespace every_option_test {

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// The options of a subcommand and of the subcommands that hold it.
void add_options(const CLI::App& app, const std::set<std::string>& of_parents, const std::string& name,
                 std::map<std::string, std::set<std::string>>& found) {
  std::set<std::string> options = of_parents;
  for (const CLI::Option* option : app.get_options()) {
    const std::string shown = option->get_name();
    if (option != app.get_help_ptr() && option != app.get_help_all_ptr() && shown != "--version") options.insert(shown);
  }
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  if (subcommands.empty()) found[name] = options;
  for (const CLI::App* subcommand : subcommands)
    add_options(*subcommand, options, (name.empty() ? "" : name + " ") + subcommand->get_name(), found);
}

std::map<std::string, std::set<std::string>> options_of_program() {
  CLI::App app;
  cli::GlobalOptions global;
  cli::Action action;
  cli::describe_subcommands(app, global, action);
  std::map<std::string, std::set<std::string>> found;
  add_options(app, {}, "", found);
  return found;
}

std::vector<OptionTable> all_tables() {
  std::vector<OptionTable> all;
  for (const auto& tables : {tables_of_models(), tables_of_runs(), tables_of_training()})
    all.insert(all.end(), tables.begin(), tables.end());
  return all;
}

/// The table with rows for the options that all subcommands share, where it has none of its own.
OptionTable with_global_rows(OptionTable table) {
  const auto add = [&](const OptionRow& row) {
    const bool own = std::ranges::find(table.rows, row.option, &OptionRow::option) != table.rows.end();
    if (!own && !table.unseen.contains(row.option)) table.rows.push_back(row);
  };
  add({"--json"});
  add({"--seed", {"7"}, {}, "--seed: "});
  add({"--device", {"cuda:0"}, {}, "--device: "});
  table.unseen.emplace("--threads", "the numbers do not depend on the number of threads");
  table.unseen.emplace("--quiet", "progress on stderr");
  return table;
}

/// Observed calls without the option, and what differs when the same call is made again.
class Calls {
 public:
  struct Twice {
    ObservedRun first;
    std::set<std::string> varying;
  };
  const Twice& of(const Words& words) {
    const auto found = calls_.find(words);
    if (found != calls_.end()) return found->second;
    Twice made{observe(words), {}};
    if (made.first.exit_code != 2) made.varying = differences(made.first, observe(words), {});
    return calls_.emplace(words, std::move(made)).first->second;
  }

 private:
  std::map<Words, Twice> calls_;
};

struct Verdicts {
  int tried = 0, acted = 0, refused = 0, nothing = 0, unseen = 0;
};

/// Tries a row: the call with the option beside the call without it.
void try_row(const OptionTable& table, const OptionRow& row, Calls& calls, Verdicts& verdicts) {
  const bool named = row.option.starts_with("--");
  Words without = with_words(table.call, row.also), option = named ? Words{row.option} : Words();
  option.insert(option.end(), row.value.begin(), row.value.end());
  Words with = with_words(without, option);
  without.insert(without.begin(), table.command.begin(), table.command.end());
  with.insert(with.begin(), table.command.begin(), table.command.end());
  ++verdicts.tried;
  const ObservedRun found = observe(with);
  if (!row.refused.empty() && found.exit_code == 2) {
    ++verdicts.refused;
    EXPECT_NE(calls.of(without).first.exit_code, 2) << joined(without) << "\nis refused without the option too";
    EXPECT_NE(found.error.find(row.refused), std::string::npos) << joined(with) << "\n" << found.error;
    return;
  }
  if (found.exit_code != 0 && found.exit_code != 1) {
    ADD_FAILURE() << joined(with) << "\nwas refused or failed; the row needs a call in which the option acts:\n"
                  << found.error;
    return;
  }
  const Calls::Twice& base = calls.of(without);
  if (differences(base.first, found, base.varying).empty()) {
    ++verdicts.nothing;
    ADD_FAILURE() << "gainlens " << joined(with) << "\nprints and writes the same as without " << joined(option)
                  << ": let the option act, or refuse it. Where its effect cannot be seen, give the reason in 'unseen' "
                     "of its table in "
                  << table_files;
    return;
  }
  ++verdicts.acted;
}

void try_all(const std::vector<OptionTable>& tables) {
  Verdicts verdicts;
  for (const OptionTable& plain : tables) {
    const OptionTable table = with_global_rows(plain);
    Calls calls;
    Words call = table.command;
    call.insert(call.end(), table.call.begin(), table.call.end());
    const ObservedRun& base = calls.of(call).first;
    EXPECT_TRUE(base.exit_code == 0 || base.exit_code == 1) << joined(call) << "\n" << base.error;
    for (const OptionRow& row : table.rows) try_row(table, row, calls, verdicts);
    verdicts.unseen += static_cast<int>(table.unseen.size());
  }
  std::printf("options: %d pairs tried, %d acted, %d refused, %d did nothing; %d more cannot be seen\n", verdicts.tried,
              verdicts.acted, verdicts.refused, verdicts.nothing, verdicts.unseen);
}

TEST(EveryOption, HasARow) {
  std::map<std::string, std::set<std::string>> covered;
  std::size_t pairs = 0;
  for (const OptionTable& plain : all_tables()) {
    const OptionTable table = with_global_rows(plain);
    std::set<std::string>& of = covered[joined(table.command)];
    for (const OptionRow& row : table.rows) of.insert(row.option);
    for (const auto& [option, reason] : table.unseen) of.insert(option);
  }
  for (const auto& [command, options] : options_of_program()) {
    pairs += options.size();
    for (const std::string& option : options) {
      EXPECT_TRUE(covered[command].contains(option))
          << "gainlens " << command << " " << option << " has no row; add {\"" << option
          << "\", {VALUE}} to the table of this subcommand in " << table_files
          << ", with a value that changes what the small call there prints or writes";
    }
    for (const std::string& option : covered[command])
      EXPECT_TRUE(options.contains(option)) << command << ": there is no " << option << "; delete its row";
    covered.erase(command);
  }
  for (const auto& [command, options] : covered) ADD_FAILURE() << "there is no subcommand " << command;
  std::printf("options: %zu pairs of a subcommand and an option\n", pairs);
}

/// gainlens knows the options of inspect, and of no other subcommand; gainlens-compute knows all.
TEST(EveryOption, BothProgramsReadTheSame) {
  CLI::App app;
  cli::GlobalOptions global;
  cli::Action action;
  cli::describe_reading_subcommands(app, global, action, [] {});
  std::map<std::string, std::set<std::string>> found;
  add_options(app, {}, "", found);
  const auto all = options_of_program();
  EXPECT_EQ(found.at("inspect"), all.at("inspect"));
  for (const auto& [command, options] : found) {
    if (command == "inspect") continue;
    for (const std::string& option : options)
      EXPECT_TRUE(all.contains(command) == false || all.at(command).contains(option)) << command << " " << option;
  }
}

TEST(EveryOption, OneThatDoesNothingIsFound) {
  const Words call = {"hooks", tiny_model};
  Calls calls;
  const Calls::Twice& base = calls.of(call);
  EXPECT_TRUE(differences(base.first, observe({"hooks", tiny_model, "--threads", "1"}), base.varying).empty());
  EXPECT_FALSE(differences(base.first, observe({"hooks", gated_model}), base.varying).empty());
}

TEST(EveryOption, WordsReplaceThoseOfACall) {
  EXPECT_EQ(with_words({"a", "--x", "1", "2", "--y"}, {"--x", "3"}), (Words{"a", "--y", "--x", "3"}));
  EXPECT_EQ(with_words({"a", "--x", "1", "--y"}, {"b", "c", "!--x"}), (Words{"b", "c", "--y"}));
}

TEST(OptionsOfModels, ActOrAreRefused) {
  try_all(tables_of_models());
}

TEST(OptionsOfRuns, ActOrAreRefused) {
  try_all(tables_of_runs());
}

TEST(OptionsOfTraining, ActOrAreRefused) {
  try_all(tables_of_training());
}

}  // namespace every_option_test

Words with_words(Words call, const Words& words) {
  const auto is_option = [](const std::string& word) { return word.starts_with("--"); };
  const auto first = std::find_if(words.begin(), words.end(),
                                  [&](const std::string& word) { return is_option(word) || word.starts_with("!"); });
  if (first != words.begin()) {  // arguments without a name
    call.erase(call.begin(), std::find_if(call.begin(), call.end(), is_option));
    call.insert(call.begin(), words.begin(), first);
  }
  for (auto word = first; word != words.end(); ++word) {
    const bool takes_away = word->starts_with("!");
    const std::string name = takes_away ? word->substr(1) : *word;
    if (is_option(name)) {
      const auto begin = std::find(call.begin(), call.end(), name);
      if (begin != call.end()) call.erase(begin, std::find_if(begin + 1, call.end(), is_option));
    }
    if (!takes_away) call.push_back(*word);
  }
  return call;
}

}  // namespace gainlens::testing
