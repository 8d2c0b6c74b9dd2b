// Which tokens begin and end a text, from the places where checkpoints say so.
//
// GGUF: tokenizer.ggml.{bos,eos,eot,eom}_token_id. Folders: tokenizer_config.json (bos_token, eos_token: a
// text, or an object with "content"), generation_config.json and config.json (eos_token_id: a number or a
// list of them). Besides, special tokens with the well-known spellings of end-of-turn marks end an answer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/checkpoint.h"

namespace driftwood::text {

// What a checkpoint says, before a vocabulary is at hand to check it against.
struct SpecialTokens {
  std::optional<int64_t> bos_id;
  std::optional<std::string> bos_text;
  std::vector<int64_t> end_ids;
  std::vector<std::string> end_texts;
  // Variables of the chat template: bos_token, eos_token, pad_token, unk_token.
  std::map<std::string, std::string> template_variables;
};

Result<SpecialTokens> read_special_tokens(const format::Checkpoint& checkpoint);

// Spellings that end an answer if they are special tokens of the vocabulary; `has(spelling)` says whether
// they are. Harmony (<|return|> is there) ends a message, not an answer, with <|end|>.
template <typename Has>
std::vector<std::string> end_marks_of_vocabulary(const Has& has) {
  std::vector<std::string> marks;
  for (const char* mark :
       {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|endoftext|>", "<|end_of_text|>",
        "<end_of_turn>", "<|end_of_turn|>", "<|return|>", "<|call|>", "<|eot|>", "<|eom|>", "<EOT>", "[EOT]",
        "<\xEF\xBD\x9C"
        "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"}) {
    if (has(mark) && !(std::string(mark) == "<|end|>" && has("<|return|>"))) marks.push_back(mark);
  }
  return marks;
}

}  // namespace driftwood::text
