#include "analyses/published_results.h"

#include "analyses/published_texts.h"
#include "core/check.h"
#include "core/plain_text.h"

#include <algorithm>
#include <charconv>

namespace gainlens::analyses {
namespace {

/// The lines of a table, each as its fields. A field in double quotes may hold commas, and two quotes for one.
std::vector<std::vector<std::string>> table_of(std::string_view text) {
  std::vector<std::vector<std::string>> lines;
  bool quoted = false;
  std::string field;
  std::vector<std::string> fields;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      field += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == ',' || c == '\n')) {
      fields.push_back(std::move(field));
      field.clear();
      if (c == '\n') lines.push_back(std::exchange(fields, {}));
    } else {
      field += c;
    }
  }
  CHECK(!quoted && field.empty() && fields.empty(), "published results: a table that does not end with a whole line");
  return lines;
}

std::string_view text_named(std::string_view name) {
  for (const auto& [file, text] : published_texts()) {
    if (file == name) return text;
  }
  ASSERT(false, "no file of published results '{}'", name);
}

class Fields {
 public:
  Fields(const std::vector<std::string>& fields, const std::string& where) : fields_(fields), where_(where) {}
  std::string text() { return fields_.at(next_++); }
  std::int64_t whole() {
    const std::string& text = fields_.at(next_++);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    CHECK(error == std::errc() && end == text.data() + text.size() && number > 0,
          "{}: '{}' must be a whole number from 1", where_, printable(text, 40));
    return number;
  }
  std::optional<std::int64_t> optional_whole() {
    if (!fields_.at(next_).empty()) return whole();
    ++next_;
    return std::nullopt;
  }
  PublishedResult::Figure figure() {
    const std::optional<double> mean = share(), deviation = share();
    CHECK(mean.has_value(), "{}: a metric is missing", where_);
    return {*mean, deviation};
  }

 private:
  std::optional<double> share() {
    const std::string& text = fields_.at(next_++);
    if (text.empty()) return std::nullopt;
    const auto number = finite_number(text);
    CHECK(number && *number >= 0 && *number <= 1, "{}: '{}' must be a number from 0 to 1", where_, printable(text, 40));
    return number;
  }
  const std::vector<std::string>& fields_;
  const std::string& where_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<PublishedResult> parse_published_results(std::string_view text, const std::string& source,
                                                     const std::string& where) {
  static const std::vector<std::string> columns = {
      "data_set", "users",           "items",   "interactions",     "split", "model", "seeds",
      "hr@10",    "hr@10_deviation", "ndcg@10", "ndcg@10_deviation"};
  const auto lines = table_of(text);
  CHECK(!lines.empty() && lines.front() == columns, "{}: its columns are not those of published results", where);
  std::vector<PublishedResult> results;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string of = fmt::format("{}: line {}", where, i + 1);
    CHECK(lines[i].size() == columns.size(), "{} has {} of {} columns", of, lines[i].size(), columns.size());
    Fields fields(lines[i], of);
    PublishedResult& result = results.emplace_back();
    result.source = source;
    result.data_set = fields.text();
    result.users = fields.whole();
    result.items = fields.whole();
    result.interactions = fields.whole();
    result.split = fields.text();
    result.model = fields.text();
    result.seeds = fields.optional_whole();
    result.hit = fields.figure();
    result.gain = fields.figure();
  }
  return results;
}

const std::vector<PublishedSource>& published_sources() {
  static const std::vector<PublishedSource> sources = [] {
    std::vector<PublishedSource> found;
    const auto lines = table_of(text_named("sources"));
    for (std::size_t i = 1; i < lines.size(); ++i)
      found.push_back({lines[i].at(0), lines[i].at(1), lines[i].at(2), lines[i].at(3)});
    return found;
  }();
  return sources;
}

const PublishedSource& published_source(std::string_view name) {
  const auto& sources = published_sources();
  const auto found = std::ranges::find(sources, name, &PublishedSource::name);
  ASSERT(found != sources.end(), "no source '{}'", name);
  return *found;
}

const std::vector<PublishedResult>& published_results() {
  static const std::vector<PublishedResult> results = [] {
    std::vector<PublishedResult> all;
    for (const PublishedSource& source : published_sources()) {
      const auto part = parse_published_results(text_named(source.file), source.name, source.file + ".csv");
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return results;
}

std::vector<PublishedResult> published_for(std::int64_t users, std::int64_t items, std::int64_t interactions,
                                           std::string_view split) {
  std::vector<PublishedResult> found;
  for (const PublishedResult& result : published_results()) {
    const bool same_data = result.users == users && result.items == items && result.interactions == interactions;
    if (same_data && (result.split.empty() || result.split == split)) found.push_back(result);
  }
  std::ranges::stable_sort(
      found, [](const PublishedResult& one, const PublishedResult& other) { return one.gain.mean > other.gain.mean; });
  return found;
}

OrderedJson to_json(const std::vector<PublishedResult>& results) {
  const auto or_null = [](const auto& value) { return value ? OrderedJson(*value) : OrderedJson(nullptr); };
  OrderedJson json = OrderedJson::array();
  for (const PublishedResult& result : results) {
    json.push_back({{"model", result.model},
                    {"source", result.source},
                    {"address", published_source(result.source).address},
                    {"data_set", result.data_set},
                    {"split", result.split.empty() ? "unknown" : "same"},
                    {"seeds", or_null(result.seeds)},
                    {"hr@10", result.hit.mean},
                    {"hr@10_deviation", or_null(result.hit.deviation)},
                    {"ndcg@10", result.gain.mean},
                    {"ndcg@10_deviation", or_null(result.gain.deviation)}});
  }
  return json;
}

}  // namespace gainlens::analyses
