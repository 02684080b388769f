#include "cli/grid_option.h"

#include "cli/knob_options.h"
#include "core/check.h"
#include "core/short_text.h"
#include "recommend/idle_settings.h"

#include <algorithm>
#include <string_view>

namespace gainlens::cli {
namespace {

/// The paper names the range of few knobs: warm-up 0 to 200 and more, lambda_max 10 to 100, "an order of magnitude" for
/// the others. Each has the paper's default among its settings.
constexpr std::string_view paper_grid[] = {
    "initial_gain=0.5,0.7,0.9,0.95,0.99", "initial_decay=0.9,0.95,0.99,0.999",
    "most_process_noise=0.01,0.1,1,10",   "prior_variance=0,0.01,0.1,1",
    "warm_up=0,50,100,200,500",           "precision_learning_rate=1,10,100,300,1000",
    "most_precision=10,20,50,100,200",
};

struct GridText {
  std::string key;
  std::vector<std::string> values;  // as typed
};

GridText parse(std::string_view text) {
  const auto check = [&](bool fits) {
    CHECK(fits, "--grid: '{}'; must be paper, or a setting with its values, such as initial_gain=0.5,0.7,0.95",
          printable(text, 100));
  };
  const std::size_t equals = text.find('=');
  check(equals != std::string_view::npos && equals > 0);
  GridText grid{std::string(text.substr(0, equals)), {}};
  std::ranges::replace(grid.key, '-', '_');
  for (std::size_t begin = equals + 1; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    grid.values.emplace_back(text.substr(begin, end - begin));
    check(!grid.values.back().empty());
    begin = end + 1;
  }
  check(!grid.values.empty());
  return grid;
}

/// The value of a setting in all settings of a run with this change.
Json value_in(const recommend::Settings& run, const Json& change, const std::string& key, const std::string& where) {
  recommend::check_settings(change, where, *run.backbone);
  Json all = Json(recommend::to_json(run));
  all.update(change);
  return Json(recommend::to_json(recommend::settings_of(all, where, *run.backbone))).at(key);
}

void check_arms_read(const std::string& key, const std::vector<std::string>& arms, const recommend::Settings& run) {
  for (const std::string& arm : arms) {
    const std::string reason = recommend::why_idle(run, arm, key);
    CHECK(reason.empty(),
          "--grid {}: changes nothing in arm {}, because {}; train this arm in another call into the same folder, "
          "without --grid",
          key, arm, reason);
  }
}

void add(Grid& grid, const GridText& text, const std::vector<std::string>& arms, const recommend::Settings& run) {
  const Json own = Json(recommend::to_json(run));
  for (const std::string& typed : text.values) {
    const std::string where = "--grid " + printable(text.key, 60);
    const Json value = value_in(run, {{text.key, knob_value(typed)}}, text.key, where);
    const std::string shown = short_text(value);
    if (text.values.front() == typed) check_arms_read(text.key, arms, run);
    const std::string name = text.key + "-" + shown, own_setting = text.key + " " + shown;
    CHECK(std::ranges::count(grid.variants, name, &recommend::Variant::name) == 0 &&
              std::ranges::count(grid.own_settings, own_setting) == 0,
          "{}: {} stands twice", where, shown);
    if (value == own.at(text.key))
      grid.own_settings.push_back(own_setting);
    else
      grid.variants.push_back({name, {{text.key, value}}});
  }
}

}  // namespace

Grid parse_grid(const std::vector<std::string>& texts, const std::vector<std::string>& arms,
                const recommend::Settings& run) {
  Grid grid;
  for (const std::string& text : texts) {
    if (text == "paper") {
      for (const std::string_view knob : paper_grid) add(grid, parse(knob), arms, run);
    } else {
      add(grid, parse(text), arms, run);
    }
  }
  return grid;
}

}  // namespace gainlens::cli
