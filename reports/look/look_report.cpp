#include "reports/look/look_report.h"

#include "core/check.h"
#include "core/counted.h"
#include "reports/page/embedded_data.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/section.h"
#include "reports/terminal/look_terminal.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace gainlens::reports {
namespace {

using Looks = std::span<const ReadLook>;

std::string number(double value, int digits) {
  return std::isnan(value) ? std::string("–") : fmt::format("{:.{}f}", value, digits);
}

std::string next_text(const NextToken& token) {
  return token.text.empty() ? fmt::format("token {}", token.id) : "'" + printable(token.text, 40) + "'";
}

std::string head_name(const LookedHead& head) {
  return fmt::format("{}.{}", head.layer, head.head);
}

std::size_t rank_of(const PromptLook& look, std::int64_t query, std::int64_t rank) {
  return static_cast<std::size_t>(query * look.top_count + rank);
}

std::vector<Block> prompt_blocks(Looks looks) {
  const PromptLook& look = *looks.front().look;
  const std::int64_t length = std::ssize(look.tokens);
  std::vector<Block> blocks;
  if (look.trained_for)
    blocks.push_back(
        paragraph(fmt::format("The model was made for {}: everything on this page is beyond what it was "
                              "trained with.",
                              counted(*look.trained_for, "token"))));
  blocks.push_back(paragraph(fmt::format("{}; {}. The prompt was taken as it is: no chat template was applied.",
                                         counted(length, "token"), look.bos_policy)));
  const std::size_t numbers = look.heads.size() * look.tokens.size() * static_cast<std::size_t>(look.top_count) * 2;
  if (numbers > max_strip_numbers) {
    blocks.push_back(
        absence(fmt::format("No strip of tokens: that of {} and {} would hold {} numbers, and a page holds "
                            "{} at most. The same command with --json prints them all.",
                            counted(length, "token"), counted(look.heads.size(), "head"), numbers, max_strip_numbers)));
  } else {
    TokenStrip strip;
    for (std::int64_t position = 0; position < length; ++position)
      strip.tokens.push_back(look.token_texts.empty() ? position_text(look, position)
                                                      : look.token_texts[static_cast<std::size_t>(position)]);
    for (const LookedHead& head : look.heads) {
      if (strip.layers.empty() || strip.layers.back() != head.layer) strip.layers.push_back(head.layer);
      strip.keys.insert(strip.keys.end(), head.top_keys.begin(), head.top_keys.end());
      for (const float weight : head.top_weights) strip.weights.push_back(std::isnan(weight) ? 0 : weight);
    }
    strip.heads = look.heads.size() / strip.layers.size();
    strip.top = static_cast<std::size_t>(look.top_count);
    strip.query = static_cast<std::size_t>(looks.front().query);
    if (look.query) {
      strip.layer = static_cast<std::size_t>(std::ranges::find(strip.layers, look.query->layer) - strip.layers.begin());
      strip.head = static_cast<std::size_t>(look.query->head);
    }
    blocks.push_back(Html{token_strip(strip)});
  }
  std::string tokens = "<details><summary>The tokens</summary>\n<ol start=\"0\" class=\"tokens\">\n";
  constexpr std::int64_t max_listed = 2000;
  for (std::int64_t position = 0; position < std::min(length, max_listed); ++position)
    tokens += fmt::format("<li>{}</li>\n", escape_html(position_text(look, position)));
  tokens += "</ol>\n";
  if (length > max_listed)
    tokens += fmt::format("<p>{} more are in tables/tokens.csv.</p>\n", counted(length - max_listed, "token"));
  blocks.push_back(Html{tokens + "</details>\n"});
  return blocks;
}

PaperTable next_table(const PromptLook& look) {
  PaperTable table{
      "next", "The most likely next tokens.", {{"token", true, true}, {"id"}, {"logit"}, {"probability"}}, {}};
  for (const NextToken& token : look.next)
    table.rows.push_back({next_text(token), std::to_string(token.id), fmt::format("{:.3f}", token.logit),
                          fmt::format("{:.4f}", token.probability)});
  return table;
}

PaperTable heads_table(const PromptLook& look, std::int64_t query) {
  PaperTable table{"heads",
                   fmt::format("Every head at query {}, {}: its evidence, and the three keys with the most weight.",
                               query, position_text(look, query)),
                   {{"head"}, {"n_eff (keys)"}, {"K"}, {"entropy (nats)"}, {"BOS mass"}, {"keys", true, true}},
                   {}};
  const auto at = static_cast<std::size_t>(query);
  for (const LookedHead& head : look.heads) {
    std::string keys;
    for (std::int64_t rank = 0; rank < std::min<std::int64_t>(3, look.top_count); ++rank) {
      const std::size_t place = rank_of(look, query, rank);
      if (head.top_keys[place] < 0) break;
      keys += fmt::format("{}{} {} {:.2f}", rank == 0 ? "" : ", ", head.top_keys[place],
                          position_text(look, head.top_keys[place]), head.top_weights[place]);
    }
    table.rows.push_back({head_name(head), number(head.n_eff[at], 2), number(head.kalman_gain[at], 3),
                          number(head.entropy[at], 2), number(head.bos_mass[at], 3), keys});
  }
  return table;
}

PaperTable keys_table(const PromptLook& look) {
  PaperTable table{
      "keys",
      fmt::format("Keys that queries look at: mean over heads of the mean weight over the queries that see "
                  "the key, and the heads where it is {} or more.",
                  sink_column),
      {{"position"}, {"token", true, true}, {"mean weight"}, {"heads"}},
      {}};
  for (const SinkKey& key : sink_keys(look))
    table.rows.push_back({std::to_string(key.position), position_text(look, key.position),
                          fmt::format("{:.3f}", key.mean), std::to_string(key.heads)});
  return table;
}

PaperTable query_table(const PromptLook& look) {
  const LookedQuery& query = *look.query;
  PaperTable table{"query",
                   fmt::format("Head {}.{} at query {}, {}: the 24 keys with the most weight.", query.layer, query.head,
                               query.query, position_text(look, query.query)),
                   {{"position"}, {"token", true, true}, {"weight"}},
                   {}};
  std::vector<std::int64_t> order(query.weights.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  const auto weight = [&](std::int64_t key) { return query.weights[static_cast<std::size_t>(key)]; };
  std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) { return weight(a) > weight(b); });
  for (const std::int64_t key : order) {
    if (table.rows.size() == 24 || weight(key) == 0) break;
    table.rows.push_back({std::to_string(key), position_text(look, key), fmt::format("{:.4f}", weight(key))});
  }
  return table;
}

/// A token and its probability stand in cells of their own: scripts that run from the right keep to theirs.
PaperTable lens_table(const PromptLook& look, std::int64_t query) {
  PaperTable table{
      "lens",
      fmt::format("The stream after each layer at query {}, {}, read by the final norm and the output head: entropy of "
                  "its distribution, divergence of the last layer from it, and the most likely next tokens with their "
                  "probabilities.",
                  query, position_text(look, query)),
      {{"layer"}, {"entropy (nats)"}, {"KL to last (nats)"}},
      {}};
  if (look.lens_answer) {
    table.caption += fmt::format(" Rank, logit and probability are those of {}.",
                                 next_text({*look.lens_answer, look.lens_answer_text}));
    for (const char* name : {"rank", "logit", "probability"}) table.columns.push_back({name});
  }
  for (std::size_t rank = 0; rank < look.lens.front().next.size(); ++rank) {
    table.columns.push_back({fmt::format("token {}", rank + 1), true, true});
    table.columns.push_back({"p"});
  }
  for (const LensRow& row : look.lens) {
    if (row.position != query) continue;
    std::vector<std::string>& cells = table.rows.emplace_back();
    cells = {std::to_string(row.layer), fmt::format("{:.3f}", row.entropy), fmt::format("{:.3f}", row.kl_to_last)};
    if (row.answer)
      cells.insert(cells.end(), {std::to_string(row.answer->rank), fmt::format("{:.3f}", row.answer->logit),
                                 fmt::format("{:.4f}", row.answer->probability)});
    for (const NextToken& token : row.next) {
      cells.push_back(next_text(token));
      cells.push_back(fmt::format("{:.3f}", token.probability));
    }
  }
  return table;
}

std::vector<const LogitPart*> by_size(const LogitParts& parts) {
  std::vector<const LogitPart*> order;
  for (const LogitPart& part : parts.parts) order.push_back(&part);
  std::ranges::stable_sort(order, [](const auto* a, const auto* b) { return std::abs(a->value) > std::abs(b->value); });
  return order;
}

PaperTable parts_table(const LogitParts& parts) {
  constexpr std::size_t most = 20;
  const std::vector<const LogitPart*> order = by_size(parts);
  PaperTable table{
      "parts",
      fmt::format("What each part of the stream adds to the logit difference {:+.4f} at the last token, the "
                  "largest first. All {} parts sum to {:+.4f}{}; tables/parts.csv has them.",
                  parts.difference, order.size(), parts.sum, parts.missed.empty() ? "" : " (" + parts.missed + ")"),
      {{"part", true, true}, {"adds"}},
      {}};
  for (std::size_t i = 0; i < std::min(most, order.size()); ++i)
    table.rows.push_back({order[i]->name, fmt::format("{:+.4f}", order[i]->value)});
  if (order.size() <= most) return table;
  double rest = 0;
  for (std::size_t i = most; i < order.size(); ++i) rest += order[i]->value;
  table.rows.push_back({fmt::format("{} more, together", order.size() - most), fmt::format("{:+.4f}", rest)});
  return table;
}

PaperTable segments_table(const PromptLook& look) {
  PaperTable table{"segments",
                   fmt::format("Share of attention on each piece of the prompt: mean over the last {} of each head.",
                               look.segment_queries == 1 ? "query" : counted(look.segment_queries, "query")),
                   {{"head"}},
                   {}};
  for (const PromptSegment& segment : look.segments)
    table.columns.push_back({printable(segment.name, 40), false, true});
  for (const LookedHead& head : look.heads) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(head_name(head));
    for (const double mass : head.segment_mass) row.push_back(fmt::format("{:.3f}", mass));
  }
  return table;
}

std::vector<Block> answer_blocks(Looks looks) {
  const PromptLook& look = *looks.front().look;
  std::vector<Block> blocks{next_table(look)};
  if (!look.lens.empty()) {
    blocks.push_back(
        paragraph("The head was trained on the last stream alone. What it reads in an earlier one is a hint, "
                  "not what the model believes there. Every position that was read is in tables/lens.csv."));
    blocks.push_back(lens_table(look, looks.front().query));
  }
  if (look.parts) {
    blocks.push_back(
        paragraph("A part's share is direct: what it does by way of later layers is theirs. To see what a "
                  "head is worth, take it away: gainlens intervene."));
    if (!look.parts->divided.empty())
      blocks.push_back(paragraph("Heads have no parts of their own: " + look.parts->divided + "."));
    blocks.push_back(parts_table(*look.parts));
  }
  return blocks;
}

std::vector<Block> heads_blocks(Looks looks) {
  const ReadLook& read = looks.front();
  std::vector<Block> blocks{keys_table(*read.look)};
  if (read.look->query) blocks.push_back(query_table(*read.look));
  if (!read.look->segments.empty()) blocks.push_back(segments_table(*read.look));
  blocks.push_back(heads_table(*read.look, read.query));
  return blocks;
}

std::vector<CsvTable> prompt_tables(const ReadLook& read) {
  const PromptLook& look = *read.look;
  CsvTable tokens{"tokens", {"position", "id", "token"}, {}};
  for (std::size_t i = 0; i < look.tokens.size(); ++i)
    tokens.rows.push_back({static_cast<std::int64_t>(i), static_cast<std::int64_t>(look.tokens[i]),
                           look.token_texts.empty() ? std::string() : look.token_texts[i]});
  return {tokens};
}

std::vector<CsvTable> answer_tables(const ReadLook& read) {
  const PromptLook& look = *read.look;
  CsvTable next{"next", {"id", "token", "logit", "probability"}, {}};
  for (const NextToken& token : look.next)
    next.rows.push_back({static_cast<std::int64_t>(token.id), token.text, token.logit, token.probability});
  std::vector<CsvTable> tables{next};
  if (!look.lens.empty()) {
    CsvTable lens{"lens", {"position", "layer", "rank", "id", "token", "logit", "probability"}, {}};
    CsvTable layers{"lens-layers", {"position", "layer", "entropy", "kl_to_last"}, {}};
    if (look.lens_answer)
      layers.header.insert(layers.header.end(), {"answer", "answer_rank", "answer_logit", "answer_probability"});
    for (const LensRow& row : look.lens) {
      for (std::size_t rank = 0; rank < row.next.size(); ++rank) {
        const NextToken& token = row.next[rank];
        lens.rows.push_back({row.position, row.layer, static_cast<std::int64_t>(rank + 1),
                             static_cast<std::int64_t>(token.id), token.text, token.logit, token.probability});
      }
      layers.rows.push_back({row.position, row.layer, row.entropy, row.kl_to_last});
      if (!row.answer) continue;
      layers.rows.back().insert(
          layers.rows.back().end(),
          {static_cast<std::int64_t>(*look.lens_answer), row.answer->rank, row.answer->logit, row.answer->probability});
    }
    tables.insert(tables.end(), {lens, layers});
  }
  if (look.parts) {
    CsvTable parts{"parts", {"part", "adds"}, {}};
    for (const LogitPart& part : look.parts->parts) parts.rows.push_back({part.name, part.value});
    tables.push_back(parts);
  }
  return tables;
}

std::vector<CsvTable> head_tables(const ReadLook& read) {
  const PromptLook& look = *read.look;
  const auto at = static_cast<std::size_t>(read.query);
  CsvTable heads{"heads", {"layer", "head", "query", "n_eff", "kalman_gain", "entropy", "bos_mass"}, {}};
  for (const LookedHead& head : look.heads)
    heads.rows.push_back({head.layer, head.head, read.query, static_cast<double>(head.n_eff[at]),
                          static_cast<double>(head.kalman_gain[at]), static_cast<double>(head.entropy[at]),
                          static_cast<double>(head.bos_mass[at])});
  CsvTable keys{"keys", {"position", "mean_weight", "heads"}, {}};
  for (const SinkKey& key : sink_keys(look, look.tokens.size()))
    keys.rows.push_back({key.position, key.mean, key.heads});
  std::vector<CsvTable> tables{heads, keys};
  if (look.query) {
    CsvTable query{"query", {"layer", "head", "query", "key", "weight"}, {}};
    for (std::size_t key = 0; key < look.query->weights.size(); ++key)
      query.rows.push_back({look.query->layer, look.query->head, look.query->query, static_cast<std::int64_t>(key),
                            look.query->weights[key]});
    tables.push_back(query);
  }
  if (!look.segments.empty()) {
    CsvTable segments{"segments", {"layer", "head", "segment", "begin", "end", "mass"}, {}};
    for (const LookedHead& head : look.heads) {
      for (std::size_t i = 0; i < look.segments.size(); ++i)
        segments.rows.push_back({head.layer, head.head, look.segments[i].name, look.segments[i].begin,
                                 look.segments[i].end, head.segment_mass[i]});
    }
    tables.push_back(segments);
  }
  return tables;
}

OrderedJson next_json(const std::vector<NextToken>& next) {
  OrderedJson list = OrderedJson::array();
  for (const NextToken& token : next)
    list.push_back(
        {{"id", token.id}, {"token", token.text}, {"logit", token.logit}, {"probability", token.probability}});
  return list;
}

const Section<ReadLook> prompt_section = {
    .name = "prompt",
    .title = "The prompt",
    .question = "What does a query look at?",
    .files = {"tokens"},
    .keys = {"tokens"},
    .blocks = prompt_blocks,
    .add_json = [](const ReadLook& read, OrderedJson& summary) { summary["tokens"] = read.look->tokens; },
    .tables = prompt_tables};

const Section<ReadLook> answer_section = {
    .name = "next-tokens",
    .title = "What comes next",
    .question = "What comes next, and where does it come from?",
    .files = {"next", "lens", "lens-layers", "parts"},
    .keys = {"next"},
    .blocks = answer_blocks,
    .add_json = [](const ReadLook& read, OrderedJson& summary) { summary["next"] = next_json(read.look->next); },
    .tables = answer_tables};

const Section<ReadLook> heads_section_of_look = {.name = "prompt-heads",
                                                 .title = "The heads",
                                                 .question = "On how much evidence is each head based?",
                                                 .files = {"heads", "keys", "query", "segments"},
                                                 .blocks = heads_blocks,
                                                 .tables = head_tables};

}  // namespace

std::string token_strip(const TokenStrip& strip) {
  const std::size_t kept = strip.layers.size() * strip.heads * strip.tokens.size() * strip.top;
  ASSERT(kept > 0 && strip.keys.size() == kept && strip.weights.size() == kept,
         "a strip of {} layers, {} heads, {} tokens and {} keys of each has {} keys and {} weights",
         strip.layers.size(), strip.heads, strip.tokens.size(), strip.top, strip.keys.size(), strip.weights.size());
  for (const double key : strip.keys)
    ASSERT(key >= -1 && key < static_cast<double>(strip.tokens.size()), "key {} of {} tokens", key,
           strip.tokens.size());
  const std::size_t query = strip.query.value_or(strip.tokens.size() - 1);
  ASSERT(strip.layer < strip.layers.size() && strip.head < strip.heads && query < strip.tokens.size(),
         "the strip begins with head {} of layer place {} at query {}, which it does not have", strip.head, strip.layer,
         query);
  EmbeddedData data;
  data.words = {{"tokens", strip.tokens}, {"layers", strip.layers},       {"heads", strip.heads},
                {"top", strip.top},       {"keys", data.add(strip.keys)}, {"weights", data.add(strip.weights)},
                {"layer", strip.layer},   {"head", strip.head},           {"query", query}};
  return embedded_part("tokens", data);
}

WrittenReport write_look_report(const ReadLook& read, const std::filesystem::path& out) {
  const ReadLook looks[] = {read};
  const Section<ReadLook>* const sections[] = {&prompt_section, &answer_section, &heads_section_of_look};
  MadeReport report = make_report<ReadLook>(sections, looks);
  report.title = page_title(printable(read.model, 200), "one prompt");
  report.header = fmt::format(
      "<header>\n<h1>One prompt, looked at</h1>\n<p class=\"lead\">{}: one forward pass, every head at every query."
      "</p>\n</header>\n",
      escape_html(printable(read.model, 200)));
  return write_files(report, out);
}

}  // namespace gainlens::reports
