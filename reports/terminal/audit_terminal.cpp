#include "reports/terminal/audit_terminal.h"

#include "core/error.h"
#include "reports/measured.h"
#include "reports/page/table.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::LemmaHead, analyses::SinkLemma, analyses::Statement;

constexpr std::size_t strongest_heads = 8;
constexpr std::size_t min_met_heads = 4;
constexpr std::size_t max_short_keys = 8;

std::string header() {
  return fmt::format("{:>5} {:>4}  {:>7} {:>7} {:>5} {:>7}  {:>6} {:>7} {:>7} {:>9} {:>8}  {:>7} {:>6}\n", "layer",
                     "head", "epsilon", "mu", "c", "delta", "bound", "alpha_1", "slack", "least", "vacuous", "with K",
                     "below");
}

std::string row(const LemmaHead& head) {
  const std::string slack = head.slack ? fmt::format("{:.3f}", *head.slack) : "-";
  const Measured least = analyses::smallest_slack(head);
  return fmt::format(
      "{:>5} {:>4}  {:>7.3g} {:>7.3g} {:>5.2f} {:>7.3g}  {:>6.3f} {:>7.3f} {:>7} {:>9} {:>7.1f}%  {:>7.3f} "
      "{:>5.1f}%{}\n",
      head.layer, head.head, head.first_norm, head.min_norm, head.alignment, head.estimate_norm, head.bound,
      head.bos_mass, slack, least ? fmt::format("{:.2g}", *least) : "-", 100 * head.vacuous, head.gain_bound,
      100 * head.gain_violated, head.set_apart ? fmt::format("  {}, excluded", printable(head.attention)) : "");
}

bool nearer(const LemmaHead* a, const LemmaHead* b) {
  return a->slack_min < b->slack_min;
}

/// Heads in the order of `before`; at most `count`, none that is excluded.
template <typename Before>
std::vector<const LemmaHead*> first_heads(const SinkLemma& lemma, std::size_t count, Before before) {
  std::vector<const LemmaHead*> heads;
  for (const LemmaHead& head : lemma.heads) {
    if (!head.set_apart) heads.push_back(&head);
  }
  std::stable_sort(heads.begin(), heads.end(), before);
  heads.resize(std::min(heads.size(), count));
  return heads;
}

std::string table(const SinkLemma& lemma, bool all_heads) {
  std::string text;
  if (all_heads || lemma.heads.size() <= strongest_heads + min_met_heads) {
    text += header();
    for (const LemmaHead& head : lemma.heads) text += row(head);
    return text;
  }
  // Where most bounds are vacuous the weight decides: those heads are the sinks that the lemma does not explain.
  text += "Heads where the bound is strongest; equal ones by alpha_1\n" + header();
  for (const LemmaHead* head : first_heads(
           lemma, strongest_heads, [](const LemmaHead*a, const LemmaHead*b) { return analyses::binds_more(*a, *b); }))
    text += row(*head);
  auto near = first_heads(lemma, lemma.heads.size(), nearer);
  std::erase_if(near, [](const LemmaHead* head) { return !analyses::smallest_slack(*head); });
  near.resize(std::min(near.size(), min_met_heads));
  if (!near.empty()) text += "Heads where it is met most narrowly\n" + header();
  for (const LemmaHead* head : near) text += row(*head);
  return text + fmt::format("({} in all; --all prints every one)\n", counted(lemma.heads.size(), "head"));
}

std::string lemma_text(const analyses::Audit& audit, bool all_heads) {
  std::string text = "Sink lemma: alpha_1 >= 1 - (delta + epsilon) / (mu c) at every second-half query\n";
  if (!audit.lemma) return text + wrapped("none: " + audit.lemma.reason(), 2);
  text += wrapped(audit.lemma->finding, 2) + '\n' + table(*audit.lemma, all_heads) + '\n';
  text += wrapped(
      "alpha_1: weight of key 0; epsilon: norm of its value; mu: smallest norm of another value; c = min(1, ||vbar|| / "
      "mu), vbar the mean of the other values; delta = ||e||. bound: 0 where it is below. slack: alpha_1 - bound over "
      "queries where the bound is above 0; least: smallest of any query, a negative bound taken as it is ('-': every "
      "bound is negative). with K: the bound with ||K o e|| for delta; below: share of queries whose alpha_1 is below "
      "that.",
      2);
  return text;
}

/// Where the lemma applies besides key 0.
std::string short_keys_text(const analyses::Audit& audit, bool all_heads) {
  std::string text = "\nThe strongest short-valued key of each head, at any position\n";
  if (!audit.short_keys) return text + wrapped("none: " + audit.short_keys.reason(), 2);
  std::vector<const analyses::ShortKey*> keys;
  std::size_t elsewhere = 0;
  for (const analyses::ShortKey& key : *audit.short_keys) {
    keys.push_back(&key);
    elsewhere += 2 * key.elsewhere > key.chunks ? 1 : 0;
  }
  if (keys.empty()) {
    return text +
           wrapped(fmt::format("none: no key with a column mean of at least 0.1 has a value of at most {} of the "
                               "median",
                               analyses::short_value_ratio),
                   2);
  }
  text += wrapped(fmt::format("{} such a key; at {} of them it is mostly not key 0. The lemma holds for any fixed key, "
                              "with its value for epsilon. Its bound at another key than 0 is not computed: it needs "
                              "the mean of the values without that key, which a run stores for key 0 alone.",
                              keys.size() == 1 ? "1 head has" : fmt::format("{} heads have", keys.size()), elsewhere),
                  2);
  std::stable_sort(keys.begin(), keys.end(), [](const auto* a, const auto* b) { return a->mass > b->mass; });
  text += fmt::format("{:>5} {:>4}  {:>6} {:>13}  {:>9} {:>12}  {}\n", "layer", "head", "mass", "|v| of median",
                      "chunks", "not at key 0", "token");
  const std::size_t shown = all_heads ? keys.size() : std::min(keys.size(), max_short_keys);
  for (std::size_t i = 0; i < shown; ++i) {
    text +=
        fmt::format("{:>5} {:>4}  {:>6.3f} {:>13.2f}  {:>9} {:>12}  {}\n", keys[i]->layer, keys[i]->head, keys[i]->mass,
                    keys[i]->value_norm_ratio, fmt::format("{} of {}", keys[i]->chunks, keys[i]->all_chunks),
                    keys[i]->elsewhere, keys[i]->token);
  }
  if (shown < keys.size()) text += fmt::format("({} in all; --all prints every one)\n", counted(keys.size(), "head"));
  return text;
}

std::string prior_text(const analyses::Audit& audit) {
  if (!audit.prior_shares) return {};
  std::string text =
      fmt::format("\nThe prior's share of S + nu sigma0^2, heads by n_eff\n{:>6} {:>8} {:>9}  {:>10}  {:>22}\n",
                  "heads", "n_eff", "S", "as printed", "of nu observations");
  for (const analyses::PriorShare& group : *audit.prior_shares) {
    text += fmt::format("{:>6} {:>8.1f} {:>9.3g}  {:>9.2f}%  {:>21.2f}%\n", group.heads, group.n_eff, group.residual,
                        100 * group.share, 100 * group.fading);
  }
  return text;
}

std::string statement_text(std::size_t number, const Statement& statement) {
  return fmt::format("{}. {}\n", number, analyses::name_of(statement.outcome)) +
         wrapped("Claim: " + statement.claim, 3) + wrapped("Here: " + statement.finding, 3) +
         wrapped("Instead: " + statement.conclusion, 3);
}

}  // namespace

std::string print_audit(const analyses::Audit& audit, bool all_heads) {
  std::string text = wrapped(fmt::format("Audit: means over chunks at {} ({})", analyses::list_lengths(audit.lengths),
                                         audit.lengths_rule),
                             0) +
                     wrapped("BOS policy: " + printable(audit.bos_policy), 0) + '\n';
  text += lemma_text(audit, all_heads);
  text += short_keys_text(audit, all_heads);
  text += prior_text(audit);
  text += "\nStatements of the paper beside this run\n";
  for (std::size_t i = 0; i < audit.statements.size(); ++i) text += statement_text(i + 1, audit.statements[i]);
  text += '\n';
  for (const std::string& note : audit.notes) text += wrapped("note: " + note, 0);
  return text;
}

}  // namespace gainlens::reports
