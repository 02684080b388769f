#include "analyses/comparison.h"

#include "core/number_ranges.h"
#include "core/quantity.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

namespace gainlens::analyses {
namespace {

using runfile::Request;

constexpr std::size_t shown_digest = 12;  // hexadecimal digits that tell checksums apart

std::string short_digest(const std::string& digest) {
  return digest.size() == 64 ? fmt::format("sha256 {:.{}}", digest, shown_digest) : digest;
}

std::string yes_or_no(bool value) {
  return value ? "yes" : "no";
}

std::string model_digest(const Request& request) {
  std::string text;
  for (const auto& [file, digest] : request.model) {
    if (file != "config.json" || request.model.size() == 1) text += (text.empty() ? "" : ", ") + short_digest(digest);
  }
  return text;
}

/// Which layers a run has numbers of: "0-3", "none".
std::string measured_layers(const Request& request) {
  return request.statistics ? number_ranges(request.layers) : "none";
}

bool same_layers(const Request& first, const Request& second) {
  return !first.statistics || !second.statistics || first.layers == second.layers;
}

/// Whether every layer that both runs measured has the same attention in both.
bool same_attention(const Request& first, const Request& second) {
  for (std::size_t i = 0; i < first.layers.size(); ++i) {
    const auto found = std::find(second.layers.begin(), second.layers.end(), first.layers[i]);
    if (found == second.layers.end()) continue;
    if (first.attention[i] != second.attention[static_cast<std::size_t>(found - second.layers.begin())]) return false;
  }
  return true;
}

std::string chunking(const Request& request) {
  const std::string placed =
      request.spread ? fmt::format("spread over {} tokens of text", *request.spread) : "consecutive";
  return request.nested ? placed + ", shorter ones nested in the longest" : placed;
}

/// One property of a request, and what it means if two requests differ in it.
struct Aspect {
  std::string_view what;
  std::function<std::string(const Request&)> shown;
  std::function<bool(const Request&, const Request&)> same;
  std::string consequence;
  bool unpairs;
};

template <typename Part, typename Field>
std::function<bool(const Request&, const Request&)> equal(Field Part::*field) {
  return [field](const Request& a, const Request& b) { return a.*field == b.*field; };
}

template <typename Part, typename Field>
std::function<std::string(const Request&)> number(Field Part::*field) {
  return [field](const Request& request) { return fmt::format("{}", request.*field); };
}

const std::vector<Aspect>& aspects() {
  static const std::vector<Aspect> all = {
      {"statistics version", number(&Request::version), equal(&Request::version),
       "the numbers may mean different things.", true},
      {"model", model_digest, equal(&Request::model), "", false},
      {"family", [](const Request& r) { return r.family; }, equal(&Request::family), "", false},
      {"text", [](const Request& r) { return short_digest(r.text); }, equal(&Request::text),
       "the chunks hold different text, so a difference may come from the model or from the text.", true},
      {"tokenizer", [](const Request& r) { return short_digest(r.tokenizer); }, equal(&Request::tokenizer),
       "the same words become different tokens: chunks with the same number do not match, and NLL per token has "
       "another unit.",
       true},
      {"BOS", [](const Request& r) { return r.bos ? fmt::format("token {}", *r.bos) : std::string("none"); },
       equal(&Request::bos), "key 0 is another token: the chunks are shifted, and BOS mass is another quantity.", true},
      {"chunking", chunking,
       [](const Request& a, const Request& b) { return a.nested == b.nested && a.spread == b.spread; },
       "chunks with the same number hold different text.", true},
      {"longest nested chunk",
       [](const Request& r) { return r.nested ? format_count(r.lengths.back()) : std::string("not nested"); },
       [](const Request& a, const Request& b) {
         return !a.nested || !b.nested || a.lengths.back() == b.lengths.back();
       },
       "shorter chunks are cut from it, so chunks with the same number hold different text.", true},
      {"number of spread chunks",
       [](const Request& r) { return r.spread ? std::to_string(r.samples) : std::string("not spread"); },
       [](const Request& a, const Request& b) { return !a.spread || !b.spread || a.samples == b.samples; },
       "their positions depend on it, so chunks with the same number hold different text.", true},
      {"estimator", [](const Request& r) { return words_of(r.estimator); }, equal(&Request::estimator),
       "differences of lambda_obs and K are those of the estimators too.", false},
      {"statistics", [](const Request& r) { return std::string(r.statistics ? "all" : "none"); },
       equal(&Request::statistics), "one run has no numbers of attention, so only NLL is compared.", false},
      {"NLL", [](const Request& r) { return std::string(r.nll ? "measured" : "not measured"); }, equal(&Request::nll),
       "NLL is not compared.", false},
      {"number of layers", [](const Request& r) { return std::to_string(r.layers.size()); },
       [](const Request& a, const Request& b) { return same_layers(a, b) || compares_shared_layers(a, b); },
       "cells are not paired; the deep layers of each run are counted among its own layers.", false},
      {"layers measured", measured_layers,
       [](const Request& a, const Request& b) { return !compares_shared_layers(a, b); },
       "only the layers that both runs measured are compared, and the deep layers are counted among these.", false},
      {"heads", number(&Request::heads), equal(&Request::heads), "cells are not paired.", false},
      {"KV heads", runfile::kv_heads_in_words,
       [](const Request& a, const Request& b) {
         return a.kv_heads == b.kv_heads && (!same_layers(a, b) || a.layer_kv_heads == b.layer_kv_heads);
       },
       "queries share their keys and values differently.", false},
      {"head dimension", number(&Request::head_dim), equal(&Request::head_dim),
       "the prior variance is 1/d, so lambda_obs and K have different priors.", false},
      {"attention", [](const Request& r) { return fmt::format("{}", fmt::join(r.attention, ", ")); },
       [](const Request& a, const Request& b) {
         return (!same_layers(a, b) && !compares_shared_layers(a, b)) || same_attention(a, b);
       },
       "windows limit n_eff, and key 0 is outside the window in different layers.", false},
      {"gate", [](const Request& r) { return yes_or_no(r.gated); }, equal(&Request::gated), "", false},
      {"sink logits", [](const Request& r) { return yes_or_no(r.sink_logits); }, equal(&Request::sink_logits),
       "a learned sink takes weight that would otherwise go to keys.", false},
      {"Bayesian filter", [](const Request& r) { return yes_or_no(r.filtered); }, equal(&Request::filtered),
       "the precisions and the decay of a filter are part of its scores.", false},
      {"dtype", [](const Request& r) { return r.dtype; }, equal(&Request::dtype),
       "part of every difference is rounding; repeat one run with the dtype of the other to see how much.", false},
      {"device", [](const Request& r) { return r.device; }, equal(&Request::device),
       "part of every difference is rounding.", false},
  };
  return all;
}

}  // namespace

bool compares_shared_layers(const Request& first, const Request& second) {
  return !same_layers(first, second) &&
         (first.model == second.model || first.layers.front() > 0 || second.layers.front() > 0);
}

std::vector<RunDifference> request_differences(const Request& first, const Request& second) {
  std::vector<RunDifference> differences;
  for (const Aspect& aspect : aspects()) {
    if (aspect.same(first, second)) continue;
    differences.push_back({aspect.what, aspect.shown(first), aspect.shown(second), aspect.consequence, aspect.unpairs});
  }
  return differences;
}

}  // namespace gainlens::analyses
