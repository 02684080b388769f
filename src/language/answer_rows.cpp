#include "language/answer_rows.h"

#include <algorithm>

namespace gainlens::language {

std::vector<tokenizers::TokenId> prompt_tokens(const AnswerTokens& tokens, const std::string& prompt) {
  std::vector<tokenizers::TokenId> ids = tokens.tokenizer.encode(prompt);
  if (tokens.bos) ids.insert(ids.begin(), *tokens.bos);
  return ids;
}

AnswerRow answer_row(const AnswerTokens& tokens, const std::string& prompt, const std::string& answer) {
  const std::vector<tokenizers::TokenId> begin = prompt_tokens(tokens, prompt);
  std::vector<tokenizers::TokenId> whole = prompt_tokens(tokens, prompt + " " + answer);
  AnswerRow row;
  row.joined = whole.size() <= begin.size() || !std::equal(begin.begin(), begin.end(), whole.begin());
  if (row.joined) {
    whole = begin;
    const std::vector<tokenizers::TokenId> alone = tokens.tokenizer.encode(" " + answer);
    whole.insert(whole.end(), alone.begin(), alone.end());
  }
  row.ids.assign(whole.begin(), whole.end());
  row.ids.push_back(tokens.end);
  row.first_answer = std::ssize(begin);
  return row;
}

std::string answer_in(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return {};
  std::string answer = text.substr(begin, text.find('\n', begin) - begin);
  answer.erase(answer.find_last_not_of(" \t\r") + 1);
  return answer;
}

}  // namespace gainlens::language
