#include "text/tokenizer.h"

#include <algorithm>

#include "text/bridge_call.h"
#include "text/special_tokens.h"
#include "text/vocabulary.h"

namespace driftwood::text {
namespace {

class BridgeTokenizer final : public Tokenizer {
 public:
  BridgeTokenizer(TokenizerHandle handle, const SpecialTokens& special) : handle_(std::move(handle)) {
    for (int64_t id : special.end_ids) add_end(id);
    for (const std::string& text : special.end_texts) add_end(token_id(text).value_or(-1));
    const auto has = [&](const char* mark) { return is_special(token_id(mark)); };
    for (const std::string& mark : end_marks_of_vocabulary(has)) add_end(token_id(mark).value_or(-1));
    if (special.bos_text) bos_ = token_id(*special.bos_text);
    if (!bos_ && special.bos_id && in_vocabulary(*special.bos_id))
      bos_ = static_cast<int32_t>(*special.bos_id);
  }

  Result<std::vector<int32_t>> encode(std::string_view text, const EncodeOptions& options) const override {
    BridgeIds ids;
    BridgeBytes error;
    const dwb_status code = dwb_tokenizer_encode(handle_.get(), text.data(), text.size(), options.add_special,
                                                 options.parse_special, ids.out(), error.out());
    DW_RETURN_IF_ERROR(bridge_status(code, error));
    return std::vector<int32_t>(ids.begin(), ids.end());
  }

  Result<std::string> decode(const int32_t* ids, size_t count, bool show_special) const override {
    std::vector<uint32_t> checked(count);
    for (size_t i = 0; i < count; ++i) {
      if (ids[i] < 0) {
        return invalid_argument("token " + std::to_string(ids[i]) + " at place " + std::to_string(i) +
                                ": ids are not negative");
      }
      checked[i] = static_cast<uint32_t>(ids[i]);
    }
    BridgeBytes bytes;
    BridgeBytes error;
    const dwb_status code =
        dwb_tokenizer_decode(handle_.get(), checked.data(), count, !show_special, bytes.out(), error.out());
    DW_RETURN_IF_ERROR(bridge_status(code, error));
    return bytes.str();
  }

  Result<std::string> token_bytes(int32_t id) const override {
    if (id < 0) return invalid_argument("no token has id " + std::to_string(id));
    BridgeBytes bytes;
    BridgeBytes error;
    const dwb_status code = dwb_tokenizer_token_bytes(handle_.get(), static_cast<uint32_t>(id), bytes.out(),
                                                      /*is_special=*/nullptr, error.out());
    DW_RETURN_IF_ERROR(bridge_status(code, error));
    return bytes.str();
  }

  std::optional<int32_t> token_id(std::string_view token) const override {
    uint32_t id = 0;
    if (dwb_tokenizer_token_to_id(handle_.get(), token.data(), token.size(), &id) != DWB_OK)
      return std::nullopt;
    return static_cast<int32_t>(id);
  }

  int64_t vocab_size() const override {
    return static_cast<int64_t>(dwb_tokenizer_vocab_size(handle_.get()));
  }
  std::optional<int32_t> bos() const override { return bos_; }
  const std::vector<int32_t>& end_tokens() const override { return end_tokens_; }

 private:
  bool in_vocabulary(int64_t id) const { return id >= 0 && id < vocab_size(); }

  // Each once, in the order found. An id that no token has never comes up, so it needs no complaint.
  void add_end(int64_t id) {
    if (!in_vocabulary(id)) return;
    const int32_t token = static_cast<int32_t>(id);
    if (std::find(end_tokens_.begin(), end_tokens_.end(), token) == end_tokens_.end())
      end_tokens_.push_back(token);
  }

  bool is_special(std::optional<int32_t> id) const {
    int special = 0;
    BridgeBytes bytes;
    return id &&
           dwb_tokenizer_token_bytes(handle_.get(), static_cast<uint32_t>(*id), bytes.out(), &special,
                                     /*err=*/nullptr) == DWB_OK &&
           special != 0;
  }

  TokenizerHandle handle_;
  std::optional<int32_t> bos_;
  std::vector<int32_t> end_tokens_;
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_checkpoint(const format::Checkpoint& checkpoint) {
  DW_ASSIGN_OR_RETURN(TokenizerHandle handle, load_vocabulary(checkpoint));
  DW_ASSIGN_OR_RETURN(const SpecialTokens special, read_special_tokens(checkpoint));
  return std::shared_ptr<const Tokenizer>(std::make_shared<BridgeTokenizer>(std::move(handle), special));
}

}  // namespace driftwood::text
