#include "golden/models_page.h"

#include "core/error.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/torch_dtype.h"
#include "models/families/family.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace gainlens::golden {
namespace {

Row measured(const Golden& golden, at::ScalarType dtype) {
  const std::map<std::string, double> errors = measure(golden, dtype);
  Row row;
  row.checkpoint = golden.name;
  row.family = models::read_decoder_config(*golden.checkpoint).family;
  row.gguf = golden.name.ends_with(".gguf");
  row.dtype = models::dtype_name(dtype);
  row.logits = errors.at("logits");
  row.fused_logits = errors.at("logits.fused");
  row.logits_tolerance = tolerance(golden, dtype, "logits");
  row.within = true;
  double worst_share = -1;
  for (const auto& [name, error] : errors) {
    const double share = error / tolerance(golden, dtype, name);
    row.within = row.within && share <= 1;
    if (!name.starts_with("statistics.") || share <= worst_share) continue;
    worst_share = share;
    row.worst = name.substr(name.find('.') + 1);
    row.worst_error = error;
    row.worst_tolerance = tolerance(golden, dtype, name);
  }
  return row;
}

/// The largest value of `error` over the rows of a family in a dtype.
double largest(const std::vector<Row>& rows, std::string_view family, std::string_view dtype, double Row::*error) {
  double value = 0;
  for (const Row& row : rows) {
    if (row.family == family && row.dtype == dtype) value = std::max(value, row.*error);
  }
  return value;
}

/// The names of a family's goldens, each once.
std::string checkpoints(const std::vector<Row>& rows, std::string_view family) {
  std::set<std::string> names;
  for (const Row& row : rows) {
    if (row.family == family) names.insert(row.checkpoint);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

constexpr std::string_view beginning = R"(# Supported models

This page is written by `build/tests/golden/golden_table docs/models.md` from the table of families in
`src/models/families` and from measurements: do not edit it by hand.

A checkpoint is a folder in Hugging Face layout (`config.json` with safetensors), a Hugging Face cache folder, a GGUF
file, or the folder of a LoRA [adapter](finetune.md#adapters-lora). Every configuration key that may change the
computation is read or refused: a checkpoint either computes what its reference computes, or is refused with a reason.
`gainlens inspect MODEL` shows at once which of the two happens, for a checkpoint of any size.

Other keys of `config.json` are judged by their values. A key passes if it is null, if it says what is computed anyway
(another spelling of a size, or the absence of a part), if it cannot change a number (training, generation, names), or
if its value is what the reference takes for an absent key. A key that the reference does not read at all is ignored,
and every command that runs the model names it. Which keys the reference of a family reads is derived from the source of
Hugging Face transformers 5.23.0 and 4.57.1: its configuration class and its modeling code
(`tests/models/configs/make_reference_keys.py`). Still refused are

- a key that the reference reads and gainlens does not compute
- a key that the reference does not read, if other programs compute something by it (a window, another activation or
  position encoding), if it looks like a misspelt key of the family, or if the checkpoint comes with code of its own
  (`auto_map`), which may read it
- a class or code that is not the family's own (`architectures`, `auto_map`).

If you know that a refused key changes nothing, give `--ignore-config-key NAME`; the request of a sweep stores it.

Some keys are read by the reference and not used. gainlens follows the reference and says so: in Gemma 3
`attn_logit_softcapping` caps no score, and in its multimodal checkpoints `final_logit_softcapping` caps no logit.

The test suite holds 147 configurations of published checkpoints, as they were found in public repositories
(`tests/models/configs/published.json`). 111 are read. 7 of these families are refused: 3 with weights quantised by a
method that is not read, 2 that somebody edited for another program, an early file of GPT-J, and OPT 350M, whose norms
come after the sums. 29 belong to families that are not read, for example with Mamba layers. That file gives the reason
of each refusal.

| family | `model_type` | GGUF `general.architecture` | checkpoints that use it |
| --- | --- | --- | --- |
)";

constexpr std::string_view middle = R"(
GGUF files: versions 2 and 3, single and split; tensors in F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K,
Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS and MXFP4, whose values are bit for bit those of the public Python package `gguf`.
Settings that the metadata leave out (for example Gemma's local RoPE base, or StarCoder 2's window) are filled in from
the family's table, and `inspect` lists them. Of Qwen 3 Next and Qwen 3.5, blocks that predict several tokens
(`nextn_predict_layers`) are not used.

Tensors of a text model may begin with `model.language_model.` or `language_model.model.`, as in the text half of a
multimodal checkpoint. Experts may stand one by one or, as transformers 5 holds them, in stacks (`experts.gate_up_proj`,
`experts.down_proj`).

Quantised safetensors (`quantization_config`) of two kinds are read: MXFP4, in which gpt-oss is published, and FP8 E4M3
with a scale for each block of 128 × 128 numbers, as Qwen 3 FP8. Values are number times scale in float32, bit for bit.
With `activation_scheme: dynamic` the publishers' programs also round activations to FP8. gainlens does not: its
numbers are those of the weights, not of that arithmetic. Other methods (GPTQ, AWQ, FP8 with one scale for a tensor) are
refused: give the checkpoint from which they were made, or its GGUF file.

Qwen 3 Next and Qwen 3.5 have layers of linear attention (the gated delta rule) beside those of softmax attention. All
layers are computed. A sweep measures those of softmax attention, and says which these are: the others have no attention
weights.

LFM2 and LFM3 have layers of gated short convolutions beside those of softmax attention. They are computed and not
measured, for the same reason.

gpt-oss, Granite SWA (with experts too) and the layers with a window of MiMo V2 Flash have a learned sink in each head,
which takes a share of its weights. AFMoE, LFM3, Qwen 3.5, Qwen 3 Next and the gated checkpoints of Qwen 3 multiply
what a head returns by a gate. [method.md](method.md) defines both.

In MiMo V2 Flash, layers with a window have twice as many KV heads as the others. A run has room for the larger number
([Run files](run-file.md#axes)). Its values have another size than its keys, and a factor. The published
configuration is read; its weights were not tried. In that file `sliding_window_size` 128 counts the keys before the
query: with the query's own key a query sees 129, as in the reference.

DeepSeek V2 and V3 have latent attention: the keys and values of all heads are expanded from one short row for each
position. A sweep measures the expanded heads. Their values may have another size than their keys; d of the formulas is
that of the values. Layers that predict further tokens are left out.

Known and refused, with that reason: LFM2 with experts; Step 3.5 and Step 3.7, whose layers with a window have another
number of query heads than the others.

A model that `hf download NAME` has fetched is found by its name: `gainlens inspect Qwen/Qwen3-0.6B` looks into the
cache of the Hugging Face Hub (HF_HUB_CACHE, HF_HOME, or `~/.cache/huggingface/hub`). Nothing is downloaded.

## Reference and errors

Each family has small checkpoints of random weights under `tests/golden/models`. Families with GGUF files of their own
have some with the same weights under `tests/golden/gguf` (those of Mistral are llama's). The expected logits and
statistics come from Hugging Face transformers, run in float64 throughout, and from brute-force statistics over its
attention weights; versions and command are stored in each file. The test suite checks each of them with these
tolerances:

- float32: logits within 1e-5 of the largest logit; statistics within 1e-4 (|a - b| / max(|b|, 1e-3 max |b|), the worst
  layer, head and query)
- float64: 1e-9; 1e-6 where the checkpoint itself holds a rounded number (marked in `tests/golden`)
- bfloat16: the root mean square error at most twice that of the reference's own bfloat16 run

The test suite also sweeps each of them with the built program, in every dtype. It compares every dataset of `run.h5`
with numbers computed from the reference. The tolerances are the same, but ten times as large for variances. In
bfloat16, the error of a mean may be four times the reference's own error, and that of a variance eight times
(`tests/journeys/sweep_goldens.py`).

Largest errors over the checkpoints of a family, measured when this page was written:

| family | checkpoints | float32 logits | float32 statistics | float64 logits | float64 statistics | bfloat16 logits |
| --- | --- | --- | --- | --- | --- | --- |
)";

constexpr std::string_view real = R"(
Real checkpoints: the test suite runs tinystories-656K (a trained Llama, in the table) and, where `scripts/fetch-gemma3`
has fetched it, Gemma 3 270M from its GGUF file: [gemma3-270m.md](gemma3-270m.md).
)";

constexpr std::string_view end = R"(
## Adding a family

One file in `src/models/families` that maps the keys of `config.json` onto `DecoderConfig` and names the tensors, and
one line in `families/table.cpp`; new forward code only where the mathematics is new.
[developer-guide.md](developer-guide.md) walks through it.
)";

}  // namespace

std::vector<Row> measure_all() {
  std::vector<Row> rows;
  for (const std::string& name : golden_names()) {
    const Golden golden = read_golden(name);
    if (!golden.checkpoint) {
      fmt::print(stderr, "gainlens: {}: left out, because its shared data is absent\n", name);
      continue;
    }
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) rows.push_back(measured(golden, dtype));
  }
  return rows;
}

std::string models_page(const std::vector<Row>& rows, const std::string& support) {
  std::string page(beginning);
  for (const models::Family& family : models::families()) {
    page += fmt::format("| {} | `{}` | {} | {} |\n", family.title, family.name,
                        family.gguf.architecture.empty() ? "" : fmt::format("`{}`", family.gguf.architecture),
                        family.examples);
  }
  page += middle;
  for (const models::Family& family : models::families()) {
    page += fmt::format(
        "| {} | {} | {:.1e} | {:.1e} | {:.1e} | {:.1e} | {:.1e} |\n", family.title, checkpoints(rows, family.name),
        largest(rows, family.name, "float32", &Row::logits), largest(rows, family.name, "float32", &Row::worst_error),
        largest(rows, family.name, "float64", &Row::logits), largest(rows, family.name, "float64", &Row::worst_error),
        largest(rows, family.name, "bfloat16", &Row::logits));
  }
  page += real;
  page += "\n" + support;
  page += end;
  return page;
}

}  // namespace gainlens::golden
