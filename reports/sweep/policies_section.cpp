#include "reports/sweep/sections.h"

#include "analyses/context.h"
#include "analyses/neighbours.h"
#include "analyses/sink_vs_k.h"
#include "reports/page/typography.h"
#include "reports/sweep/run_words.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <map>
#include <utility>

namespace gainlens::reports {
namespace {

/// Key in summary.json, and the choice in a sentence.
using Policies = std::vector<std::pair<std::string, std::string>>;

std::string attention_kinds(const runfile::RunReader& reader) {
  std::map<std::string, std::vector<std::int64_t>> layers;
  for (std::size_t i = 0; i < reader.attention().size(); ++i)
    layers[reader.attention()[i]].push_back(reader.layers()[i]);
  std::string text;
  for (const auto& [kind, numbers] : layers)
    text += fmt::format("{}{} in {}", text.empty() ? "" : "; ", kind, layers_in_words(numbers));
  return text;
}

std::string first_token(const runfile::Request& request) {
  return request.bos
             ? fmt::format("BOS is token {}, at position 0 of every chunk. BOS mass is the attention weight it gets.",
                           *request.bos)
             : "No BOS token stands before the chunks. BOS means the first text token of each chunk, and BOS mass its "
               "attention weight.";
}

Policies policies(const SweepRun& run) {
  const runfile::Request& request = run.request();
  const analyses::SinkVsK& sinks = run.of(analyses::sink_vs_k);
  const bool reml = request.estimator.name == Estimator::reml;
  return {
      {"bos", request.bos_policy},
      {"key_0", first_token(request)},
      {"windows",
       "Last quarter: queries t >= ceil(3T/4). Second half: queries t >= ceil(T/2). n_eff, gate, S, lambda_obs, K and "
       "entropy are means over the last quarter. BOS mass and K without BOS are means over the second half."},
      {"deep_layers", fmt::format("Layers {} (of {} in this run).",
                                  number_ranges(run.of(analyses::context).deep_layers), request.layers.size())},
      {"attention", attention_kinds(run.reader())},
      {"prior_precision", reml ? "K = lambda_obs / (lambda + lambda_obs) with lambda = 1 in every layer. Only the gain "
                                 "theory fits a lambda."
                               : "K = lambda_obs / (lambda + lambda_obs) with lambda = 1 in every layer."},
      {"observation_precision",
       reml ? "The context figure shows the mean of lambda_obs over queries. The gain theory uses lambda* = (n_eff + "
              "nu) "
              "/ (S + nu sigma0^2) of the aggregated n_eff and S, which is another number."
            : "The context figure shows the mean of lambda_obs over the queries that have one."},
      {"estimator", fmt::format("lambda_obs is estimated by {}.", words_of(request.estimator))},
      {"prior", has_no_floor(request.estimator.name) ? std::string("This estimator has none.")
                                                     : fmt::format("nu = 1, sigma0^2 = 1/d = 1/{}.", request.head_dim)},
      {"scaled_gain",
       "Scaled K: the values of each KV head and dimension are divided by their standard deviation over the chunk, and "
       "sigma0^2 = 1."},
      {"sink_lengths", fmt::format("{} ({}).", analyses::list_lengths(sinks.lengths), sinks.lengths_rule)},
      {"chunks", run.of(analyses::context).sharing},
      {"neighbouring_chunks", run.of(analyses::neighbours).finding},
      {"spread",
       "A standard deviation (a band, in figures of one run) is the population one over chunk, layer, head and query. "
       "Intervals of means are 95% Student intervals over chunks. The interval of a correlation over heads leaves out "
       "one stretch of text at a time, on Fisher's z. The range with one layer left out has no level."},
  };
}

/// The sentence of each run; once where all say the same.
std::string definition(Runs runs, std::size_t which) {
  const auto sentence = [&](const SweepRun& run) {
    const auto& [key, text] = run.of(policies).at(which);
    return key == "bos" ? escape_html(text) : to_html(text);  // the BOS policy is the run's own text
  };
  const std::string first = sentence(runs.front());
  if (std::all_of(runs.begin(), runs.end(), [&](const SweepRun& run) { return sentence(run) == first; })) return first;
  std::string html;
  for (const SweepRun& run : runs)
    html += fmt::format("{}{}: {}", html.empty() ? "" : "<br>", escape_html(run.label()), sentence(run));
  return html;
}

std::vector<Block> policies_blocks(Runs runs) {
  std::string html = "<dl>\n";
  const Policies& first = runs.front().of(policies);
  for (std::size_t i = 0; i < first.size(); ++i) {
    std::string label = first[i].first;
    std::replace(label.begin(), label.end(), '_', ' ');
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n",
                        escape_html(label == "bos"     ? "BOS policy"
                                    : label == "key 0" ? "BOS"
                                                       : label),
                        definition(runs, i));
  }
  return {Html{html + "</dl>\n"}};
}

void add_policies_json(const SweepRun& run, OrderedJson& summary) {
  summary["policies"] = OrderedJson::object();
  for (const auto& [key, sentence] : run.of(policies)) summary["policies"][key] = sentence;
}

}  // namespace

const Section<SweepRun> policies_section = {.name = "policies",
                                            .title = "Choices behind the numbers",
                                            .question = "Which choices stand behind every number?",
                                            .keys = {"policies"},
                                            .blocks = policies_blocks,
                                            .add_json = add_policies_json};

}  // namespace gainlens::reports
