// agent: tries several continuations of one prompt as forks with different random streams and keeps the likeliest.
#include <math.h>

#include "driftwood.hpp"

namespace {

constexpr int kMostBranches = 8;

struct Branch {
  dw::Session session;
  dw::Text text;
  dw::Tokens tokens;
  double sum = 0;  // of log-probabilities
  double mean() const { return tokens.size() == 0 ? -INFINITY : sum / tokens.size(); }
};

dw::Text config;
float* row = nullptr;
int32_t vocabulary = 0;

double log_probability(int32_t token) {
  float max = row[0];
  for (int32_t i = 1; i < vocabulary; ++i) max = row[i] > max ? row[i] : max;
  double sum = 0;
  for (int32_t i = 0; i < vocabulary; ++i) sum += exp(double(row[i] - max));
  return row[token] - max - log(sum);
}

// Draws up to `most` tokens into the branch. Negative: an error code.
int32_t explore(Branch& branch, int64_t most) {
  for (int64_t i = 0; i < most; ++i) {
    int32_t result = branch.session.logits(row, uint32_t(vocabulary));
    if (result < 0) return result;
    const int32_t token = branch.session.sample();
    if (token < 0) return token;
    if (dw_end_token(token) == 1) return 0;
    branch.sum += log_probability(token);
    branch.tokens.push(token);
    result = branch.session.append(token);
    if (result == 0) result = branch.session.step();
    if (result < 0) return result;
    char text[256];
    int32_t length = dw_token_text(token, text, sizeof text);
    if (length > int32_t(sizeof text)) length = sizeof text;
    if (length > 0) branch.text.add(text, uint32_t(length));
  }
  return 0;
}

void report(Branch* branches, int count) {
  int best = 0;
  for (int i = 1; i < count; ++i) {
    if (branches[i].mean() > branches[best].mean()) best = i;
  }
  dw::Text json;
  json.add("{\"best\":").integer(best).add(",\"mean_logprob\":[");
  for (int i = 0; i < count; ++i) {
    if (i != 0) json.add(",");
    if (branches[i].tokens.size() == 0) {
      json.add("null");
    } else {
      json.number(branches[i].mean());
    }
  }
  json.add("],\"tokens\":[");
  for (uint32_t i = 0; i < branches[best].tokens.size(); ++i) {
    if (i != 0) json.add(",");
    json.integer(branches[best].tokens.data()[i]);
  }
  json.add("],\"text\":").json(branches[best].text.data(), branches[best].text.size()).add("}\n");
  if (dw_reply(json.data(), json.size()) < 0) dw_log_failure("reply");
}

bool read_prompt(const dw::Text& message, dw::Tokens& tokens) {
  uint32_t length = 0;
  const char* input = dw_config_find(config.raw(), "input", &length);
  if (input != nullptr && length == 3 && memcmp(input, "ids", 3) == 0) {
    for (uint32_t i = 0; i + 4 <= message.size(); i += 4) {
      int32_t id;
      memcpy(&id, message.data() + i, 4);
      tokens.push(id);
    }
    return tokens.size() != 0;
  }
  dw::Text json, prompt;
  json.add("[{\"role\":\"user\",\"content\":").json(message.data(), message.size()).add("}]");
  if (dw_render_chat(json.raw(), DW_CHAT_GENERATION_PROMPT, prompt.raw()) >= 0) {
    return dw_tokenize_text(prompt.data(), prompt.size(), DW_TOKENIZE_PARSE_SPECIAL, tokens.raw()) > 0;
  }
  return dw_tokenize_text(message.data(), message.size(), DW_TOKENIZE_ADD_SPECIAL, tokens.raw()) > 0;
}

void solve(const dw::Text& message) {
  dw_session_params params = dw_session_defaults();
  params.sampling = dw_config_sampling(config.raw());
  if (params.sampling.temperature == 0) params.sampling.temperature = 0.8f;
  dw::Session root = dw::Session::open(params);
  dw::Tokens prompt;
  if (!root.valid()) return dw_log_failure("session_open");
  if (!read_prompt(message, prompt)) return dw_log_failure("prompt");
  if (root.append(prompt.data(), prompt.size()) < 0 || root.step() < 0) return dw_log_failure("prompt");
  int count = int(dw_config_number(config.raw(), "branches", 3));
  count = count < 1 ? 1 : count > kMostBranches ? kMostBranches : count;
  const int64_t most = int64_t(dw_config_u64(config.raw(), "max_tokens", 16));
  Branch branches[kMostBranches];
  for (int i = 0; i < count; ++i) {
    branches[i].session = root.fork(uint64_t(i + 1));
    if (!branches[i].session.valid()) return dw_log_failure("session_fork");
    if (explore(branches[i], most) < 0) return dw_log_failure("explore");
  }
  report(branches, count);
}

}  // namespace

DW_ON_MESSAGE(sender, length) {
  (void)sender;
  dw::Text message;
  if (dw_read_config(config.raw()) < 0 || dw_read_message(message.raw(), length) < 0) return dw_log_failure("read");
  vocabulary = dw_vocab_size();
  if (vocabulary < 0) return dw_log_failure("vocab_size");
  if (row == nullptr) row = static_cast<float*>(malloc(uint32_t(vocabulary) * sizeof(float)));
  if (row == nullptr) __builtin_trap();
  solve(message);
}
