#include "data/item_ranks.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/nearest.h"
#include "core/plain_text.h"
#include "core/ranking_metrics.h"
#include "core/spreadsheet_text.h"
#include "data/delimited.h"
#include "data/run_users.h"
#include "data/time_text.h"
#include "formats/gzip.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <system_error>
#include <unordered_map>

namespace gainlens::data {
namespace {

constexpr std::uint64_t largest_ranks_file = std::uint64_t{4} << 30;
constexpr float no_rank = 0;

class RanksReader {
 public:
  RanksReader(const std::string& where, const LeaveOneOut& split, HeldOut held_out)
      : where_(where), split_(split), held_out_(held_out) {
    for (std::int64_t user = 0; user < split.users(); ++user)
      users_.emplace(split.interactions().users[static_cast<std::size_t>(user)], user);
  }

  void read_header(const DataLine& line, char delimiter) {
    delimiter_ = delimiter;
    const std::string fault = split_fields(line.text, delimiter, fields_);
    CHECK(fault.empty(), "{}: line {} {}; quotes stand as in RFC 4180", where_, line.number, fault);
    columns_ = fields_.size();
    user_ = *place_of("user", true);
    target_ = *place_of("target", true);
    rank_ = *place_of("rank", true);
    seed_ = place_of("seed", false);
  }

  void read(const DataLine& line) {
    const std::string fault = split_fields(line.text, delimiter_, fields_);
    CHECK(fault.empty(), "{}: line {} {}; quotes stand as in RFC 4180", where_, line.number, fault);
    CHECK(fields_.size() == columns_, "{}: line {} has {} of {} columns", where_, line.number, fields_.size(),
          columns_);
    const std::int64_t user = user_of(line);
    check_target(user, line);
    std::vector<float>& ranks =
        ranks_.try_emplace(seed_of(line), std::vector<float>(static_cast<std::size_t>(split_.users()), no_rank))
            .first->second;
    float& rank = ranks[static_cast<std::size_t>(user)];
    CHECK(rank == no_rank, "{}: line {}: user '{}' stands twice{}", where_, line.number, printable(fields_[user_], 40),
          seed_ ? " with seed " + printable(fields_[*seed_], 40) : "");
    rank = rank_of(line);
  }

  ItemRanks finish() {
    CHECK(!ranks_.empty(), "{}: has no ranks, only a header", where_);
    ItemRanks result;
    result.seeded = seed_.has_value();
    for (auto& [seed, ranks] : ranks_) {
      const auto missing = std::count(ranks.begin(), ranks.end(), no_rank);
      if (missing > 0) {
        const auto first = std::find(ranks.begin(), ranks.end(), no_rank) - ranks.begin();
        throw_invalid("{}: has no line for user '{}'{}{}; ranks of all users of the data are needed", where_,
                      printable(split_.interactions().users[static_cast<std::size_t>(first)], 40),
                      seed_ ? fmt::format(" with seed {}", seed) : "",
                      missing == 1 ? "" : fmt::format(" (and {})", counted(missing - 1, "other user")));
      }
      result.seeds.push_back(seed);
      result.ranks.push_back(std::move(ranks));
    }
    return result;
  }

 private:
  std::optional<std::size_t> place_of(const std::string& name, bool needed) const {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i] != name) continue;
      CHECK(!found, "{}: has the column '{}' twice; rename one", where_, name);
      found = i;
    }
    if (found || !needed) return found;
    std::vector<std::string> shown;
    for (std::size_t i = 0; i < std::min<std::size_t>(fields_.size(), 12); ++i)
      shown.push_back(printable(fields_[i], 40));
    throw_invalid(
        "{}: has no column '{}'; its columns are {}; user, target and rank are needed, and seed if there are "
        "several{}",
        where_, name, fmt::join(shown, ", "), did_you_mean(name, fields_));
  }

  std::int64_t user_of(const DataLine& line) const {
    const std::string& name = fields_[user_];
    // Other programs put no apostrophe in front of a name.
    auto found = users_.find(without_formula_mark(name));
    if (found == users_.end()) found = users_.find(name);
    CHECK(found != users_.end(), "{}: line {}: user '{}' is not among the {} of the data", where_, line.number,
          printable(name, 40), counted(split_.users(), "user"));
    return found->second;
  }

  void check_target(std::int64_t user, const DataLine& line) const {
    const std::string& given = fields_[target_];
    const std::string& target = split_.interactions().items[static_cast<std::size_t>(split_.target(user, held_out_))];
    CHECK(
        without_formula_mark(given) == target || given == target,
        "{}: line {}: user '{}' has the target '{}', and the {} item of the data is '{}'; ranks and data have to have "
        "the same split",
        where_, line.number, printable(fields_[user_], 40), printable(given, 40),
        held_out_ == HeldOut::test ? "test" : "validation", printable(target, 40));
  }

  std::uint64_t seed_of(const DataLine& line) const {
    if (!seed_) return 0;
    const std::string& text = fields_[*seed_];
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
    CHECK(error == std::errc() && end == text.data() + text.size(),
          "{}: line {} has the seed '{}'; must be a whole number from 0 to 2^64 - 1", where_, line.number,
          printable(text, 40));
    return seed;
  }

  float rank_of(const DataLine& line) const {
    const auto rank = finite_number(fields_[rank_]);
    CHECK(rank && *rank >= 1 && *rank <= static_cast<double>(split_.items()) && std::floor(2 * *rank) == 2 * *rank,
          "{}: line {} has the rank '{}'; must be 1, the best, to {}, the number of items, in steps of a half", where_,
          line.number, printable(fields_[rank_], 40), split_.items());
    return static_cast<float>(*rank);
  }

  const std::string& where_;
  const LeaveOneOut& split_;
  HeldOut held_out_;
  std::unordered_map<std::string_view, std::int64_t> users_;
  char delimiter_ = ',';
  std::size_t columns_ = 0, user_ = 0, target_ = 0, rank_ = 0;
  std::optional<std::size_t> seed_;
  std::vector<std::string> fields_;
  std::map<std::uint64_t, std::vector<float>> ranks_;  // [user] of each seed
};

}  // namespace

bool is_ranks_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return delimiter_of_file(path.filename().string()).has_value() && !std::filesystem::is_directory(path, ignored);
}

ItemRanks read_item_ranks(const std::filesystem::path& path, const LeaveOneOut& split, HeldOut held_out) {
  const std::string where = printable(path.string());
  const std::string content = formats::read_plain_or_gzip(path, largest_ranks_file);
  DataLines lines(content, Quotes::rfc4180);
  RanksReader reader(where, split, held_out);
  const auto header = lines.next();
  CHECK(header, "{}: empty; give a table with the columns user, target and rank", where);
  reader.read_header(*header, delimiter_of_file(path.filename().string()).value_or(','));
  while (const auto line = lines.next()) reader.read(*line);
  return reader.finish();
}

runfile::RecommendRun run_of_ranks(const ItemRanks& ranks, const LeaveOneOut& split, const std::string& arm,
                                   const std::string& data_name, HeldOut held_out) {
  runfile::RecommendRun run;
  run.request = {{"backbone", "ranks"}, {"data", data_of_request(split, data_name)}, {"training", Json::object()}};
  run.arms = {arm};
  run.seeds = ranks.seeds;
  set_users(run, split);
  if (held_out == HeldOut::validation) {
    run.target = run.validation_target;
    run.history_length = run.training_length;
  }
  for (const std::vector<float>& seed_ranks : ranks.ranks) {
    runfile::TrainedSeed result;
    for (const RankingMetric& metric : ranking_metrics()) result.test[metric.name()] = mean_of(metric, seed_ranks);
    result.scores[runfile::rank_score] = {seed_ranks.begin(), seed_ranks.end()};
    run.results.emplace_back(std::move(result));
  }
  return run;
}

std::string stem_of_table(const std::filesystem::path& path) {
  std::filesystem::path name = path.filename();
  if (name.extension() == ".gz") name = name.stem();
  return delimiter_of_file(name.string()) ? name.stem().string() : name.string();
}

}  // namespace gainlens::data
