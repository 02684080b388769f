#include "reports/attention/attention_report.h"

#include "analyses/crossed_estimate.h"
#include "core/counted.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/section.h"
#include "reports/terminal/attention_terminal.h"
#include "reports/words/numbers.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace gainlens::reports {
namespace {

using analyses::AttentionReading, analyses::GroupedUsers, analyses::Head, analyses::HeadNumber, analyses::SeedEstimate,
    analyses::UserGrouping;

const GroupedUsers& groups_of(SweptArms arms, UserGrouping grouping) {
  return arms.front().reading->groupings[static_cast<std::size_t>(grouping)];
}

/// What the intervals are over, for captions.
std::string interval_words(SweptArms arms) {
  bool crossed = false, fixed = false;
  for (const SweptArm& arm : arms)
    (arm.reading->seeds.size() >= analyses::fewest_crossed_seeds ? crossed : fixed) = true;
  if (arms.front().reading->groups == 0)
    return fmt::format("There are no intervals: fewer than {} users.", analyses::fewest_attention_users);
  if (crossed && fixed)
    return "Intervals (95%) are over users and trainings, and over users alone with fewer than 3 seeds.";
  return crossed ? "Intervals (95%) are over users and trainings."
                 : "Intervals (95%) are over users, with these models.";
}

/// What single heads say if an arm has several seeds; else empty.
std::string seeds_words(SweptArms arms) {
  const bool several = std::ranges::any_of(arms, [](const SweptArm& arm) { return arm.reading->seeds.size() > 1; });
  return several ? " " + std::string(heads_of_seeds) : std::string();
}

/// Numbers that some head of some arm has.
std::vector<std::size_t> known_numbers(SweptArms arms) {
  std::vector<std::size_t> known;
  for (std::size_t i = 0; i < attention_numbers.size(); ++i) {
    if (std::ranges::any_of(arms, [&](const SweptArm& arm) {
          return std::ranges::any_of(arm.reading->heads, [&](const Head& head) { return bool(head.numbers[i]); });
        }))
      known.push_back(i);
  }
  return known;
}

std::string column_heading(const AttentionNumber& number) {
  const bool unit = number.unit != "1" && !number.name.starts_with("n_eff_share");
  return unit ? fmt::format("{} [{}]", number.label, number.unit) : std::string(number.label);
}

/// The first heading, and a heading above the rows of each arm if there are several.
void add_arm(PaperTable& table, SweptArms arms, const SweptArm& arm) {
  if (arms.size() > 1) table.rows.push_back({arm.label()});
}

PaperTable heads_table(SweptArms arms) {
  PaperTable table{"heads",
                   "What each head rests on, at the position that ranks: means over users. Heads are layer.head. " +
                       interval_words(arms) + seeds_words(arms),
                   {{"head", true}},
                   {}};
  const std::vector<std::size_t> known = known_numbers(arms);
  for (const std::size_t number : known) table.columns.push_back({column_heading(attention_numbers[number])});
  for (const SweptArm& arm : arms) {
    add_arm(table, arms, arm);
    for (const Head& head : arm.reading->heads) {
      std::vector<std::string>& row = table.rows.emplace_back(std::vector<std::string>{name_of(head)});
      for (const std::size_t i : known) row.push_back(head.numbers[i] ? mean_in_words(head.numbers[i]->mean) : "–");
    }
  }
  return table;
}

/// The numbers of which correlations are shown on the page; the CSV has all.
constexpr const char* correlated[] = {"n_eff_share", "kalman_gain", "model_gain", "last_mass"};

PaperTable correlations_table(SweptArms arms) {
  PaperTable table{
      "correlations",
      "Spearman correlations over users, of a number of a head with what is known of the user. Those with how often "
      "the last item and the test item stand in training are partial, given the history length. " +
          interval_words(arms),
      {{"head", true}, {"number", true}, {"history length"}, {"last item's count"}, {"test item's count"}},
      {}};
  for (const SweptArm& arm : arms) {
    add_arm(table, arms, arm);
    for (const Head& head : arm.reading->heads) {
      for (const char* name : correlated) {
        const Maybe<HeadNumber>& number = head.number(name);
        if (!number) continue;
        const auto cell = [](const SeedEstimate& one) { return with_signed_interval(one.value, one.interval); };
        table.rows.push_back({name_of(head), std::string(attention_number(name).label), cell(number->rho[0]),
                              cell(number->given_length[1]), cell(number->given_length[2])});
      }
    }
  }
  return table;
}

/// "1: at most 4", "5: 15 or more" of groups whose edges are closed.
std::string group_name(const GroupedUsers& users, std::size_t group, UserGrouping grouping) {
  const auto& edges = users.strata.edges;
  if (edges.empty()) return "all";
  const bool items = grouping == UserGrouping::last_item || grouping == UserGrouping::target_item;
  if (group == 0) return fmt::format("at most {}", edges.front());
  const std::int64_t first = edges[group - 1] + (items ? 0 : 1);  // items of an edge can be on both of its sides
  if (group == edges.size()) return fmt::format("{} or more", first);
  return first == edges[group] ? fmt::format("{}", first) : fmt::format("{} to {}", first, edges[group]);
}

/// Means of each head in the first and the last group, and their difference.
PaperTable groups_table(SweptArms arms) {
  PaperTable table{
      "groups",
      "Heads in the first and the last group of users, and the difference. Quintiles of activity are of users, by the "
      "number of their training items; those of the last item and the test item are of the catalogue, by how often "
      "the item stands in training. " +
          interval_words(arms),
      {{"head", true}, {"number", true}, {"groups", true}, {"first"}, {"last"}, {"difference"}},
      {}};
  struct Named {
    UserGrouping grouping;
    const char* name;
  };
  for (const SweptArm& arm : arms) {
    add_arm(table, arms, arm);
    for (const Head& head : arm.reading->heads) {
      for (const char* name : {"n_eff_share", "kalman_gain", "model_gain"}) {
        const Maybe<HeadNumber>& number = head.number(name);
        if (!number) continue;
        for (const Named& named :
             {Named{UserGrouping::user_activity, "activity"}, Named{UserGrouping::last_item, "last item"},
              Named{UserGrouping::target_item, "test item"}}) {
          const auto place = static_cast<std::size_t>(named.grouping);
          const std::vector<SeedEstimate>& means = number->by[place];
          if (means.size() < 2) continue;
          const SeedEstimate& change = number->change[place];
          table.rows.push_back({name_of(head), std::string(attention_number(name).label), named.name,
                                shown(means.front().value), shown(means.back().value),
                                with_signed_interval(change.value, change.interval)});
        }
      }
    }
  }
  return table;
}

/// Who is in the groups.
PaperTable composition_table(SweptArms arms) {
  PaperTable table{"user-groups",
                   "The groups of users. If the mean history length differs between groups of an item's frequency, "
                   "a difference between them may be that of the length.",
                   {{"groups", true}, {"count", true}, {"users"}, {"mean history length"}, {"mean training count"}},
                   {}};
  const char* const names[] = {"history length", "activity", "last item", "test item"};
  for (std::size_t grouping = 0; grouping < analyses::user_groupings; ++grouping) {
    const GroupedUsers& users = arms.front().reading->groupings[grouping];
    for (std::size_t group = 0; group < users.strata.users.size(); ++group)
      table.rows.push_back({names[grouping], group_name(users, group, static_cast<UserGrouping>(grouping)),
                            fmt::format("{}", users.strata.users[group]), shown(users.mean_length[group]),
                            shown(users.mean_count[group])});
  }
  return table;
}

std::vector<Block> answer_blocks(SweptArms arms) {
  std::vector<Block> blocks;
  for (const SweptArm& arm : arms) {
    if (arms.size() > 1) blocks.push_back(Html{fmt::format("<h3>{}</h3>\n", escape_html(arm.label()))});
    blocks.push_back(list(attention_sentences(*arm.reading)));
  }
  blocks.push_back(heads_table(arms));
  return blocks;
}

std::vector<Block> length_blocks(SweptArms arms) {
  const std::string shows = fmt::format(
      "Means over users in groups by the number of known items ({}); panels are layer.head. {}",
      counted(groups_of(arms, UserGrouping::history_length).strata.users.size(), "group"), interval_words(arms));
  std::vector<Block> blocks = {
      CaptionedFigure{"evidence-by-length",
                      "n_eff and K by history length",
                      {shows, "It shows whether a head rests on more evidence when more is known of the user.",
                       "n_eff cannot exceed the number of keys: that it is larger in longer histories is no choice of "
                       "the head. Read n_eff / keys for that."},
                      attention_figure(arms, "evidence-by-length", UserGrouping::history_length,
                                       {"n_eff", "n_eff_share", "kalman_gain", "model_gain"})},
      CaptionedFigure{
          "masses-by-length",
          "The weight of the first and the last item by history length",
          {shows, "It shows whether a head reads the last item alone, or holds on to the first one as to a sink.",
           "A first item with much weight need not be a sink: in a short history it is one of few."},
          attention_figure(arms, "masses-by-length", UserGrouping::history_length,
                           {"first_mass", "last_mass", "mask_mass"})},
      correlations_table(arms)};
  return blocks;
}

std::vector<Block> frequency_blocks(SweptArms arms) {
  const auto figure = [&](const char* name, const char* title, UserGrouping grouping, const char* item) {
    return CaptionedFigure{
        name,
        title,
        {fmt::format(
             "Means over users whose {} is in each quintile of the catalogue, from rare to frequent; panels are "
             "layer.head. {}",
             item, interval_words(arms)),
         "It shows whether heads rest on other evidence for users of rare items.",
         "Users of rare items may have other lengths of history: the table of correlations holds them equal."},
        attention_figure(arms, name, grouping, {"n_eff_share", "kalman_gain", "model_gain", "last_mass"})};
  };
  return {
      figure("evidence-by-last-item", "By the frequency of the last item", UserGrouping::last_item, "last known item"),
      figure("evidence-by-test-item", "By the frequency of the test item", UserGrouping::target_item, "test item"),
      groups_table(arms), composition_table(arms)};
}

bool ranks_from_mask(SweptArms arms) {
  return bool(arms.front().reading->heads.front().number("mask_mass"));
}

std::vector<Block> run_blocks(SweptArms arms) {
  const runfile::AttentionRun& run = *arms.front().run;
  std::string text = fmt::format(
      "<p>{} on {}: {}. Every number is that of the position from which the model ranks the test item: {}. It sees the "
      "history that is known at the test. {}</p>\n<ul>\n",
      escape_html(printable(backbone_title(run.backbone()), 40)), escape_html(printable(run.data_name(), 60)),
      counted(run.units.size(), "user"),
      ranks_from_mask(arms) ? "the token MASK after the last item" : "the last item of the history",
      escape_html(interval_words(arms)));
  for (const AttentionNumber& number : attention_numbers)
    text += fmt::format("<li>{}: {}</li>\n", to_html(number.label), to_html(number.meaning));
  text += fmt::format(
      "</ul>\n<p>K at prior precision 1 is computed as in a sweep of a language model, so arms and models can be "
      "compared; "
      "it is not what a filter does. K of the model is. Trained seeds: {}. The SHA-256 of the split begins with "
      "<code>{}</code>. All numbers of each user are in <code>run.h5</code>, those of this page in "
      "<code>summary.json</code> and <code>tables/*.csv</code>.</p>\n",
      escape_html([&] {
        std::vector<std::string> arm_seeds;
        for (const SweptArm& arm : arms)
          arm_seeds.push_back(fmt::format("{} {}", arm.label(), fmt::join(arm.reading->seeds, ", ")));
        return fmt::format("{}", fmt::join(arm_seeds, "; "));
      }()),
      escape_html(short_checksum(run.split())));
  return {Html{text}};
}

void add_json(const SweptArm& arm, OrderedJson& summary) {
  summary["user_attention"] = analyses::to_json(*arm.reading);
}

std::vector<CsvTable> tables(const SweptArm& arm) {
  CsvTable means{"user-attention",
                 {"layer", "head", "number", "grouping", "group", "users", "mean_history_length", "mean_training_count",
                  "mean", "low", "high"},
                 {}};
  CsvTable rho{"user-attention-correlations",
               {"layer", "head", "number", "with", "rho", "rho_low", "rho_high", "partial_rho_given_length",
                "partial_low", "partial_high"},
               {}};
  const AttentionReading& reading = *arm.reading;
  for (const Head& head : reading.heads) {
    for (std::size_t i = 0; i < attention_numbers.size(); ++i) {
      if (!head.numbers[i]) continue;
      const HeadNumber& number = *head.numbers[i];
      const auto start = [&](CsvTable& table, std::string_view what) -> std::vector<Cell>& {
        return table.rows.emplace_back(
            std::vector<Cell>{head.layer, head.head, std::string(attention_numbers[i].name), std::string(what)});
      };
      std::vector<Cell>& all = start(means, "all");
      all.insert(all.end(), {empty_cell(), cell(reading.users), empty_cell(), empty_cell(), cell(number.mean.value)});
      append(all, number.mean.interval);
      for (std::size_t grouping = 0; grouping < analyses::user_groupings; ++grouping) {
        const GroupedUsers& users = reading.groupings[grouping];
        for (std::size_t group = 0; group < number.by[grouping].size(); ++group) {
          const SeedEstimate& mean = number.by[grouping][group];
          std::vector<Cell>& row = start(means, analyses::user_grouping_keys[grouping]);
          row.insert(row.end(), {cell(group + 1), users.strata.users[group], users.mean_length[group],
                                 users.mean_count[group], cell(mean.value)});
          append(row, mean.interval);
        }
      }
      for (std::size_t trait = 0; trait < analyses::user_traits; ++trait) {
        std::vector<Cell>& row = start(rho, analyses::user_trait_keys[trait]);
        row.push_back(cell(number.rho[trait].value));
        append(row, number.rho[trait].interval);
        row.push_back(cell(number.given_length[trait].value));
        append(row, number.given_length[trait].interval);
      }
    }
  }
  return {means, rho};
}

const Section<SweptArm> answer_section = {.name = "heads",
                                          .title = "What each head rests on",
                                          .question = "How much evidence is each head's attention based on?",
                                          .files = {"heads", "user-attention", "user-attention-correlations"},
                                          .keys = {"user_attention"},
                                          .blocks = answer_blocks,
                                          .add_json = add_json,
                                          .tables = tables};

const Section<SweptArm> length_section = {.name = "length",
                                          .title = "Short and long histories",
                                          .question = "Does the evidence grow with what is known of a user?",
                                          .files = {"evidence-by-length", "masses-by-length", "correlations"},
                                          .blocks = length_blocks};

const Section<SweptArm> frequency_section = {
    .name = "frequency",
    .title = "Rare and frequent items, cold and warm users",
    .question = "For which users is the evidence small?",
    .files = {"evidence-by-last-item", "evidence-by-test-item", "groups", "user-groups"},
    .blocks = frequency_blocks};

const Section<SweptArm> run_section = {.name = "run",
                                       .title = "What was run, and what the numbers are",
                                       .question = "What is each number?",
                                       .blocks = run_blocks};

}  // namespace

WrittenReport write_attention_report(const runfile::AttentionRun& run, std::span<const AttentionReading> readings,
                                     const std::filesystem::path& out, const Writing& writing) {
  std::vector<SweptArm> arms;
  for (const AttentionReading& reading : readings) arms.push_back({&reading, &run});
  const Section<SweptArm>* const sections[] = {&answer_section, &length_section, &frequency_section, &run_section};
  MadeReport report = make_report<SweptArm>(sections, arms);
  report.title = page_title(printable(backbone_title(run.backbone()), 40), printable(run.data_name(), 60));
  report.header = fmt::format(
      "<header>\n<h1>How much evidence does each head rest on?</h1>\n<p class=\"lead\">The attention of {} on {} when "
      "it ranks for {}: {}.</p>\n</header>\n",
      escape_html(printable(backbone_title(run.backbone()), 40)), escape_html(printable(run.data_name(), 60)),
      counted(run.units.size(), "user"), escape_html([&] {
        std::vector<std::string> names(arms.size());
        std::ranges::transform(arms, names.begin(), &SweptArm::label);
        return fmt::format("{} {}", arms.size() == 1 ? "arm" : "arms", fmt::join(names, ", "));
      }()));
  return write_files(report, out, writing);
}

}  // namespace gainlens::reports
