// Tokenizer and chat template: thin wrappers of the bridge (tokenizers, minijinja). Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/checkpoint.h"

namespace driftwood::text {

struct EncodeOptions {
  bool add_special = false;    // bos/eos as the model's tokenizer says
  bool parse_special = false;  // special tokens written in the text become their ids
};

class Tokenizer {
 public:
  // From tokenizer.json of a folder or the vocabulary in a GGUF file. not_found: the checkpoint carries none.
  static Result<std::shared_ptr<const Tokenizer>> from_checkpoint(const format::Checkpoint& checkpoint);
  virtual ~Tokenizer() = default;

  virtual Result<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options) const = 0;
  // Raw bytes: a token may end inside a UTF-8 character. Special tokens are skipped unless `show_special`.
  virtual Result<std::string> decode(const int32_t* ids, size_t count, bool show_special) const = 0;
  virtual Result<std::string> token_bytes(int32_t id) const = 0;
  virtual std::optional<int32_t> token_id(std::string_view token) const = 0;
  virtual int64_t vocab_size() const = 0;
  virtual std::optional<int32_t> bos() const = 0;
  // Tokens that end an answer: eos, end-of-turn tokens of the template's family, generation_config's list.
  virtual const std::vector<int32_t>& end_tokens() const = 0;
};

// Holds back the tail of a token stream that is not yet a whole UTF-8 character.
class Utf8Assembler {
 public:
  // Appends bytes; returns the longest prefix that is complete (invalid bytes become U+FFFD).
  std::string push(std::string_view bytes);
  std::string finish();

 private:
  std::string pending_;
};

class ChatTemplate {
 public:
  // not_found: the checkpoint has no template (base models).
  static Result<std::shared_ptr<const ChatTemplate>> from_checkpoint(const format::Checkpoint& checkpoint);
  virtual ~ChatTemplate() = default;
  // `messages_json`: [{"role","content"}...]; `tools_json` may be empty.
  virtual Result<std::string> render(std::string_view messages_json, bool add_generation_prompt,
                                     std::string_view tools_json) const = 0;
};

}  // namespace driftwood::text
