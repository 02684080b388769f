#include "cli/command_options.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/listener.h"
#include "core/plain_text.h"
#include "data/delimited.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

namespace gainlens::cli {

void refuse_options(const CLI::App& command, std::span<const OptionFor> options,
                    std::span<const std::string_view> taken, std::string_view end) {
  for (const OptionFor& option : options)
    CHECK(std::ranges::find(taken, option.name) != taken.end() || command.count(std::string(option.name)) == 0,
          "{}: is for {}{}", option.name, option.takers, end);
}

void add_ignored_keys(CLI::App& command, std::vector<std::string>& keys) {
  command
      .add_option("--ignore-config-key", keys,
                  "Do not read this key of config.json, for example logit_scale or rope_scaling.attn_factor: for keys "
                  "that gainlens refuses and that you know to change nothing. May be repeated")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void refuse_ignored_keys(const std::vector<std::string>& keys, std::string_view what) {
  CHECK(keys.empty(), "--ignore-config-key: is for the checkpoint of a decoder; this is {}", what);
}

CLI::Option* add_name_list(CLI::App& command, const std::string& option, std::vector<std::string>& names,
                           const std::string& help) {
  const auto read = [option, &names](const std::vector<std::string>& given) {
    names.clear();
    for (const std::string& text : given) {
      for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        names.push_back(text.substr(begin, end - begin));
        CHECK(!names.back().empty(), "{}: '{}' holds an empty name; write names with one comma between two of them",
              option, printable(text, 60));
        CHECK(std::ranges::count(names, names.back()) == 1, "{}: '{}' is given twice", option,
              printable(names.back(), 60));
        begin = end + 1;
      }
    }
  };
  CLI::Option* added = command.add_option_function<std::vector<std::string>>(option, read, help);
  added->allow_extra_args(false);  // the words after it are other arguments
  if (!names.empty()) added->default_str(fmt::format("{}", fmt::join(names, ",")));
  return added;
}

std::vector<double> numbers_of(const std::vector<std::string>& texts, const std::string& option) {
  std::vector<double> numbers;
  numbers.reserve(texts.size());
  for (const std::string& text : texts) {
    const auto number = finite_number(text);
    CHECK(number, "{}: '{}' is no finite number", option, printable(text, 60));
    numbers.push_back(*number);
  }
  return numbers;
}

data::InteractionOptions InteractionPolicy::options() const {
  CHECK(min_item_count >= 0, "--min-item-count: {}; must be at least 0", min_item_count);
  data::InteractionOptions options{.ties = data::parse_tie_policy(ties),
                                   .min_item_count = min_item_count,
                                   .duplicates = data::parse_duplicates(duplicates),
                                   .columns = {.user = user_column, .item = item_column, .time = time_column}};
  if (!delimiter.empty()) options.columns.delimiter = data::parse_delimiter(delimiter);
  if (!quotes.empty()) options.columns.quotes = data::parse_quotes(quotes);
  options.columns.header = !no_header;
  options.split = data::parse_split_policy(split);
  CHECK(
      !no_header || (!user_column.empty() && !item_column.empty() && !time_column.empty()),
      "--no-header: the columns are called 1, 2, 3, ...; give --user-column, --item-column and --time-column (none if "
      "there are no times)");
  return options;
}

void add_interaction_policy(CLI::App& command, InteractionPolicy& policy, const std::string& prefix) {
  const auto described = [&](std::string text) {
    if (prefix.empty()) text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return prefix + text;
  };
  command
      .add_option("--ties", policy.ties,
                  described("order of a user's interactions at the same time: file (as in the file), item (by item id) "
                            "or random:SEED"))
      ->capture_default_str();
  command
      .add_option("--min-item-count", policy.min_item_count,
                  described("drop items with fewer interactions before users are dropped"))
      ->capture_default_str();
  command
      .add_option(
          "--duplicates", policy.duplicates,
          described("which interactions stay if a user has an item more than once: keep (all of them), exact (one of "
                    "those at the same time), first or last"))
      ->capture_default_str();
  command
      .add_option(
          "--split", policy.split,
          described("what is held out: leave-one-out (of each user the last two interactions), temporal:SHARE "
                    "(what follows the moment before which this share of all interactions lies) or temporal:TIME "
                    "(what follows this moment: an ISO date, or a number as in the file)"))
      ->capture_default_str();
  command.add_option(
      "--user-column", policy.user_column,
      described("column of CSV, TSV and Parquet files, or key of JSON lines, with the users (default: a common "
                "name such as user_id)"));
  command.add_option("--item-column", policy.item_column,
                     described("likewise with the items (default: a common name such as item_id)"));
  command.add_option("--time-column", policy.time_column,
                     described("likewise with the times, which are numbers or ISO dates; none: the lines are in the "
                               "order of time (default: a common name such as timestamp)"));
  command.add_option("--delimiter", policy.delimiter,
                     described("what splits the columns: comma, tab, semicolon or pipe (default: by the file's "
                               "extension, .csv or .tsv)"));
  command.add_option("--quotes", policy.quotes,
                     described("what a double quote is in a table: rfc4180 (around a field, and written twice within "
                               "it), backslash (the same, also written \\\" within it) or none (a character as any "
                               "other) (default: rfc4180)"));
  command.add_flag("--no-header", policy.no_header,
                   described("the first line is no header; columns are called 1, 2, 3, ..."));
}

data::Interactions InteractionArguments::read(std::vector<std::string> catalogue) const {
  data::InteractionOptions options = policy.options();
  options.catalogue = std::move(catalogue);
  return data::read_interactions(path, options);
}

void InteractionArguments::tell_left_out(const data::Interactions& read) const {
  if (read.dropped_users == 0) return;
  tell_note("{}: {} left out, with fewer than {} interactions{}; {} stay", printable(path),
            counted_are(read.dropped_users, "user"), data::InteractionOptions{}.min_user_interactions,
            policy.options().split.in_time() ? ", or too few before the time of --split" : "",
            counted(read.user_count(), "user"));
}

std::string InteractionArguments::name() const {
  std::filesystem::path name = std::filesystem::path(path).filename();
  if (name.extension() == ".gz") name = name.stem();
  return name.stem().string();
}

void refuse_interaction_policy(const CLI::App& command, std::string_view why) {
  for (const char* option : interaction_policy_options)
    CHECK(command.count(option) == 0, "{}: {}; leave it out", option, why);
}

void add_interaction_options(CLI::App& command, InteractionArguments& arguments) {
  command
      .add_option("--data", arguments.path,
                  "Interactions, plain or gzipped: CSV or TSV with a header, Parquet, JSON lines, RecBole .inter, "
                  "`user item item ...` or `user item` lines, or MovieLens ratings (`::`, u.data)")
      ->required();
  add_interaction_policy(command, arguments.policy);
}

}  // namespace gainlens::cli
