// From a checkpoint to the bridge's tokenizer object.
#pragma once

#include <memory>

#include "base/status.h"
#include "dw_bridge.h"
#include "format/checkpoint.h"

namespace driftwood::text {

struct FreeTokenizer {
  void operator()(dwb_tokenizer* tokenizer) const { dwb_tokenizer_free(tokenizer); }
};
using TokenizerHandle = std::unique_ptr<dwb_tokenizer, FreeTokenizer>;

// GGUF: byte-level BPE ("gpt2") only, unimplemented otherwise. A vocabulary that is inconsistent (two tokens
// with one spelling, merges of tokens that do not exist, lists of different lengths) is invalid_argument
// naming the key and the place. Folders: tokenizer.json, whatever it holds. not_found: the checkpoint carries
// no vocabulary.
Result<TokenizerHandle> load_vocabulary(const format::Checkpoint& checkpoint);

}  // namespace driftwood::text
