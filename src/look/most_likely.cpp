#include "look/most_likely.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gainlens::look {

std::vector<NextToken> most_likely(const at::Tensor& logits, std::int64_t count,
                                   const tokenizers::Tokenizer* tokenizer) {
  const at::Tensor wide = logits.to(at::kCPU, at::kDouble);
  count = std::min(count, wide.size(0));
  // A sort of the whole vocabulary would take longer than the layer itself.
  const at::Tensor least = std::get<0>(wide.topk(count)).min();
  const at::Tensor ids = (wide >= least).nonzero().flatten();  // rising: equal ones stay in this order
  const at::Tensor order = std::get<1>(at::sort(wide.index_select(0, ids), /*stable=*/true, -1, /*descending=*/true));
  const at::Tensor probability = wide.softmax(-1);
  std::vector<NextToken> next;
  for (std::int64_t rank = 0; rank < count; ++rank) {
    const auto id = ids[order[rank]].item<std::int64_t>();
    const auto token = static_cast<tokenizers::TokenId>(id);
    next.push_back({token, tokenizer == nullptr ? std::string() : tokenizer->token_text(token), wide[id].item<double>(),
                    probability[id].item<double>()});
  }
  return next;
}

}  // namespace gainlens::look
