#include "language/evaluate_language_model.h"

#include "core/check.h"
#include "core/progress.h"
#include "sweep/likelihood.h"
#include "sweep/one_sequence.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace gainlens::language {

double unigram_entropy(std::span<const tokenizers::TokenId> tokens) {
  ASSERT(!tokens.empty(), "unigram entropy: there are no tokens");
  std::map<tokenizers::TokenId, std::int64_t> counts;
  for (const tokenizers::TokenId token : tokens) ++counts[token];
  double entropy = 0;
  for (const auto& [token, count] : counts) {
    const double frequency = static_cast<double>(count) / static_cast<double>(tokens.size());
    entropy -= frequency * std::log(frequency);
  }
  return entropy;
}

LanguageModelLoss evaluate_language_model(hooks::HookedModel& model, std::span<const tokenizers::TokenId> tokens,
                                          std::optional<tokenizers::TokenId> bos, std::int64_t context, bool quiet) {
  CHECK(tokens.size() >= 2, "text: {} token(s); at least 2 are needed", tokens.size());
  CHECK(context >= 2, "--length: {}; at least 2 tokens are needed to predict one from another", context);
  const c10::InferenceMode inference;
  LanguageModelLoss result;
  result.tokens = static_cast<std::int64_t>(tokens.size());
  result.unigram_entropy = unigram_entropy(tokens);
  const std::size_t stride = static_cast<std::size_t>(context) - (bos ? 1 : 0);
  Progress progress("evaluate", static_cast<double>(tokens.size()), "tokens", quiet);
  double sum = 0;
  std::vector<std::pair<double, double>> chunks;  // loss of its tokens, and their number
  for (std::size_t begin = 0; begin < tokens.size(); begin += stride) {
    const auto text = tokens.subspan(begin, std::min(stride, tokens.size() - begin));
    std::vector<tokenizers::TokenId> chunk(bos ? 1 : 0, bos.value_or(0));
    chunk.insert(chunk.end(), text.begin(), text.end());
    if (chunk.size() < 2) break;  // a single last token without a BOS cannot be predicted
    const auto length = static_cast<std::int64_t>(chunk.size());
    const hooks::Stream stream = model.forward(sweep::one_sequence(chunk), {}, {});
    const double chunk_loss = sweep::mean_negative_log_likelihood(model, stream.hidden, chunk);
    chunks.emplace_back(chunk_loss, static_cast<double>(length - 1));
    sum += chunk_loss * static_cast<double>(length - 1);
    result.predicted += length - 1;
    ++result.chunks;
    progress.advance(static_cast<double>(text.size()), static_cast<double>(text.size()),
                     fmt::format("chunk {}", result.chunks));
  }
  result.loss = sum / static_cast<double>(result.predicted);
  // The loss is a ratio of two sums over chunks. Source: Cochran, Sampling Techniques, section 2.11.
  double squares = 0;
  for (const auto& [loss, predicted] : chunks)
    squares += predicted * predicted * (loss - result.loss) * (loss - result.loss);
  const auto count = static_cast<double>(chunks.size());
  result.standard_error = chunks.size() < 2
                              ? std::numeric_limits<double>::quiet_NaN()
                              : std::sqrt(squares * count / (count - 1)) / static_cast<double>(result.predicted);
  return result;
}

}  // namespace gainlens::language
