#include "reports/sweep/sections.h"

#include "analyses/context.h"
#include "analyses/gain_theory.h"
#include "analyses/sink_vs_k.h"
#include "analyses/verdicts.h"
#include "reports/sweep/run_words.h"

namespace gainlens::reports {
namespace {

PaperTable verdicts_table(Runs runs) {
  PaperTable table{"verdicts",
                   "The paper's predictions against this measurement. The naive inference is the paper's. The test "
                   "beside it decides.",
                   {{"claim", true},
                    {"measured here", true},
                    {"naive inference", true},
                    {"the test that decides", true},
                    {"verdict", true}},
                   {}};
  const bool several = runs.size() > 1;
  for (const SweepRun& run : runs) {
    for (const analyses::Prediction& prediction : run.of(verdicts_of).predictions) {
      table.rows.push_back({fmt::format("{}Prediction {}: {} — {}", several ? run.label() + ". " : "",
                                        prediction.number, prediction.title, in_words(prediction.ruling))});
      for (const analyses::Claim& claim : prediction.claims) {
        table.rows.push_back({claim.claim, claim.measurement, claim.naive, claim.decisive,
                              std::string(in_words(claim.ruling)) + (claim.reason.empty() ? "" : ": " + claim.reason)});
      }
    }
  }
  return table;
}

}  // namespace

analyses::Verdicts verdicts_of(const SweepRun& run) {
  std::optional<analyses::AnySinks> any;
  if (analyses::has_sink_keys(run.reader()) && !run.of(sink_keys_of).first_keys_only)
    any = analyses::any_sinks(run.of(sink_keys_of), run.of(analyses::sink_vs_k));
  return analyses::verdicts(run.of(analyses::context), run.of(analyses::context_by_attention),
                            run.of(analyses::gain_theory), run.of(analyses::sink_vs_k),
                            run.of(analyses::published_sinks), any);
}

const Section<SweepRun> verdicts_section = {
    .name = "verdicts",
    .title = "The paper's predictions",
    .question = "What does the run say about the paper's three predictions?",
    .files = {"verdicts"},
    .keys = {"verdicts"},
    .blocks = [](Runs runs) { return std::vector<Block>{verdicts_table(runs)}; },
    .add_json = [](const SweepRun& run, OrderedJson& json) { json["verdicts"] = to_json(run.of(verdicts_of)); },
    .paper = true};

}  // namespace gainlens::reports
