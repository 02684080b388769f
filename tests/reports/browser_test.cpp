// The pages in Chromium: what a reader points at, chooses, sorts and prints.

#include "support/browser.h"
#include "reports/look/look_report.h"

#include "analyses/synthetic_run.h"
#include "core/atomic_file.h"
#include "reports/figures/plot_script.h"
#include "reports/gate_arms/gate_arms_report.h"
#include "reports/interventions/interventions_report.h"
#include "reports/page/embedded_data.h"
#include "reports/page/page_style.h"
#include "reports/page/paper_table.h"
#include "reports/recommend/compare_report.h"
#include "reports/report_testing.h"
#include "reports/sweep/sweep_report.h"
#include "reports/words/numbers.h"
#include "runfile/made_recommend_run.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

namespace gainlens::reports {
namespace browser_test {

using gainlens::testing::CellKey;
using gainlens::testing::in_browser;
using gainlens::testing::planted;
using gainlens::testing::printed_page;
using gainlens::testing::replaced;
using gainlens::testing::report_run;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Everything a token must not be: markup, escapes for a terminal, another direction of writing, a second line.
const std::string hostile = "</script><img src=x onerror='hacked=1'>\x1b[31m\u202Eabc\n";

/// The run of these tests; its second sink has a hostile text.
SyntheticRun run_to_explore() {
  SyntheticRun run = report_run();
  run.text = [](const runfile::ShardKey&, std::int64_t) { return hostile; };
  return run;
}

std::string page_of(const SyntheticRun& run) {
  const TemporaryFolder folder;
  write_report(write_run(folder.path() / "run", run), folder.path() / "out", {}, {.style = {.formats = {"svg"}}});
  return read_text_file(folder.path() / "out" / "report.html");
}

const std::string& explored_page() {
  static const std::string page = page_of(run_to_explore());
  return page;
}

/// Of a script that did nothing wrong.
void expect_quiet(const Json& results) {
  EXPECT_TRUE(results.at("failure").is_null()) << results.at("failure");
  EXPECT_EQ(results.at("errors").size(), 0u) << results.at("errors");
  EXPECT_EQ(results.at("refused"), 0);
}

/// A mean over the chunks of the run as the page says it: six digits of a float32.
std::string said(std::string_view name, std::int64_t length, std::int64_t layer, std::int64_t head) {
  const SyntheticRun run = run_to_explore();
  double sum = 0;
  for (std::int64_t sample = 0; sample < run.samples; ++sample)
    sum += planted(run, {fmt::format("summary/{}", name), length, sample, layer, head, 0});
  return fmt::format("{:.6g}", static_cast<float>(sum / static_cast<double>(run.samples)));
}

TEST(Browser, PointingReadsTheNumbersOfTheRun) {
  const Json results = in_browser(explored_page(), R"js(
    const [map, scatter] = document.querySelectorAll('#explore-section canvas');
    results.labels = [map.ariaLabel, scatter.ariaLabel];
    const line = map.nextElementSibling;
    const all = new Set();
    for (let y = 1; y < map.clientHeight; y += 5) {
      for (let x = 1; x < map.clientWidth; x += 9) {
        move(map, x, y);
        all.add(line.textContent);
      }
    }
    results.map = [...all];
    move(map, 0, 0, 'pointerleave');
    results.left = line.textContent;
    const dots = new Set();
    for (let y = 1; y < scatter.clientHeight; y += 4) {
      for (let x = 1; x < scatter.clientWidth; x += 4) {
        move(scatter, x, y);
        dots.add(scatter.nextElementSibling.textContent);
      }
    }
    results.scatter = [...dots];
  )js");
  expect_quiet(results);
  EXPECT_EQ(results.at("map").size(), 7u) << results.at("map");  // six heads, and the hint between them
  EXPECT_EQ(results.at("scatter").size(), 7u) << results.at("scatter");
  const std::string map = results.at("map").dump(), scatter = results.at("scatter").dump();
  for (std::int64_t layer = 0; layer < 3; ++layer) {
    for (std::int64_t head = 0; head < 2; ++head) {
      EXPECT_THAT(map, HasSubstr(fmt::format("Layer {}, head {} (global): n_eff {} keys at 128.", layer, head,
                                             said("n_eff", 128, layer, head))));
      EXPECT_THAT(scatter,
                  HasSubstr(fmt::format("Layer {}, head {} (global): BOS mass {}, K (last-quarter) {}.", layer, head,
                                        said("bos_mass", 128, layer, head), said("kalman_gain", 128, layer, head))));
    }
  }
  EXPECT_THAT(results.at("left").get<std::string>(), HasSubstr("Point at a cell"));
  EXPECT_THAT(results.at("labels").at(0).get<std::string>(), HasSubstr("n_eff of each head at 128 tokens"));
  EXPECT_THAT(results.at("labels").at(1).get<std::string>(), HasSubstr("K (last-quarter) against BOS mass"));
}

TEST(Browser, ChoosingShowsAnotherQuantityLengthAndHead) {
  const Json results = in_browser(explored_page(), R"js(
    const section = document.getElementById('explore-section');
    const select = (name) => [...section.querySelectorAll('label')].find((label) => label.textContent.startsWith(name + ' '))
      .querySelector('select');
    const choose = (name, text) => {
      const node = select(name);
      node.value = [...node.options].find((option) => option.text === text).value;
      node.dispatchEvent(new Event('change'));
    };
    choose('Quantity', 'entropy');
    choose('Length', '64');
    const map = section.querySelector('canvas');
    const press = (key, node = map) => node.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
    const line = map.nextElementSibling;
    press('Home');
    results.home = line.textContent;
    press('ArrowUp');
    press('ArrowRight');
    press('ArrowRight');
    results.moved = line.textContent;
    press('Enter');
    results.title = section.querySelector('h3').textContent;
    results.hash = location.hash;
    results.layer = select('Layer').value;
    const table = (caption) => [...section.querySelectorAll('.head table')]
      .find((table) => table.caption.textContent.includes(caption));
    const rows = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    results.statistics = rows(table('Every statistic'));
    choose('Layer', '1');
    choose('Head', '0');
    results.sinks = rows(table('sink mass'));
    results.images = document.images.length;
    results.hacked = typeof hacked;
    location.hash = '#head-2.1';
    await until(() => section.querySelector('h3').textContent.startsWith('Layer 2, head 1'));
    location.hash = '#head-9.9';
    const scatter = section.querySelectorAll('canvas')[1];
    choose('x', 'n_eff');
    press('ArrowRight', scatter);
    results.dot = scatter.nextElementSibling.textContent;
    results.silent = [...section.querySelectorAll('select')].filter((node) => !node.labels.length).length;
    results.canvases = [...section.querySelectorAll('canvas')]
      .filter((node) => !node.ariaLabel || !['img', 'application'].includes(node.role)).length;
    results.lines = [...section.querySelectorAll('[role=status]')].length;
  )js");
  expect_quiet(results);
  EXPECT_EQ(results.at("home"),
            fmt::format("Layer 0, head 0 (global): entropy {} nats at 64.", said("entropy", 64, 0, 0)));
  EXPECT_EQ(results.at("moved"),
            fmt::format("Layer 1, head 1 (global): entropy {} nats at 64.", said("entropy", 64, 1, 1)));
  EXPECT_EQ(results.at("title"), "Layer 1, head 1 (global)");
  EXPECT_EQ(results.at("hash"), "#head-1.1");
  EXPECT_EQ(results.at("layer"), "1");
  const Json& statistics = results.at("statistics");
  EXPECT_EQ(statistics.at(0), (Json{"statistic", "64", "128", "rank at 64"}));
  EXPECT_GT(statistics.size(), 20u);
  EXPECT_EQ(statistics.at(1).at(0), "n_eff, keys");
  EXPECT_EQ(statistics.at(1).at(1), said("n_eff", 64, 1, 1));
  EXPECT_EQ(statistics.at(1).at(2), said("n_eff", 128, 1, 1));
  int above = 1;
  for (std::int64_t layer = 0; layer < 3; ++layer) {
    for (std::int64_t head = 0; head < 2; ++head)
      above += std::stod(said("n_eff", 64, layer, head)) > std::stod(said("n_eff", 64, 1, 1)) ? 1 : 0;
  }
  EXPECT_EQ(statistics.at(1).at(3), std::to_string(above));

  const Json& sinks = results.at("sinks");
  EXPECT_EQ(sinks.at(0), (Json{"token", "positions", "mass", "chunks"}));
  EXPECT_EQ(sinks.at(1).at(1), "0");
  EXPECT_THAT(sinks.at(1).at(0).get<std::string>(), HasSubstr("</script><img src=x onerror='hacked=1'>"));
  EXPECT_THAT(sinks.at(1).at(0).get<std::string>(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(sinks.at(1).at(0).get<std::string>(), Not(HasSubstr("\u202E")));
  EXPECT_EQ(sinks.at(1).at(3), "2");
  EXPECT_EQ(results.at("images"), 0);
  EXPECT_EQ(results.at("hacked"), "undefined");

  EXPECT_THAT(results.at("dot").get<std::string>(), HasSubstr(": n_eff "));
  EXPECT_EQ(results.at("silent"), 0);
  EXPECT_EQ(results.at("canvases"), 0);
  EXPECT_GE(results.at("lines"), 3);
}

TEST(Browser, RunsAreChosenAndAddressedByTheirNumbers) {
  const TemporaryFolder folder;
  SyntheticRun other = gainlens::testing::other_model(report_run());
  other.lengths = {64};
  other.first_layer = 5;
  const auto first = write_run(folder.path() / "a", report_run()), second = write_run(folder.path() / "b", other);
  const std::vector<RunInput> runs = {{"plain", first}, {"<b>", second}};
  write_report(runs, folder.path() / "out", {}, {.style = {.formats = {"svg"}}});
  const Json results = in_browser(read_text_file(folder.path() / "out" / "report.html"), R"js(
    const section = document.getElementById('explore-section');
    const text = (label) => [...section.querySelectorAll('label')].find((node) => node.textContent.startsWith(label))
      .querySelector('select').selectedOptions[0].text;
    results.first = [text('Run'), text('Length'), text('Layer')];
    location.hash = '#run-2-head-6.1';
    await until(() => text('Run') !== 'plain');
    results.second = [text('Run'), text('Length'), text('Layer'), text('Head')];
    results.title = section.querySelector('h3').textContent;
    location.hash = '#run-1-head-2.0';
    await until(() => text('Run') === 'plain');
    results.back = section.querySelector('h3').textContent;
  )js");
  expect_quiet(results);
  EXPECT_EQ(results.at("first"), (Json{"plain", "128", "1"}));  // the head with most BOS mass
  EXPECT_EQ(results.at("second"), (Json{"<b>", "64", "6", "1"}));
  EXPECT_EQ(results.at("title"), "Layer 6, head 1 (global)");
  EXPECT_EQ(results.at("back"), "Layer 2, head 0 (global)");
}

TEST(Browser, TablesAreSortedWithinTheirGroups) {
  const PaperTable table{"t",
                         "Caption.",
                         {{"name", true}, {"x"}, {"p"}},
                         {{"b2", "10", "<0.01"},
                          {"b10", "9.5", "0.2 [0.1, 0.3]"},
                          {"a", "–", "0.05"},
                          {"second"},
                          {"d", "4k", "1e-5"},
                          {"c", "-3", "–"}}};
  const std::string page = page_head("t") + html_table(table, 1) + page_end();
  const Json results = in_browser(page, R"js(
    const table = document.querySelector('table');
    const names = () => [...table.tBodies[0].rows].map((row) => row.cells[0].textContent).join(' ');
    const buttons = [...table.querySelectorAll('thead th > button')];
    const click = (column) => {
      buttons[column].click();
      return names() + ' ' + buttons.map((button) => button.parentNode.getAttribute('aria-sort') || '-').join('');
    };
    results.buttons = buttons.length;
    results.orders = [names(), click(1), click(1), click(1), click(0), click(2), click(0)];
  )js");
  expect_quiet(results);
  EXPECT_EQ(results.at("buttons"), 3);
  EXPECT_THAT(results.at("orders").get<std::vector<std::string>>(),
              ElementsAre("b2 b10 a second d c", "b10 b2 a second c d -ascending-", "b2 b10 a second d c -descending-",
                          "b2 b10 a second d c ---", "a b2 b10 second c d ascending--",
                          "b2 a b10 second d c --ascending", "a b2 b10 second c d ascending--"));
}

TEST(Browser, DarkGroundsHaveLightInk) {
  const std::string script = R"js(
    results.ground = getComputedStyle(document.body).backgroundColor;
    const canvas = document.querySelectorAll('#explore-section canvas')[1];
    const pen = canvas.getContext('2d');
    const bytes = pen.getImageData(0, 0, 46, canvas.height).data;  // the numbers beside the axis
    let sum = 0, count = 0;
    for (let i = 0; i < bytes.length; i += 4) {
      if (bytes[i + 3] < 200) continue;
      sum += bytes[i];
      ++count;
    }
    results.ink = sum / count;
  )js";
  const Json light = in_browser(explored_page(), script),
             dark = in_browser(explored_page(), script, {"--blink-settings=preferredColorScheme=0"});
  expect_quiet(light);
  expect_quiet(dark);
  EXPECT_EQ(light.at("ground"), "rgb(255, 255, 255)");
  EXPECT_EQ(dark.at("ground"), "rgb(20, 24, 28)");
  EXPECT_LT(light.at("ink").get<double>(), 128);
  EXPECT_GT(dark.at("ink").get<double>(), 128);
}

/// Pages of a PDF.
std::size_t pages(const std::string& pdf) {
  std::size_t n = 0;
  for (auto at = pdf.find("/Type /Page\n"); at != std::string::npos; at = pdf.find("/Type /Page\n", at + 1)) ++n;
  return n;
}

TEST(Browser, PrintIsThatOfThePageWithoutScript) {
  const std::string& page = explored_page();
  const auto script = page.find("<script>" + std::string(page_script()));
  ASSERT_NE(script, std::string::npos);
  const std::string still = page.substr(0, script) + "</body>\n</html>\n";
  const std::size_t printed = pages(printed_page(page));
  EXPECT_GT(printed, 3u);
  EXPECT_EQ(printed, pages(printed_page(still)));
  // The rules for print, held on the screen: what the script filled is gone, the tables are there.
  const std::string held = replaced(replaced(page, "@media screen", "@media speech"), "@media print", "@media screen");
  const Json results = in_browser(held, R"js(
    results.filled = !document.getElementById('explore-section').hidden;
    results.section = document.getElementById('explore-section').getClientRects().length;
    results.tables = [...document.querySelectorAll('section:not(.scripted) table')]
      .filter((table) => !table.closest('details') && !table.getClientRects().length).length;
    results.shown = [...document.querySelectorAll('section:not(.scripted) table')]
      .filter((table) => table.getClientRects().length).length;
    results.figures = document.querySelectorAll('figure svg').length;
  )js");
  expect_quiet(results);
  EXPECT_EQ(results.at("filled"), true);
  EXPECT_EQ(results.at("section"), 0);
  EXPECT_EQ(results.at("tables"), 0);
  EXPECT_GT(results.at("shown"), 5);
  EXPECT_GT(results.at("figures"), 5);
}

TEST(Browser, AHundredThousandHeadsArePointedAt) {
  constexpr std::size_t layers = 1000, heads = 100, all = layers * heads;
  EmbeddedData data;
  std::vector<double> x(all), y(all), number(layers);
  for (std::size_t i = 0; i < all; ++i) {
    x[i] = std::fmod(static_cast<double>(i) * 0.754877666, 1.0);  // evenly over the unit square
    y[i] = std::fmod(static_cast<double>(i) * 0.569840296, 1.0);
  }
  x[12345] = y[12345] = 2;  // alone in its corner
  x[0] = y[0] = 0;
  const auto quantity = [&](const char* name, const std::vector<double>& values) {
    return OrderedJson{{"name", name},      {"label", name},     {"unit", ""},
                       {"over", "queries"}, {"meaning", "made"}, {"at", data.add(values)}};
  };
  std::vector<std::int64_t> numbers(layers);
  for (std::size_t i = 0; i < layers; ++i) numbers[i] = static_cast<std::int64_t>(i);
  OrderedJson run = {{"label", ""},
                     {"layers", numbers},
                     {"heads", heads},
                     {"attention", std::vector<std::string>(layers, "global")},
                     {"sinks_reason", "None."}};
  const OrderedJson length = {{"tokens", 64}, {"label", "64"}, {"chunks", 1}, {"hidden", OrderedJson::array()}};
  run["lengths"] = OrderedJson::array({length});
  run["quantities"] = OrderedJson::array({quantity("x", x), quantity("y", y)});
  data.words["colours"] = viridis_colours();
  data.words["scatters"] = OrderedJson::array({OrderedJson::array({"x", "y"})});
  data.words["runs"] = OrderedJson::array({run});
  const std::string page = page_head("t") + "<section class=\"scripted\" hidden>" + embedded_part("explore", data) +
                           "</section>" + page_end();
  const Json results = in_browser(page, R"js(
    const scatter = document.querySelectorAll('canvas')[1];
    const [wide, high] = [scatter.clientWidth, scatter.clientHeight];
    const at = (x, y) => {
      move(scatter, x, y);
      return scatter.nextElementSibling.textContent;
    };
    results.corner = at(wide - 16, 26);
    results.dots = [];
    // Places of values 0 to 2 between the ends of the axes.
    for (let i = 0; i < 400; ++i) {
      const [x, y] = [0.05 + (i % 20) * 0.045, 0.05 + Math.floor(i / 20) * 0.045];
      const said = at(52 + x / 2 * (wide - 68), high - 40 - y / 2 * (high - 66));
      const found = /: x ([\d.e-]+), y ([\d.e-]+)\.$/.exec(said);
      results.dots.push(found ? Math.max(Math.abs(found[1] - x), Math.abs(found[2] - y)) : 9);
    }
    results.nothing = at(wide / 2 + 100, 100);
    const map = document.querySelector('canvas');
    results.drawn = scatter.getContext('2d').getImageData(60, high - 60, 1, 1).data[3];
  )js");
  expect_quiet(results);
  EXPECT_EQ(results.at("corner"), "Layer 123, head 45 (global): x 2, y 2.");
  // A pixel is 0.005 wide, and a hundred thousand dots leave no place farther than that from one of them.
  double farthest = 0;
  for (const Json& far : results.at("dots")) farthest = std::max(farthest, far.get<double>());
  EXPECT_LT(farthest, 0.02);
  EXPECT_THAT(results.at("nothing").get<std::string>(), HasSubstr("Point at a dot"));
  EXPECT_GT(results.at("drawn"), 0);
}

TEST(Browser, AQueryColoursItsTokensAndTheirTextsAreTexts) {
  const double none = -1;
  const TokenStrip strip{{"<s>", hostile, " the", "\xff\xfe"},
                         {4, 7},
                         1,
                         2,
                         {0, none, 0, 1, 1, 0, 2, 3, 0, none, 0, none, 0, none, 1, none},
                         {1, 0, 0.75, 0.25, 0.5, 0.125, 0.5, 0.25, 1, 0, 1, 0, 1, 0, 0.625, 0}};
  const std::string page = page_head("t") + token_strip(strip) + page_end();
  const Json results = in_browser(page, R"js(
    const buttons = [...document.querySelectorAll('button.token')];
    const line = document.querySelector('[role=status]');
    const alpha = (button) => /(?:\/ |, )([\d.]+)\)/.exec(getComputedStyle(button).backgroundColor)?.[1] ?? '1';
    results.texts = buttons.map((button) => button.textContent);
    results.images = document.images.length;
    results.hacked = typeof hacked;
    results.last = line.textContent;
    move(buttons[1], 1, 1, 'pointerenter');
    results.pointed = line.textContent;
    results.colours = buttons.map((button) => +(+alpha(button)).toFixed(3));
    results.pressed = buttons.map((button) => button.getAttribute('aria-pressed')).join(' ');
    buttons[1].focus();
    buttons[1].dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
    results.stepped = [line.textContent, buttons.indexOf(document.activeElement)];
    results.stops = buttons.filter((button) => button.tabIndex === 0).length;
    const layer = document.querySelector('select');
    layer.value = 1;
    layer.dispatchEvent(new Event('change'));
    document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'End', bubbles: true}));
    results.other = line.textContent;
  )js");
  expect_quiet(results);
  const std::string seen = "</script><img src=x onerror='hacked=1'>\\u001b[31m\\u202eabc↵";
  EXPECT_THAT(results.at("texts").get<std::vector<std::string>>(), ElementsAre("<s>", seen, " the", "\uFFFD\uFFFD"));
  EXPECT_EQ(results.at("images"), 0);
  EXPECT_EQ(results.at("hacked"), "undefined");
  EXPECT_THAT(results.at("last").get<std::string>(),
              HasSubstr("Layer 4, head 0: query 3 “\uFFFD\uFFFD” puts 0.5 on 2 “ the”"));
  EXPECT_EQ(results.at("pointed"),
            fmt::format("Layer 4, head 0: query 1 “{0}” puts 0.75 on 0 “<s>”, 0.25 on 1 “{0}”.", seen));
  EXPECT_EQ(results.at("colours"), (Json{0.52, 0.3, 0.0, 0.0}));
  EXPECT_EQ(results.at("pressed"), "false true false false");
  EXPECT_EQ(results.at("stepped").at(0),
            fmt::format("Layer 4, head 0: query 2 “ the” puts 0.5 on 1 “{}”, 0.125 on 0 “<s>”.", seen));
  EXPECT_EQ(results.at("stepped").at(1), 2);
  EXPECT_EQ(results.at("stops"), 1);
  EXPECT_EQ(results.at("other"), fmt::format("Layer 7, head 0: query 3 “\uFFFD\uFFFD” puts 0.625 on 1 “{}”.", seen));
}

/// Zeroing each head of layers 0 and 2, but for head 1 of layer 2.
analyses::InterventionEffects effects_to_explore() {
  analyses::InterventionEffects effects{2, 3.25, {}};
  const auto add = [&](int layer, int head, double delta, double low, const char* value = "zero") {
    const std::string name = fmt::format("blocks.{}.attn.hook_z[head={}]={}", layer, head, value);
    effects.arms.push_back(
        {{name, 3.25 + delta, delta, analyses::Interval{low, 0.5}, 12, 0, 1.0, 2}, std::nullopt, "one head alone"});
  };
  add(0, 0, 0.125, 0.0625);
  add(0, 1, -0.0312, -0.25);
  add(2, 0, 0.375, 0.25);
  add(0, 0, 1, 0.5, "mean");
  add(0, 1, 2, 0.5, "mean");
  effects.arms[0].control = analyses::ArmEffect{"c", 3.2, 0.0125, analyses::Interval{-1, 1}, 12, 0, 1.0, 2};
  effects.arms[4].arm.documents_changed = 0;
  return effects;
}

std::string page_of(const analyses::InterventionEffects& effects) {
  const TemporaryFolder folder;
  write_interventions_report({&effects, "2 documents"}, folder.path() / "out", {.style = {.formats = {"svg"}}});
  return read_text_file(folder.path() / "out" / "report.html");
}

TEST(Browser, MapsOfInterventionsSayTheNumbersOfACell) {
  const Json results = in_browser(page_of(effects_to_explore()), R"js(
    const section = document.getElementById('explore-section');
    const all = new Set();
    const map = section.querySelector('canvas');
    const line = map.nextElementSibling;
    for (let y = 1; y < map.clientHeight; y += 5) {
      for (let x = 1; x < map.clientWidth; x += 9) {
        move(map, x, y);
        all.add(line.textContent);
      }
    }
    results.said = [...all];
    const press = (key, node) => {
      node.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
      return node.nextElementSibling.textContent;
    };
    move(map, 0, 0, 'pointerleave');
    results.first = press('ArrowLeft', map);  // begins at the largest
    results.entered = press('Enter', map);
    results.below = press('ArrowDown', map);
    results.label = map.ariaLabel;
    results.role = [map.getAttribute('role'), map.tabIndex, line.getAttribute('role')];
    // Colours of layer 0's first cell, of the cell that was not measured, and of the largest.
    const colour = (node, x, y) => [...node.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3).join();
    const [wide, high] = [map.clientWidth, map.clientHeight];
    results.colours = [colour(map, wide - 10, 15), colour(map, 40, 15)];
    const select = section.querySelector('select');
    results.maps = [...select.options].map((option) => option.text);
    select.value = 1;
    select.dispatchEvent(new Event('change'));
    const other = section.querySelector('canvas');
    results.hint = other.nextElementSibling.textContent;
    results.end = press('End', other);
    results.hash = location.hash;
  )js");
  expect_quiet(results);
  EXPECT_EQ(results.at("said").size(), 5u) << results.at("said");
  EXPECT_THAT(results.at("said").get<std::vector<std::string>>(),
              ::testing::UnorderedElementsAre(
                  "Point at a cell, or use the arrow keys.",
                  "Layer 0, head 0: change of the loss +0.1250 nats; 95% [+0.0625, +0.5000]; control's change +0.0125. "
                  "blocks.0.attn.hook_z[head=0]=zero.",
                  "Layer 0, head 1: change of the loss -0.0312 nats; 95% [-0.2500, +0.5000]; no control: one head "
                  "alone. blocks.0.attn.hook_z[head=1]=zero.",
                  "Layer 2, head 0: change of the loss +0.3750 nats; 95% [+0.2500, +0.5000]; no control: one head "
                  "alone. blocks.2.attn.hook_z[head=0]=zero.",
                  "Layer 2, head 1: not measured."));
  EXPECT_THAT(results.at("first").get<std::string>(), HasSubstr("Layer 2, head 0: change of the loss +0.3750"));
  EXPECT_EQ(results.at("entered"), results.at("first"));  // there is nothing to open
  EXPECT_THAT(results.at("below").get<std::string>(), HasSubstr("Layer 0, head 0: "));
  EXPECT_EQ(results.at("label"), "attn.hook_z = zero; rows from below");
  EXPECT_EQ(results.at("role"), (Json{"application", 0, "status"}));
  EXPECT_EQ(results.at("colours").at(0), "208,215,222");  // grey
  EXPECT_EQ(results.at("maps"), (Json{"attn.hook_z = zero", "attn.hook_z = mean"}));
  EXPECT_EQ(results.at("hint"), "Point at a cell, or use the arrow keys.");
  EXPECT_EQ(results.at("end"),
            "Layer 0, head 1: change of the loss +2.0000 nats; it changes nothing; no control: one head alone. "
            "blocks.0.attn.hook_z[head=1]=mean.");
  EXPECT_EQ(results.at("hash"), "");
}

/// Points everywhere on the first map of the section "Explore", and goes over it by keys.
constexpr const char* explore_map = R"js(
    const section = document.getElementById('explore-section');
    const map = section.querySelector('canvas');
    const line = map.nextElementSibling;
    const all = new Set();
    for (let y = 1; y < map.clientHeight; y += 5) {
      for (let x = 1; x < map.clientWidth; x += 9) {
        move(map, x, y);
        all.add(line.textContent);
      }
    }
    results.said = [...all];
    move(map, 0, 0, 'pointerleave');
    results.keys = ['ArrowLeft', 'ArrowDown', 'ArrowUp', 'Home', 'End'].map((key) => {
      map.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
      return line.textContent;
    });
    results.label = map.ariaLabel;
    results.maps = [...section.querySelectorAll('option')].map((option) => option.text);
  )js";

TEST(Browser, MapsOfGateArmsSayTheNumbersOfAnArm) {
  runfile::GateArmsRun run;
  run.arms = {"native", "constant", "gain", "one"};
  run.contexts = {1024, 2048};
  run.trained_length = 1024;
  run.gated = true;
  run.calibration = {{0, 0, 0.9, 0.25, 2.0, 0.25, 1.0}};
  const double changes[4][2] = {{0, 0}, {0.02, 0.0}, {0.002, -0.03}, {1, 1}};
  for (int arm = 0; arm < 4; ++arm) {
    auto& documents = run.readings.emplace_back();
    for (int document = 0; document < 12; ++document) {
      const double noise = arm == 0 ? 0 : 0.001 * ((document * (7 + arm)) % 11 - 5);
      auto& readings = documents.emplace_back();
      for (const double change : changes[arm])
        readings.push_back({4 + 0.01 * document + change + noise, 0.5, 0.125, 9.5});
    }
  }
  const analyses::GateArmEffects effects = analyses::gate_arm_effects(run, 0);
  const TemporaryFolder folder;
  write_gate_arms_report(effects, "12 documents", folder.path() / "out");
  const std::string page = read_text_file(folder.path() / "out" / "report.html");
  const Json results = in_browser(page, std::string(explore_map) + R"js(
    const table = [...document.querySelectorAll('table')].find((one) => one.caption.textContent.includes('each arm'));
    results.sorts = table.querySelectorAll('button.sort').length;
  )js");
  expect_quiet(results);
  EXPECT_EQ(results.at("said").size(), 5u) << results.at("said");  // two arms, two contexts, the hint
  const auto expected = [&](std::size_t arm, std::size_t context) {
    const analyses::ArmInContext& one = effects.arms[arm].contexts[context];
    return fmt::format(
        "{} at {}: loss {:.4f}, {:+.4f} from native; 95% [{:+.4f}, {:+.4f}]; mean gate 0.500, BOS mass "
        "0.125, n_eff 9.5.",
        run.arms[arm], context == 0 ? "1k" : "2k", one.nll, one.to_native->mean, one.to_native->interval->low,
        one.to_native->interval->high);
  };
  for (const std::size_t arm : {1U, 2U})
    for (const std::size_t context : {0U, 1U})
      EXPECT_THAT(results.at("said").dump(), HasSubstr(expected(arm, context)));
  // By keys from the largest change, gain at 2k, which is the lower row.
  EXPECT_EQ(results.at("keys"), (Json{expected(2, 1), expected(2, 1), expected(1, 1), expected(2, 0), expected(1, 1)}));
  EXPECT_EQ(results.at("label"), "change of the loss; rows from below");
  EXPECT_EQ(results.at("maps"), (Json{"change of the loss", "change of the loss with K, or 1, as the gate"}));
  EXPECT_EQ(results.at("sorts"), 10);
}

TEST(Browser, TheMapOfACompareReportSaysTheNumbersOfAMetric) {
  gainlens::testing::MadeRecommender made;
  made.arms = {"plain", "bft", hostile};
  made.seeds = {0, 1, 2};
  const auto shared = std::make_shared<const runfile::RecommendRun>(gainlens::testing::made_recommend_run(made));
  std::vector<analyses::RecommenderArm> arms;
  for (std::size_t arm = 0; arm < 3; ++arm) arms.push_back({"run", shared, arm});
  analyses::name_arms(arms);
  analyses::RecommenderOptions options;
  options.resamples.count = 50;
  std::vector<analyses::ArmComparison> comparisons;
  for (const std::size_t arm : {1U, 2U}) comparisons.push_back(analyses::compare_arms({arms[0], arms[arm]}, options));
  const TemporaryFolder folder;
  write_compare_report(comparisons, {}, folder.path() / "out");
  const Json results =
      in_browser(read_text_file(folder.path() / "out" / "report.html"), std::string(explore_map) + R"js(
    results.images = document.images.length;
    results.hacked = typeof hacked;
  )js");
  expect_quiet(results);
  EXPECT_EQ(results.at("said").size(), 7u) << results.at("said");  // two comparisons, three metrics, the hint
  const std::string all = results.at("said").dump();
  for (const char* metric : {"HR@10", "NDCG@10", "MRR"})
    EXPECT_THAT(all, HasSubstr(fmt::format("bft against plain on made (SASRec), {}: ", metric)));
  const analyses::MetricGain& gain = comparisons[0].metrics[0];
  EXPECT_THAT(all, HasSubstr(fmt::format("Means {} and {}.", shown(gain.seeds.baseline.mean),
                                         shown(gain.seeds.candidate.mean))));
  EXPECT_EQ(results.at("label"), "relative change of the mean; rows from below");
  EXPECT_EQ(results.at("images"), 0);
  EXPECT_EQ(results.at("hacked"), "undefined");
  EXPECT_THAT(all, Not(HasSubstr("\x1b")));
}

TEST(Browser, MapsOfInterventionsAreGoneInPrint) {
  const std::string page = page_of(effects_to_explore());
  const std::string held = replaced(replaced(page, "@media screen", "@media speech"), "@media print", "@media screen");
  const Json results = in_browser(held, R"js(
    const section = document.getElementById('explore-section');
    results.filled = !section.hidden && section.querySelectorAll('canvas').length;
    results.shown = section.getClientRects().length;
    results.figures = document.querySelectorAll('figure svg').length;
  )js");
  expect_quiet(results);
  EXPECT_EQ(results.at("filled"), 1);
  EXPECT_EQ(results.at("shown"), 0);
  EXPECT_EQ(results.at("figures"), 1);
}

TEST(Browser, MapsOfPatchesSayTheirTokensAsText) {
  runfile::PatchingRun run;
  run.request = {{"clean", {{"texts", {"a", hostile}}}}, {"corrupt", {{"texts", {"a", "c"}}}}};
  for (std::int64_t position = 0; position < 2; ++position) {
    run.patches.push_back({"p" + std::to_string(position), "hook_resid_pre", 0, {}, position});
    for (runfile::PatchedPrompt& direction : run.directions)
      direction.effects.push_back({0.25 + 0.5 * static_cast<double>(position), 1, 2, static_cast<double>(position)});
  }
  run.directions[0].other = run.directions[1].base = 1;
  const analyses::PatchingEffects effects = analyses::patching_effects(run);
  const TemporaryFolder folder;
  write_patching_report({&effects}, folder.path() / "out", {.style = {.formats = {"svg"}}});
  const Json results = in_browser(read_text_file(folder.path() / "out" / "report.html"), R"js(
    const select = document.querySelector('#explore-section select');
    results.maps = [...select.options].map((option) => option.text);
    results.said = [];
    for (const map of [0, 1]) {
      select.value = map;
      select.dispatchEvent(new Event('change'));
      const canvas = document.querySelector('#explore-section canvas');
      for (const key of ['Home', 'End']) {
        canvas.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
        results.said.push(canvas.nextElementSibling.textContent);
      }
    }
    results.images = document.images.length;
    results.hacked = typeof hacked;
  )js");
  expect_quiet(results);
  EXPECT_EQ(results.at("maps"),
            (Json{"denoising: hook_resid_pre, by positions", "noising: hook_resid_pre, by positions"}));
  const Json& said = results.at("said");
  EXPECT_THAT(said.at(0).get<std::string>(),
              ::testing::MatchesRegex("Layer 0, position 0 \\(a\\): 0.2500 of the way to the other run; divergence .* "
                                      "0.2500; it changes nothing."));
  EXPECT_THAT(said.at(1).get<std::string>(), HasSubstr("Layer 0, position 1 (clean </script><img"));
  EXPECT_THAT(said.at(1).get<std::string>(), HasSubstr(", corrupt c): 0.7500 of the way to the other run; "));
  EXPECT_THAT(said.at(1).get<std::string>(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(said.at(1).get<std::string>(), Not(HasSubstr("\u202E")));
  EXPECT_THAT(said.at(3).get<std::string>(), HasSubstr("0.2500 of the way"));
  EXPECT_EQ(results.at("images"), 0);
  EXPECT_EQ(results.at("hacked"), "undefined");
}

TEST(Browser, TokensBeginWithTheChosenHeadAndQuery) {
  TokenStrip strip{{"a", "b"}, {4, 7}, 2, 1, {0, 0, 0, 1, 0, 0, 0, 1}, {1, 1, 1, 1, 1, 0.25, 1, 0.75}};
  strip.layer = 1;
  strip.query = 1;
  const auto begins = [&] {
    return in_browser(page_head("t") + token_strip(strip) + page_end(), R"js(
      results.line = document.querySelector('[role=status]').textContent;
      results.chosen = [...document.querySelectorAll('select')].map((select) => select.selectedOptions[0].textContent);
    )js");
  };
  Json results = begins();
  expect_quiet(results);
  EXPECT_EQ(results.at("line"), "Layer 7, head 0: query 1 “b” puts 0.25 on 0 “a”.");
  strip.head = 1;
  results = begins();
  EXPECT_EQ(results.at("line"), "Layer 7, head 1: query 1 “b” puts 0.75 on 1 “b”.");
  EXPECT_EQ(results.at("chosen"), (Json{"7", "1"}));
}

}  // namespace browser_test
}  // namespace gainlens::reports
