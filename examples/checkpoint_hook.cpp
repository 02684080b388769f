// Looks inside a model while it runs: prints the shape of the values of every attention layer, and their mean norm.
// usage: checkpoint_hook CHECKPOINT
// CHECKPOINT is a folder in Hugging Face layout or a GGUF file, for example data/demo/gated.
#include "hooks/hooked_model.h"
#include "models/checkpoint/load_decoder.h"
#include "tokenizers/tokenizer.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

namespace hooks = gainlens::hooks;
namespace tokenizers = gainlens::tokenizers;

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: checkpoint_hook CHECKPOINT\n");
    return 2;
  }
  const auto model = gainlens::models::load_decoder(argv[1]);

  // Text becomes token ids. Most models expect a BOS token first; `encode` does not add it.
  const auto tokenizer = tokenizers::open_tokenizer(argv[1]);
  std::vector<tokenizers::TokenId> ids = tokenizer->encode("How much evidence is an attention head based on?");
  if (tokenizer->adds_bos()) ids.insert(ids.begin(), tokenizer->bos_token().value());
  const hooks::Tokens tokens{at::tensor(ids).to(at::kLong).unsqueeze(0)};  // [batch, position], a batch of one text

  // The observer is called at every site whose name matches the glob. `gainlens hooks CHECKPOINT` lists all sites with
  // their shapes. To change a tensor instead, use `Hooks::replace` with a function that returns the new tensor.
  hooks::Hooks observers;
  observers.observe(hooks::Glob("blocks.*.attn.hook_v"), [](const hooks::Site& site, const at::Tensor& value) {
    const auto norm = value.norm(2, -1).mean().item<double>();  // L2 over head_dim, mean over positions and heads
    std::printf("%s [%d, %d, %d, %d] mean norm %.3f\n", site.name.c_str(), static_cast<int>(value.size(0)),
                static_cast<int>(value.size(1)), static_cast<int>(value.size(2)), static_cast<int>(value.size(3)),
                norm);
  });

  const c10::InferenceMode no_gradients;
  const hooks::Stream stream = model->forward(tokens, hooks::ForwardOptions{}, observers);

  // The result is the residual stream after the last norm. `unembed` makes it logits [batch, vocabulary].
  const at::Tensor logits = model->unembed(stream.hidden.select(1, -1));
  std::printf("most likely next token: %d\n", static_cast<int>(logits.argmax(-1).item<std::int64_t>()));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());  // for example no checkpoint in this folder
  return 1;
}
