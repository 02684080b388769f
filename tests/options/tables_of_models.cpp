#include "options/option_inputs.h"

#include "core/json.h"

namespace gainlens::testing {
namespace {

const std::string same_numbers = "the numbers are the same: the weights are read layer by layer";

/// Rows of commands that read a text, from a call with --tokens.
std::vector<OptionRow> text_rows() {
  return {{"--text", {some_text(2)}, {demo_model, "!--tokens", "--text", some_text(1)}},
          {"--tokens", {token_ids(29)}},
          {"--bos", {"never"}, {demo_model, "!--tokens", "--text", some_text(1)}}};
}

std::vector<OptionRow> with_rows(std::vector<OptionRow> rows, const std::vector<OptionRow>& more) {
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

/// A checkpoint with a key that only the option lets pass.
OptionRow ignored_key_row() {
  return {"--ignore-config-key", {"logit_scale"}, {odd_checkpoint()}};
}

OptionTable sweep() {
  const Words of_users = {recommend_run(), "!--tokens", "!--lengths", "!--samples", "--data", histories()};
  const std::vector<OptionRow> rows = {
      {"model", {gated_model}},
      {"--out", {"other"}},
      {"--lengths", {"16"}},
      {"--samples", {"3"}},
      {"--nested"},
      {"--spread"},
      {"--dtype", {"float64"}},
      {"--statistics", {"none"}},
      {"--kernel", {"composed"}},
      {"--estimator", {"kish"}},
      {"--score-noise", {"0.5"}, {"--estimator", "delta_weight_free", "--score-noise", "0.1"}},
      {"--no-nll"},
      {"--per-query"},
      {"--layers", {"0:1"}},
      {"--stop-at-layer", {"1"}},
      {"--depth-precision"},
      {"--allow-extrapolation", {}, {"--lengths", "150", "--samples", "1"}},
      ignored_key_row(),
      {"--data", {histories()}, with_words(of_users, {"!--data"})},
      {"--arm", {"bft"}, of_users},
  };
  return {{"sweep"},
          {tiny_model, "--tokens", token_ids(13), "--lengths", "16,32", "--samples", "2", "--out", "run"},
          with_rows(with_rows(rows, text_rows()), refused_interaction_rows(of_users)),
          {{"--stream-weights", same_numbers}}};
}

OptionTable capture() {
  const std::vector<OptionRow> rows = {
      {"model", {gated_model}},
      {"--prompt", {"the river"}, {demo_model, "!--tokens", "!--length", "--prompt", "the"}},
      {"--batch",
       {input_file("other.jsonl", "{\"prompt\": \"the river\"}\n")},
       {demo_model, "!--tokens", "!--length", "--batch", input_file("one.jsonl", "{\"prompt\": \"the\"}\n")}},
      {"--position", {"last"}},
      {"--hooks", {"blocks.1.attn.hook_z"}},
      {"--out", {"other.safetensors"}},
      {"--length", {"5"}},
      {"--dtype", {"float64"}},
      {"--pattern-memory", {"0"}, {"--hooks", "blocks.0.attn.hook_pattern"}, "memory"},
      {"--allow-extrapolation", {}, {"--length", "150"}},
      ignored_key_row(),
  };
  return {{"capture"},
          {tiny_model, "--tokens", token_ids(13), "--length", "8", "--hooks", "blocks.0.attn.hook_z", "--out",
           "kept.safetensors"},
          with_rows(rows, text_rows())};
}

OptionTable look() {
  const auto pieces = [](int end) {
    return input_file("segments-" + std::to_string(end) + ".json",
                      R"([{"name": "a", "begin": 0, "end": )" + std::to_string(end) + R"(}, {"name": "b", "begin": )" +
                          std::to_string(end) + R"(, "end": 8}])");
  };
  const std::string ids = input_file("eight.json", "[5, 7, 11, 13, 17, 19, 23, 29]");
  const std::vector<OptionRow> rows = {
      {"model", {gated_model}},
      {"--prompt", {"the river"}, {demo_model, "!--tokens", "--prompt", "the"}},
      {"--batch",
       {input_file("look.jsonl", "{\"prompt\": \"the\"}\n{\"prompt\": \"a\"}\n")},
       {demo_model, "!--tokens", "--batch", input_file("look-one.jsonl", "{\"prompt\": \"the\"}\n")}},
      {"--head", {"1.2"}},
      {"--query", {"3"}},
      {"--query", {"3"}, {"--head", "1.2"}},
      {"--query", {"3"}, {"--lens"}},
      {"--query", {"3"}, {"--json"}, "--query: "},
      {"--top-keys", {"2"}},
      {"--top-keys", {"2"}, {"--json"}},
      {"--next", {"3"}},
      {"--next", {"2"}, {"--lens"}},
      {"--lens"},
      {"--lens", {}, {"--json"}},
      {"--lens", {}, {"--out", "page"}},
      {"--answer", {"12"}, {"--answer", "11", "--foil", "30"}},
      {"--answer", {"11"}, {"--lens"}},
      {"--foil", {"31"}, {"--answer", "11", "--foil", "30"}},
      {"--foil", {"30"}, {"--lens", "--answer", "11"}},
      {"--segments", {pieces(3)}},
      {"--segments", {pieces(4)}, {"--segments", pieces(3)}},
      {"--segment-queries", {"2"}, {"--segments", pieces(3)}},
      {"--dtype", {"bfloat16"}},
      {"--allow-extrapolation", {}, {"--tokens", token_ids(13)}},
      {"--out", {"page"}},
      ignored_key_row(),
  };
  std::vector<OptionRow> all = with_rows(rows, text_rows());
  std::ranges::find(all, std::string("--tokens"), &OptionRow::option)->value = {input_file("two-ids.json", "[9, 8]")};
  return {{"look"}, {tiny_model, "--tokens", ids}, all, {{"--stream-weights", same_numbers}}};
}

OptionTable generate() {
  const std::vector<OptionRow> rows = {
      {"model", {gated_model}},
      {"--prompt", {"the river"}, {demo_model, "!--tokens", "--prompt", "the"}},
      {"--max-new", {"3"}},
      {"--greedy", {}, {"--temperature", "5"}, "--greedy"},
      {"--temperature", {"5"}},
      {"--top-p", {"0.99"}, {"--temperature", "5", "--top-p", "0.01"}},
      {"--seed", {"7"}, {"--temperature", "5"}},
      {"--seed", {"7"}, {}, "--seed: "},
      {"--dtype", {"bfloat16"}, {"--json"}},
      {"--allow-extrapolation",
       {},
       {"--max-new", "6", "--tokens",
        input_file(
            "long.json", "[" +
                             [] {
                               std::string ids = "5";
                               for (int i = 1; i < 126; ++i) ids += "," + std::to_string(3 + i % 50);
                               return ids;
                             }() +
                             "]")}},
      {"--statistics", {}, {"--json"}},
      {"--statistics"},
      ignored_key_row(),
  };
  const std::string few = input_file("four.json", "[5, 7, 11, 13]");
  std::vector<OptionRow> all = with_rows(rows, text_rows());
  std::ranges::find(all, std::string("--tokens"), &OptionRow::option)->value = {input_file("five.json", "[9, 8, 7]")};
  return {
      {"generate"},
      {tiny_model, "--tokens", few, "--max-new", "6"},
      all,
      {{"--stream-weights", same_numbers}, {"--ignore-eos", "the checkpoints here name no token that ends a text"}}};
}

OptionTable intervene() {
  const Words patching = {"!--tokens",
                          "!--lengths",
                          "!--samples",
                          "--clean",
                          input_file("clean.json", "[5, 7, 11, 13]"),
                          "--corrupt",
                          input_file("corrupt.json", "[5, 7, 12, 13]"),
                          "--set",
                          "blocks.0.attn.hook_z[head=1]=patch"};
  const std::string one = R"({"interventions": ["blocks.1.attn.hook_z[head=1]=zero"]})";
  const std::string two = R"({"interventions": ["blocks.1.attn.hook_z[head=2]=zero"]})";
  const std::vector<OptionRow> rows = {
      {"model", {gated_model}},
      {"--clean", {input_file("clean-2.json", "[5, 7, 11, 14]")}, patching},
      {"--corrupt", {input_file("corrupt-2.json", "[5, 8, 12, 13]")}, patching},
      {"--calibration", {token_ids(29)}, {"--set", "blocks.0.attn.hook_z[head=1]=mean"}},
      {"--lengths", {"16"}},
      {"--samples", {"2"}},
      {"--targets", {"4"}},
      {"--answer", {"12"}, {"--answer", "11", "--foil", "30"}},
      {"--foil", {"31"}, {"--answer", "11", "--foil", "30"}},
      {"--set", {"blocks.0.attn.hook_z[head=2]=zero"}},
      {"--interventions", {input_file("two.json", two)}, {"--interventions", input_file("one.json", one)}},
      {"--heads", {"1.2"}, {"!--set", "--heads", "0.1"}},
      {"--each-head", {}, {"!--set", "--each-layer"}},
      {"--each-kv-head", {}, {"!--set", "--each-layer"}},
      {"--each-layer"},
      {"--modes", {"resample"}, {"!--set", "--each-layer"}},
      {"--seed", {"7"}, {"!--set", "--each-layer", "--modes", "resample", "--samples", "5"}},
      {"--dtype", {"float64"}, {"--json"}},
      {"--approximate", {}, {"!--set", "--each-layer"}},
      {"--allow-extrapolation", {}, {"--lengths", "150", "--samples", "1"}},
      {"--out", {"run"}},
      ignored_key_row(),
  };
  return {{"intervene"},
          {tiny_model, "--tokens", token_ids(13), "--lengths", "32", "--samples", "3", "--set",
           "blocks.0.attn.hook_z[head=1]=zero"},
          with_rows(rows, text_rows()),
          {{"--stream-weights", same_numbers}}};
}

OptionTable gate_arms() {
  std::vector<OptionRow> rows = {
      {"model", {tiny_model}, {"--arms", "modulated"}},
      {"--calibration", {token_ids(31)}},
      {"--trained-length", {"8"}},
      {"--contexts", {"8,16"}},
      {"--targets", {"3"}},
      {"--samples", {"2"}},
      {"--calibration-samples", {"2"}},
      {"--few-documents", {}, {"!--few-documents"}},
      {"--arms", {"gain,one"}},
      {"--seed", {"7"}, {"--arms", "permuted"}},
      {"--dtype", {"float64"}, {"--json"}},
      {"--out", {"run"}},
      {"--report", {"page"}},
      {"--ignore-config-key", {"logit_scale"}, {odd_checkpoint(), "--arms", "modulated"}},
      {"--text", {some_text(2)}, {demo_model, "!--tokens", "--text", some_text(1), "--calibration", some_text(3)}},
      {"--tokens", {token_ids(17)}},
      {"--bos", {"never"}, {demo_model, "!--tokens", "--text", some_text(1), "--calibration", some_text(3)}},
  };
  return {{"gate-arms"},
          {gated_model, "--tokens", token_ids(13), "--trained-length", "16", "--calibration", token_ids(29),
           "--targets", "4", "--samples", "3", "--few-documents", "--contexts", "8,16,32", "--arms", "gain"},
          rows,
          {{"--stream-weights", same_numbers}}};
}

OptionTable inactive_heads() {
  const Words of_text = {demo_model,       "!--tokens", "--text", some_text(1), "--run",
                         swept_demo_run(), "--samples", "1",      "--draws",    "1"};
  std::vector<OptionRow> rows = {
      {"model", {gated_model}, {}, "--run"},
      {"--run", {swept_run(3)}},
      {"--lengths", {"16"}},
      {"--samples", {"3"}},
      {"--targets", {"4"}},
      {"--draws", {"3"}},
      {"--seed", {"7"}},
      {"--dtype", {"float64"}, {"--json"}},
      {"--allow-extrapolation", {}, {"--lengths", "150", "--samples", "1"}},
      {"--out", {"run"}},
      {"--report", {"page"}},
      {"--tokens", {token_ids(17)}},
      {"--text", {some_text(2)}, of_text},
      {"--bos", {"never"}, of_text},
      {"--ignore-config-key", {"logit_scale"}, {odd_checkpoint(), "--run", swept_odd_run()}},
  };
  return {{"inactive-heads"},
          {tiny_model, "--tokens", token_ids(13), "--lengths", "32", "--run", swept_run(2), "--samples", "2", "--draws",
           "2"},
          rows,
          {{"--stream-weights", same_numbers}}};
}

OptionTable hooks() {
  return {{"hooks"}, {tiny_model}, {{"model", {gated_model}}, ignored_key_row()}};
}

OptionTable inspect() {
  const std::vector<OptionRow> rows = {
      {"path", {gated_model}}, {"--length", {"64"}}, {"--dtype", {"bfloat16"}}, ignored_key_row()};
  std::vector<OptionRow> of_data = interaction_rows({histories()});
  for (OptionRow& row : of_data) {  // the data set is the argument itself
    const auto data = std::ranges::find(row.also, std::string("--data"));
    row.also.front() = *(data + 1);
    row.also.erase(data, data + 2);
  }
  return {{"inspect"}, {tiny_model}, with_rows(rows, of_data)};
}

OptionTable evaluate() {
  const std::vector<OptionRow> rows = {
      {"model", {gated_model}}, {"--length", {"16"}}, {"--dtype", {"bfloat16"}}, ignored_key_row()};
  return {{"evaluate", "language-model"},
          {tiny_model, "--tokens", token_ids(13), "--length", "32"},
          with_rows(rows, text_rows())};
}

}  // namespace

std::vector<OptionTable> tables_of_models() {
  return {sweep(),     capture(),        look(),  generate(), intervene(),
          gate_arms(), inactive_heads(), hooks(), inspect(),  evaluate()};
}

}  // namespace gainlens::testing
