#include "runfile/training_files.h"

#include "core/check.h"
#include "core/json.h"
#include "core/knobs.h"
#include "runfile/run_file_name.h"
#include "runfile/trained_run.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view repair = "repeat the training command, which writes it again";

/// A table of numbers with a header line. An empty cell is NaN.
class NumberTable {
 public:
  explicit NumberTable(const fs::path& file) : where_(printable(file.string())) {
    const std::string text = read_text_file(file);
    std::string_view rest = text;
    bool header = true;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      CHECK(end != std::string_view::npos, "{}: its last line has no end; {}", where_, repair);
      add_line(rest.substr(0, end), header);
      header = false;
      rest.remove_prefix(end + 1);
    }
  }
  const std::string& where() const { return where_; }
  std::size_t rows() const { return rows_.size(); }
  double at(std::size_t row, std::string_view column) const {
    const auto found = std::ranges::find(names_, column);
    CHECK(found != names_.end(), "{}: has no column '{}'; {}", where_, column, repair);
    return rows_[row][static_cast<std::size_t>(found - names_.begin())];
  }

 private:
  static constexpr double missing = std::numeric_limits<double>::quiet_NaN();

  double number_in(std::string_view cell) const {
    if (cell.empty()) return missing;
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    CHECK(error == std::errc() && end == cell.data() + cell.size(), "{}: '{}' is no number; {}", where_,
          printable(cell, 40), repair);
    return value;
  }

  void add_line(std::string_view line, bool header) {
    std::vector<double> row;
    for (bool more = true; more;) {
      const std::size_t comma = line.find(',');
      const std::string_view cell = line.substr(0, comma);
      more = comma != std::string_view::npos;
      if (more) line.remove_prefix(comma + 1);
      if (header)
        names_.emplace_back(cell);
      else
        row.push_back(number_in(cell));
    }
    if (header) return;
    CHECK(row.size() == names_.size(), "{}: a line has {} cells, and the first one {}; {}", where_, row.size(),
          names_.size(), repair);
    rows_.push_back(std::move(row));
  }

  std::string where_;
  std::vector<std::string> names_;
  std::vector<std::vector<double>> rows_;
};

std::int64_t step_at(const NumberTable& table, std::size_t row) {
  const double step = table.at(row, "step");
  CHECK(step >= 0 && step <= 0x1p53 && step == std::floor(step), "{}: 'step' is {}; must be a whole number; {}",
        table.where(), step, repair);
  return static_cast<std::int64_t>(step);
}

}  // namespace

void refuse_newer_request(const Json& request, const KnownRequest& known, const std::string& where) {
  std::vector<std::string> unknown;
  for (const auto& [place, keys] : known.keys) {
    const Json::json_pointer pointer(place);
    if (!request.contains(pointer) || !request.at(pointer).is_object()) continue;
    for (const auto& [key, value] : request.at(pointer).items()) {
      if (std::ranges::find(keys, key) == keys.end()) unknown.push_back(fmt::format("{}/{}", place, key));
    }
  }
  CHECK(unknown.empty(), "{}: {}", where, made_by_newer_version(unknown));
  const auto version = request.is_object() ? request.find("version") : request.end();
  const bool is_newer = version != request.end() && version->is_number_integer() && *version > known.version;
  CHECK(!is_newer, "{}: made by a newer version of gainlens; /version is {}, and this one knows up to {}", where,
        version->dump(), known.version);
}

KnownRequest known_recommend_request(std::vector<std::string> settings) {
  return {recommend_request_version,
          {{"", {"kind", "version", "backbone", "data", "training", "threads", "processes", "variants"}},
           {"/data", {"name", "format", "users", "items", "interactions", "split", "untested_items", "times"}},
           {"/training", std::move(settings)}}};
}

KnownRequest known_language_request(std::vector<std::string> filter) {
  return {language_request_version,
          {{"", {"kind", "version", "recipe", "texts", "seed", "filter", "precision_learning_rate", "arm"}},
           {"/filter", std::move(filter)}}};
}

Json read_recommend_request(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / request_file_name;
  const std::string repair = "put it back, or give run.h5 in its place, which holds the request too";
  Json request;
  try {
    request = read_json_file(file);
  } catch (const InvalidArgument& error) {
    throw_invalid("{}; {}", error.what(), repair);
  }
  const bool fits = request.is_object() && request.contains("backbone") && request.at("backbone").is_string() &&
                    request.contains("training") && request.at("training").is_object();
  CHECK(fits, "{}: is not the request of a recommender run; {}", printable(file.string()), repair);
  return request;
}

std::string history_csv(std::span<const Evaluation> history) {
  std::string text = "step,training_loss,validation_loss,learning_rate,gradient_norm\n";
  for (const Evaluation& point : history) {
    text += fmt::format("{},{:.6g},{:.6g},{:.6g},{:.6g}\n", point.step, point.training_loss, point.validation_loss,
                        point.learning_rate, point.gradient_norm);
  }
  return text;
}

std::vector<Evaluation> read_history(const fs::path& file) {
  const NumberTable table(file);
  std::vector<Evaluation> history;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    history.push_back({step_at(table, row), table.at(row, "training_loss"), table.at(row, "validation_loss"),
                       table.at(row, "learning_rate"), table.at(row, "gradient_norm")});
  }
  return history;
}

std::string filter_csv(const FilterHistory& history) {
  std::string text = "step,layer";
  for (const FilterCurve& curve : filter_curves()) text += fmt::format(",{}", curve.name);
  text += "\n";
  for (std::size_t i = 0; i < history.steps.size() * history.layers; ++i) {
    text += fmt::format("{},{}", history.steps[i / history.layers], i % history.layers);
    for (const FilterCurve& curve : filter_curves()) {
      const double value = history.curves.at(std::string(curve.name)).at(i);
      text += std::isnan(value) ? "," : fmt::format(",{:.6g}", value);
    }
    text += "\n";
  }
  return text;
}

std::vector<FilterPoint> read_filter_history(const fs::path& file) {
  const NumberTable table(file);
  std::vector<FilterPoint> points;
  for (std::size_t row = 0; row < table.rows(); ++row)
    points.push_back({static_cast<double>(step_at(table, row)), table.at(row, "gain"), table.at(row, "share_at_most")});
  return points;
}

}  // namespace gainlens::runfile
