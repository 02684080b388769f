#include "reports/terminal/attention_terminal.h"

#include "analyses/crossed_estimate.h"
#include "core/counted.h"
#include "core/number_ranges.h"
#include "core/terminal_text.h"
#include "reports/words/numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::AttentionReading, analyses::Head, analyses::HeadNumber, analyses::SeedEstimate;

/// A number that some head has.
bool is_known(const AttentionReading& reading, std::size_t number) {
  return std::ranges::any_of(reading.heads, [&](const Head& head) { return bool(head.numbers[number]); });
}

std::string table_of_means(const AttentionReading& reading) {
  std::string text = fmt::format("  {:<22}", "head");
  for (const Head& head : reading.heads) text += fmt::format(" {:<24}", name_of(head));
  text += "\n";
  for (std::size_t i = 0; i < attention_numbers.size(); ++i) {
    if (!is_known(reading, i)) continue;
    text += fmt::format("  {:<22}", attention_numbers[i].label);
    for (const Head& head : reading.heads) {
      const Maybe<HeadNumber>& number = head.numbers[i];
      text += fmt::format(" {:<24}", number ? mean_in_words(number->mean) : "–");
    }
    text += "\n";
  }
  return text;
}

/// The numbers of which correlations are shown.
constexpr const char* correlated[] = {"n_eff_share", "kalman_gain", "model_gain", "last_mass"};

std::string table_of_correlations(const AttentionReading& reading) {
  std::string text = fmt::format("  {:<5} {:<22} {:<24} {:<24} {}\n", "head", "rho [95%] of", "with history length",
                                 "last item's count, given", "test item's count, given");
  for (const Head& head : reading.heads) {
    for (const char* name : correlated) {
      const Maybe<HeadNumber>& number = head.number(name);
      if (!number) continue;
      const auto* listed = std::ranges::find(attention_numbers, name, &AttentionNumber::name);
      const auto cell = [](const SeedEstimate& estimate) {
        return with_signed_interval(estimate.value, estimate.interval);
      };
      text += fmt::format("  {:<5} {:<22} {:<24} {:<24} {}\n", name_of(head), listed->label, cell(number->rho[0]),
                          cell(number->given_length[1]), cell(number->given_length[2]));
    }
  }
  return text;
}

/// "falls in all 4 heads", "rises in 1 of 4 heads (0.1) and falls in 2 (1.0, 1.1)".
/// @param of  the correlation of a head; null: the head has none
std::string trend(const AttentionReading& reading, const auto& of) {
  std::vector<std::string> rising, falling;
  std::size_t known = 0;
  for (const Head& head : reading.heads) {
    const SeedEstimate* const rho = of(head);
    if (rho == nullptr || !rho->value) continue;
    ++known;
    if (!rho->interval) continue;
    if (rho->interval->low > 0) rising.push_back(name_of(head));
    if (rho->interval->high < 0) falling.push_back(name_of(head));
  }
  if (known == 0) return {};
  const auto part = [&](const char* verb, const std::vector<std::string>& heads) {
    if (heads.size() == known) return fmt::format("{} in all {} heads", verb, known);
    return fmt::format("{} in {} of {} heads ({})", verb, heads.size(), known, fmt::join(heads, ", "));
  };
  if (rising.empty() && falling.empty()) return "shows no trend in any head";
  if (falling.empty()) return part("rises", rising);
  if (rising.empty()) return part("falls", falling);
  return part("rises", rising) + " and " + part("falls", falling);
}

/// Least and most over the heads; empty: no head has the number.
using Reach = std::optional<std::pair<double, double>>;
Reach reach(const AttentionReading& reading, std::string_view name) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Head& head : reading.heads) {
    const Maybe<HeadNumber>& number = head.number(name);
    if (!number || !number->mean.value) continue;
    low = std::min(low, *number->mean.value);
    high = std::max(high, *number->mean.value);
  }
  return low <= high ? std::optional(std::pair(low, high)) : std::nullopt;
}

/// "68% to 74%"
std::string percent(const std::pair<double, double>& shares) {
  const std::string low = fmt::format("{:.0f}%", 100 * shares.first),
                    high = fmt::format("{:.0f}%", 100 * shares.second);
  return low == high ? low : low + " to " + high;
}

/// What to train next, by the least of what all heads have.
const char* what_to_try(const Reach& share, const Reach& last) {
  if (share && share->first >= 0.9)
    return "To try: every head weighs its items nearly alike, so a single layer with one head may rank as well (train "
           "recommend --variant small:layers=1,heads=1). gainlens compare says whether it does.";
  if (last && last->first >= 0.5)
    return "To try: every head reads little but the last item, as the baseline markov does (train recommend --arm "
           "plain,markov). gainlens compare says which ranks better.";
  return "To try: these numbers say what the heads rest on, and not what they are worth. Train with fewer of them "
         "(train recommend --variant small:layers=1) and ask gainlens compare.";
}

}  // namespace

std::string mean_in_words(const SeedEstimate& mean) {
  if (!mean.value || !mean.interval || !(mean.interval->high > mean.interval->low)) return shown(mean.value);
  const double half = (mean.interval->high - mean.interval->low) / 2;
  const int least = std::abs(*mean.value) < 1 ? 3 : 2;
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(half))), least, 6);
  return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", *mean.value, decimals, mean.interval->low, decimals,
                     mean.interval->high, decimals);
}

std::string name_of(const Head& head) {
  return fmt::format("{}.{}", head.layer, head.head);
}

std::vector<std::string> attention_sentences(const AttentionReading& reading) {
  std::vector<std::string> sentences;
  const auto keys = reach(reading, "n_eff"), share = reach(reading, "n_eff_share");
  if (keys && share)
    sentences.push_back(fmt::format("The heads rest on {} to {} keys (n_eff), {} of the keys that they see.",
                                    shown(keys->first), shown(keys->second), percent(*share)));
  const auto first = reach(reading, "first_mass"), last = reach(reading, "last_mass"),
             mask = reach(reading, "mask_mass");
  if (first && last) {
    std::string masses =
        fmt::format("The last item gets {} of the weight, the first one {}", percent(*last), percent(*first));
    if (mask) masses += fmt::format(", and MASK {}", percent(*mask));
    sentences.push_back(masses + ".");
  }
  const auto say = [&](const char* name, const char* words, std::size_t trait, bool given) {
    const std::string found = trend(reading, [&](const Head& head) -> const SeedEstimate* {
      const Maybe<HeadNumber>& number = head.number(name);
      return !number ? nullptr : given ? &number->given_length[trait] : &number->rho[trait];
    });
    if (found.empty()) return;
    const char* const by[] = {"a longer history", "a more frequent last item, at equal length of history",
                              "a more frequent test item, at equal length of history"};
    sentences.push_back(fmt::format("With {}, {} {}.", by[trait], words, found));
  };
  say("n_eff", "n_eff", 0, false);
  say("n_eff_share", "the share n_eff / keys", 0, false);
  say("kalman_gain", "K", 0, false);
  say("model_gain", "K of the model", 0, false);
  say("n_eff_share", "the share n_eff / keys", 1, true);
  say("kalman_gain", "K", 1, true);
  say("model_gain", "K of the model", 1, true);
  say("kalman_gain", "K", 2, true);
  say("model_gain", "K of the model", 2, true);
  sentences.emplace_back(what_to_try(share, last));
  return sentences;
}

std::string print_attention(const AttentionReading& reading) {
  const bool crossed = reading.seeds.size() >= analyses::fewest_crossed_seeds;
  std::string text = fmt::format("arm {}, {} {}: {}, the position that ranks\n\n", terminal_line(reading.arm),
                                 reading.seeds.size() == 1 ? "seed" : "seeds", fmt::join(reading.seeds, ", "),
                                 counted(reading.users, "user"));
  text += "means over users [95%]\n" + table_of_means(reading);
  text += "\ncorrelations over users; \"given\": partial, given the history length\n" + table_of_correlations(reading);
  text += "\n";
  for (const std::string& sentence : attention_sentences(reading)) text += "  " + sentence + "\n";
  if (reading.seeds.size() > 1) text += fmt::format("  {}\n", heads_of_seeds);
  text += fmt::format(
      "\nK: Kalman gain at prior precision 1, from the observation precision (REML); K of the model: what it puts on e "
      "itself\n95%: over {}. docs/analyses/user-attention.md says what this can show and what it cannot.\n",
      crossed ? "other trainings and other users" : "other users, with these models");
  while (text.find(" \n") != std::string::npos) text.replace(text.find(" \n"), 2, "\n");
  return text;
}

}  // namespace gainlens::reports
