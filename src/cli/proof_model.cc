#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "actor/solo_guest.h"
#include "cli/embedded_guests.h"
#include "cli/proof.h"

namespace driftwood::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTokens = 32;  // a run
constexpr int kRounds = 6;   // of interleaved runs; the first is not counted
constexpr int kGuestCalls = 20000;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double ms_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double, std::milli>(b - a).count();
}

// One run of kTokens tokens: when each became visible, and which they were.
struct Run {
  std::vector<Clock::time_point> at;
  std::vector<int32_t> tokens;

  void add_intervals(std::vector<double>* ms) const {
    for (size_t i = 1; i < at.size(); ++i) ms->push_back(ms_between(at[i - 1], at[i]));
  }
};

Result<Run> run_native(engine::Engine& engine, std::span<const int32_t> prompt) {
  Run run;
  DW_ASSIGN_OR_RETURN(const engine::SessionId session, engine.open({}));
  Status status = engine.append(session, prompt);
  for (int i = 0; status.is_ok() && i < kTokens; ++i) {
    status = engine.step(session);
    if (!status.is_ok()) break;
    const Result<int32_t> token = engine.sample(session);
    if (!token.is_ok()) {
      status = token.status();
      break;
    }
    run.at.push_back(Clock::now());
    run.tokens.push_back(*token);
    status = engine.append(session, std::span(&*token, 1));
  }
  const Status closed = engine.close(session);
  DW_RETURN_IF_ERROR(status);
  DW_RETURN_IF_ERROR(closed);
  return run;
}

// The `tokens` actor emits each token as 4 bytes; the sink notes when.
class GuestRuns {
 public:
  static Result<std::unique_ptr<GuestRuns>> open(ActorHost& host) {
    auto runs = std::unique_ptr<GuestRuns>(new GuestRuns(host));
    DW_ASSIGN_OR_RETURN(const auto module, host.load_bytes("tokens", tokens_guest()));
    actor::ActorOptions options;
    const std::string config = "max_tokens=" + std::to_string(kTokens) + "\n";
    options.config.assign(config.begin(), config.end());
    GuestRuns* self = runs.get();
    options.output = [self](const actor::Output& output) {
      const Clock::time_point now = Clock::now();
      const std::lock_guard lock(self->mutex_);
      int32_t token = -1;
      if (output.bytes.size() == sizeof token) std::memcpy(&token, output.bytes.data(), sizeof token);
      self->run_.at.push_back(now);
      self->run_.tokens.push_back(token);
    };
    DW_ASSIGN_OR_RETURN(runs->id_, host.spawn("tokens", module, std::move(options)));
    DW_RETURN_IF_ERROR(host.wait_turn(runs->id_));
    return runs;
  }
  ~GuestRuns() { static_cast<void>(host_.system().stop(id_)); }

  Result<Run> run(std::span<const int32_t> prompt) {
    DW_RETURN_IF_ERROR(host_.turn(id_, {reinterpret_cast<const char*>(prompt.data()), prompt.size_bytes()}));
    const std::lock_guard lock(mutex_);
    return std::exchange(run_, {});
  }

 private:
  explicit GuestRuns(ActorHost& host) : host_(host) {}
  ActorHost& host_;
  actor::ActorId id_ = 0;
  std::mutex mutex_;
  Run run_;
};

// The guest's share of a token alone: dw_on_token with its emit, as the event loop calls it.
Result<double> guest_share_us(ActorHost& host) {
  DW_ASSIGN_OR_RETURN(const auto module, host.load_bytes("tokens", tokens_guest()));
  DW_ASSIGN_OR_RETURN(const auto guest,
                      actor::SoloGuest::create(host.runtime(), module, "tokens", {}, nullptr, nullptr));
  using wasm::ValueType;
  DW_ASSIGN_OR_RETURN(
      const int handle,
      guest->instance().resolve(
          "dw_on_token",
          {{ValueType::kI64, ValueType::kI32, ValueType::kI32, ValueType::kI64}, {ValueType::kI32}}));
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < kGuestCalls; ++i) {
    const uint64_t args[4] = {1, 0, static_cast<uint64_t>(i), static_cast<uint64_t>(i)};
    uint64_t result[1] = {0};
    DW_RETURN_IF_ERROR(guest->instance().call_resolved(handle, args, result));
    guest->flush();
  }
  return ms_between(start, Clock::now()) * 1e3 / kGuestCalls;
}

Result<double> prefill_ms(engine::Engine& engine, std::span<const int32_t> ids) {
  std::vector<double> samples;
  for (int i = 0; i < 9; ++i) {
    DW_ASSIGN_OR_RETURN(const engine::SessionId session, engine.open({}));
    const Clock::time_point start = Clock::now();
    Status status = engine.append(session, ids);
    if (status.is_ok()) status = engine.step(session);
    samples.push_back(ms_between(start, Clock::now()));
    DW_RETURN_IF_ERROR(engine.close(session));
    DW_RETURN_IF_ERROR(status);
  }
  return median(samples);
}

}  // namespace

Result<ModelProof> prove_model(ActorHost& host) {
  engine::Engine& engine = *host.opened().engine;
  const int64_t vocab = engine.model().config.vocab_size;
  std::vector<int32_t> prompt;
  for (int64_t i = 1; i <= 5; ++i) prompt.push_back(static_cast<int32_t>(i * 97 % vocab));
  ModelProof proof;
  proof.model_load_ms = engine.model().load_ms;
  DW_ASSIGN_OR_RETURN(proof.prefill_5_ms, prefill_ms(engine, prompt));
  DW_ASSIGN_OR_RETURN(const auto guests, GuestRuns::open(host));
  std::vector<double> native_ms;
  std::vector<double> guest_ms;
  proof.same_tokens = true;
  for (int round = 0; round < kRounds; ++round) {
    DW_ASSIGN_OR_RETURN(const Run native, run_native(engine, prompt));
    DW_ASSIGN_OR_RETURN(const Run guest, guests->run(prompt));
    // The guest stops at an end token, which it does not report.
    const size_t n = std::min(native.tokens.size(), guest.tokens.size());
    proof.same_tokens = proof.same_tokens && n > 1 &&
                        std::equal(guest.tokens.begin(), guest.tokens.end(), native.tokens.begin());
    if (round == 0) continue;
    native.add_intervals(&native_ms);
    guest.add_intervals(&guest_ms);
  }
  proof.per_token_native_ms = median(native_ms);
  proof.per_token_ms = median(guest_ms);
  DW_ASSIGN_OR_RETURN(proof.guest_per_token_us, guest_share_us(host));
  return proof;
}

}  // namespace driftwood::cli
