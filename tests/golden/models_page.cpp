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

/// A column of the errors of the families.
struct ErrorColumn {
  std::string_view name, dtype;
  double Row::*error;
};

constexpr ErrorColumn error_columns[] = {{"float32_logits", "float32", &Row::logits},
                                         {"float32_statistics", "float32", &Row::worst_error},
                                         {"float64_logits", "float64", &Row::logits},
                                         {"float64_statistics", "float64", &Row::worst_error},
                                         {"bfloat16_logits", "bfloat16", &Row::logits}};

/// The largest error in a column over the rows of a family.
double largest(const std::vector<Row>& rows, std::string_view family, const ErrorColumn& column) {
  double value = 0;
  for (const Row& row : rows) {
    if (row.family == family && row.dtype == column.dtype) value = std::max(value, row.*column.error);
  }
  return value;
}

/// The names of a family's goldens, each once.
std::string checkpoints(const std::vector<Row>& rows, std::string_view family) {
  std::set<std::string> names;
  for (const Row& row : rows) {
    if (row.family == family) names.insert(row.checkpoint);
  }
  return fmt::format("{}", fmt::join(names, " "));
}

constexpr std::string_view beginning = R"(# Supported models

With this page you can find out whether gainlens reads your checkpoint, which commands compute it, and how close they
come to the reference. It is written by `build/tests/golden/golden_table docs/models.md`: do not edit it by hand.

A checkpoint is a folder in Hugging Face layout (`config.json` with safetensors), a Hugging Face cache folder, a GGUF
file, or the folder of a LoRA [adapter](finetune.md#adapters-lora). It either computes what its reference computes, or
is refused with a reason. `gainlens inspect MODEL` shows at once which of the two happens, for a checkpoint of any
size. A model that `hf download NAME` has fetched is found by its name (`gainlens inspect Qwen/Qwen3-0.6B`) in the
cache of the Hugging Face Hub (HF_HUB_CACHE, HF_HOME, or `~/.cache/huggingface/hub`). Nothing is downloaded.

Every key of `config.json` that may change the computation is read or refused. Another key passes if it is null, if it
says what is computed anyway, if it cannot change a number, or if its value is what the reference takes for an absent
key. A key that the reference does not read at all is ignored, and every command that runs the model names it. Which
keys the reference of a family reads is derived from the source of Hugging Face transformers 5.23.0 and 4.57.1
(`tests/models/configs/make_reference_keys.py`). Refused are

- a key that the reference reads and gainlens does not compute
- a key that the reference does not read, if other programs compute something by it (a window, another activation or
  position encoding), if it looks like a misspelt key of the family, or if the checkpoint comes with code of its own
  (`auto_map`), which may read it
- a class or code that is not the family's own (`architectures`, `auto_map`).

If you know that a refused key changes nothing, give `--ignore-config-key NAME`; the request of a sweep stores it.
Some keys are read by the reference and not used: in Gemma 3 `attn_logit_softcapping` caps no score, and in its
multimodal checkpoints `final_logit_softcapping` caps no logit. gainlens follows the reference and says so.

The test suite holds 147 configurations of published checkpoints (`tests/models/configs/published.json`, with the
reason of each refusal). 111 are read. 7 of these families are refused. 29 belong to families that are not read, for
example with Mamba layers.

| family | `model_type` | GGUF `general.architecture` | checkpoints that use it |
| --- | --- | --- | --- |
)";

constexpr std::string_view middle = R"(
**GGUF files**: versions 2 and 3, single and split; tensors in F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K,
Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS and MXFP4, whose values are bit for bit those of the public Python package `gguf`.
Settings that the metadata leave out are filled in from the family's table, and `inspect` lists them.

**Quantised safetensors** (`quantization_config`): MXFP4, in which gpt-oss is published, and FP8 E4M3 with a scale for
each block of 128 × 128 numbers, as Qwen 3 FP8. Values are number times scale in float32, bit for bit. With
`activation_scheme: dynamic` the publishers' programs also round activations to FP8; gainlens does not. Other methods
(GPTQ, AWQ, FP8 with one scale for a tensor) are refused: give the checkpoint from which they were made, or its GGUF
file.

**Names of tensors** may begin with `model.language_model.` or `language_model.model.`. Experts may stand one by one
or, as transformers 5 holds them, in stacks (`experts.gate_up_proj`, `experts.down_proj`).

**What a sweep measures**

- Qwen 3 Next and Qwen 3.5 have layers of linear attention (the gated delta rule), LFM2 and LFM3 of gated short
  convolutions. All layers are computed; a sweep measures those of softmax attention, and says which these are.
- gpt-oss, Granite SWA (with experts too) and the layers with a window of MiMo V2 Flash have a learned sink in each
  head. AFMoE, LFM3, Qwen 3.5, Qwen 3 Next and the gated checkpoints of Qwen 3 multiply what a head returns by a gate.
  [Method](method.md#learned-sink-logits) defines both.
- MiMo V2 Flash has twice as many KV heads in layers with a window ([Run files](run-file.md#axes)), and values of
  another size than its keys, with a factor. Its `sliding_window_size` 128 counts the keys before the query, as in the
  reference. Its published configuration is read; its weights were not tried.
- DeepSeek V2 and V3 have latent attention: a sweep measures the expanded heads, and d of the formulas is that of the
  values.
- Layers that predict further tokens are left out (DeepSeek, and `nextn_predict_layers` of Qwen 3 Next and Qwen 3.5).

Known and refused: LFM2 with experts; Step 3.5 and Step 3.7, whose layers with a window have another number of query
heads than the others.

## Reference and errors

Each family has small checkpoints of random weights (`tests/golden/models`), and the same as GGUF files where it has
some (`tests/golden/gguf`). The expected logits and statistics come from Hugging Face transformers in float64, and
from brute-force statistics over its attention weights. The test suite checks each of them with these tolerances:

- float32: logits within 1e-5 of the largest logit; statistics within 1e-4 (|a - b| / max(|b|, 1e-3 max |b|), the worst
  layer, head and query)
- float64: 1e-9; 1e-6 where the checkpoint itself holds a rounded number (marked in `tests/golden`)
- bfloat16: the root mean square error at most twice that of the reference's own bfloat16 run

It also sweeps each of them in every dtype, and compares every dataset of `run.h5` with numbers computed from the
reference (`tests/journeys/sweep_goldens.py`): the same tolerances, ten times as large for variances. In bfloat16 the
error of a mean may be four times the reference's own, and that of a variance eight times.

Largest errors, measured when this page was written, and the family that has them. [Every family with its
checkpoints](models/errors.csv):

| | float32 logits | float32 statistics | float64 logits | float64 statistics | bfloat16 logits |
| --- | --- | --- | --- | --- | --- |
)";

constexpr std::string_view real = R"(
Real checkpoints: the test suite runs tinystories-656K (a trained Llama) and, where `scripts/fetch-gemma3` has fetched
it, [Gemma 3 270M](gemma3-270m.md) from its GGUF file.
)";

constexpr std::string_view end = R"(
## Adding a family

[The developer guide](developer-guide.md#adding) walks through it: a file in `src/models/families` and a line in
`families/table.cpp`.
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
  std::string errors = "| error |", titles = "| family |";
  for (const ErrorColumn& column : error_columns) {
    const models::Family* worst = &models::families().front();
    for (const models::Family& family : models::families()) {
      if (largest(rows, family.name, column) > largest(rows, worst->name, column)) worst = &family;
    }
    errors += fmt::format(" {:.1e} |", largest(rows, worst->name, column));
    titles += fmt::format(" {} |", worst->title);
  }
  page += errors + "\n" + titles + "\n";
  page += real;
  page += "\n" + support;
  page += end;
  return page;
}

std::string errors_csv(const std::vector<Row>& rows) {
  std::string text = "family,checkpoints";
  for (const ErrorColumn& column : error_columns) text += fmt::format(",{}", column.name);
  for (const models::Family& family : models::families()) {
    text += fmt::format("\n\"{}\",{}", family.title, checkpoints(rows, family.name));
    for (const ErrorColumn& column : error_columns) text += fmt::format(",{:.1e}", largest(rows, family.name, column));
  }
  return text + "\n";
}

}  // namespace gainlens::golden
