#include "cli/inspect_parts.h"
#include "core/counted.h"
#include "core/error.h"
#include "data/delimited.h"
#include "data/leave_one_out.h"
#include "data/strata.h"
#include "data/time_text.h"
#include "formats/importance_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

namespace gainlens::cli {
namespace {

/// Adds the shortest, median and longest sequence of the users.
void add_sequence_lengths(const data::Interactions& data, Findings& findings) {
  std::vector<std::size_t> lengths;
  for (std::int64_t user = 0; user < data.user_count(); ++user) lengths.push_back(data.items_of(user).size());
  std::sort(lengths.begin(), lengths.end());
  const std::size_t half = lengths.size() / 2;
  const double median = lengths.size() % 2 == 1 ? static_cast<double>(lengths[half])
                                                : static_cast<double>(lengths[half - 1] + lengths[half]) / 2;
  findings.add("sequence length", fmt::format("{} to {}, median {}", lengths.front(), lengths.back(), median),
               {{"min", lengths.front()}, {"median", median}, {"max", lengths.back()}});
}

void add_dropped(const data::Interactions& data, const data::InteractionOptions& options, Findings& findings) {
  const std::string rare =
      options.min_item_count > 1 ? fmt::format("fewer than {} interactions, or ", options.min_item_count) : "";
  findings.add(
      "dropped",
      fmt::format("{} (fewer than {} interactions), {} ({}of dropped users alone)", counted(data.dropped_users, "user"),
                  options.min_user_interactions, counted(data.dropped_items, "item"), rare),
      {{"users", data.dropped_users},
       {"items", data.dropped_items},
       {"min_user_interactions", options.min_user_interactions},
       {"min_item_count", options.min_item_count}});
}

/// Adds how interactions at the same time were put in order, and how many there are.
void add_ties(const data::Interactions& data, const data::TiePolicy& ties, Findings& findings) {
  const bool timed = !data.time.empty();
  findings.add("ties",
               timed ? fmt::format("{} interactions share their time with another one of their user; order: {}",
                                   data.tied, ties.name())
                     : "none: the file has no times, and its order is kept",
               {{"timed", timed}, {"interactions", data.tied}, {"policy", timed ? Json(ties.name()) : Json(nullptr)}});
}

/// Adds what a temporal split has made of the data.
void add_temporal(const data::Interactions& data, const data::SplitPolicy& split, Findings& findings) {
  if (!split.in_time()) return;
  const bool dates = data.columns && data.columns->dates;
  findings.add("temporal split",
               fmt::format("{} at time {}{}: {} with a test, {} for training alone; {} left out", split.name(),
                           data.split_time, dates ? fmt::format(" ({})", data::date_of_seconds(data.split_time)) : "",
                           counted(data.user_count() - data.untested, "user"), counted(data.untested, "user"),
                           counted(data.later, "later interaction")),
               {{"policy", split.name()},
                {"time", data.split_time},
                {"tested_users", data.user_count() - data.untested},
                {"training_users", data.untested},
                {"later_interactions", data.later}});
}

/// Adds which columns of a table, or keys of JSON lines, were read, and how.
void add_columns(const data::Interactions& data, Findings& findings) {
  if (!data.columns) return;
  const data::ReadColumns& read = *data.columns;
  const auto shown = [](const std::string& name) { return "'" + printable(name, 60) + "'"; };
  const std::string time = !read.time ? fmt::format("no times, the {}s are in the order of time", unit_of(data.format))
                           : read.dates ? fmt::format("time {}, as dates", shown(*read.time))
                                        : fmt::format("time {}, as numbers", shown(*read.time));
  findings.add("columns",
               fmt::format("user {}, item {}, {}{}", shown(read.user), shown(read.item), time,
                           read.delimiter ? fmt::format("; split by {}{}", data::plural_of(*read.delimiter),
                                                        *read.quotes == data::Quotes::rfc4180
                                                            ? ""
                                                            : fmt::format(", quotes: {}", quotes_name(*read.quotes)))
                                          : ""),
               {{"user", read.user},
                {"item", read.item},
                {"time", read.time ? Json(*read.time) : Json(nullptr)},
                {"dates", read.dates},
                {"delimiter", read.delimiter ? Json(std::string(1, *read.delimiter)) : Json(nullptr)},
                {"quotes", read.quotes ? Json(std::string(quotes_name(*read.quotes))) : Json(nullptr)}});
}

/// Adds what became of items that a user has more than once.
void add_duplicates(const data::Interactions& data, data::Duplicates duplicates, Findings& findings) {
  const std::string repeated =
      fmt::format("{} of the file with an item that the user has had before", counted(data.repeated, "interaction"));
  findings.add(
      "duplicates",
      data.repeated == 0                     ? "none: no user has an item twice"
      : duplicates == data::Duplicates::keep ? repeated + "; all are kept"
      : duplicates == data::Duplicates::exact
          ? repeated + "; of those at the same time the first is kept, and all others"
          : fmt::format("{}; of each user and item the {} is kept", repeated, data::duplicates_name(duplicates)),
      {{"interactions", data.repeated}, {"policy", std::string(data::duplicates_name(duplicates))}});
}

/// "at most 4", "4 to 6", "15 or more".
/// @param shares_edges  a count that is an edge can lie on both sides of it
std::string range_text(const std::vector<std::int64_t>& edges, std::size_t stratum, bool shares_edges) {
  if (edges.empty()) return "all";
  const std::int64_t above = shares_edges ? 0 : 1;
  if (stratum == 0) return fmt::format("at most {}", edges[0]);
  if (stratum == edges.size()) return fmt::format("{} or more", edges[stratum - 1] + above);
  const std::int64_t first = edges[stratum - 1] + above;
  return first == edges[stratum] ? fmt::format("{}", first) : fmt::format("{} to {}", first, edges[stratum]);
}

/// The two ways to group users, and how lines and JSON name them.
struct Grouping {
  const char* line;  ///< "item quintile"
  const char* key;   ///< in the JSON object
  const char* unit;  ///< what the edges count
  bool shares_edges;
};
constexpr Grouping by_items = {"item quintile", "item_frequency", "target count", true};
constexpr Grouping by_users = {"user quintile", "user_activity", "training items", false};

void add_strata(const UserCounts& counts, const Strata& strata, const Grouping& grouping, Findings& findings) {
  const auto parts = composition(counts, strata);
  Json rows = Json::array();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string means = parts[i].users == 0
                                  ? ""
                                  : fmt::format("; means: target count {:.1f}, known items {:.1f}",
                                                parts[i].mean_target_count, parts[i].mean_history_length);
    findings.add_line(fmt::format("{} {}", grouping.line, i + 1),
                      fmt::format("{}, {} {}{}", counted(parts[i].users, "test"), grouping.unit,
                                  range_text(strata.edges, i, grouping.shares_edges), means));
    rows.push_back({{"tests", parts[i].users},
                    {"mean_target_count", parts[i].mean_target_count},  // NaN becomes null
                    {"mean_history_length", parts[i].mean_history_length}});
  }
  findings.add_json(grouping.key, {{"edges", strata.edges}, {"strata", rows}});
}

void add_correlation(const UserCounts& counts, Findings& findings) {
  const double correlation = length_frequency_correlation(counts);
  const std::string text = std::isnan(correlation)
                               ? "not defined: one of the two is the same for all users"
                               : fmt::format("{:.4f} between known items and target count", correlation);
  findings.add_line("correlation", text);
  findings.add_json("length_frequency_correlation", correlation);
}

}  // namespace

bool looks_like_data_set(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || path.filename() == "config.json") return false;
  static constexpr std::array<std::string_view, 7> weights = {".gguf", ".safetensors", ".bin", ".h5",
                                                              ".hdf5", ".pt",          ".pth"};
  if (std::find(weights.begin(), weights.end(), path.extension()) != weights.end()) return false;
  std::string start(10, '\0');
  std::ifstream(path, std::ios::binary).read(start.data(), static_cast<std::streamsize>(start.size()));
  // A safetensors file begins with the length of its header in 8 bytes. The header is a JSON object.
  const bool safetensors = start.substr(8, 2) == "{\"" && start[7] == '\0';
  return !start.starts_with("GGUF") && !start.starts_with("\x89HDF") && !safetensors &&
         !formats::is_importance_matrix(path);
}

void inspect_data(const std::filesystem::path& path, const data::InteractionOptions& options, Findings& findings) {
  findings.add("kind", "data set");
  data::Interactions data = data::read_interactions(path, options);
  findings.add("format", std::string(data::format_name(data.format)));
  add_columns(data, findings);
  findings.add("users", fmt::format("{}", data.user_count()), data.user_count());
  findings.add("items", fmt::format("{}", data.item_count()), data.item_count());
  findings.add("interactions", fmt::format("{}", data.interaction_count()), data.interaction_count());
  findings.add("density", fmt::format("{:.4f}% of all pairs of a user and an item", 100 * data.density()),
               data.density());
  add_dropped(data, options, findings);
  add_duplicates(data, options.duplicates, findings);
  add_ties(data, options.ties, findings);
  add_temporal(data, options.split, findings);
  add_sequence_lengths(data, findings);
  const data::LeaveOneOut split(std::move(data));
  findings.add("split checksum", split.checksum());
  const UserCounts counts = data::user_counts(split);
  add_strata(counts, by_item_frequency(counts), by_items, findings);
  add_strata(counts, by_user_activity(counts), by_users, findings);
  add_correlation(counts, findings);
}

}  // namespace gainlens::cli
