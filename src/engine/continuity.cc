#include "engine/continuity.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace driftwood::engine {
namespace {

auto sampling_fields(const sampler::SamplerParams& p) {
  return std::tie(p.temperature, p.top_k, p.top_p, p.min_p, p.repetition_penalty, p.presence_penalty,
                  p.frequency_penalty, p.penalty_last_n, p.logit_bias, p.seed, p.stream);
}

std::string count_difference(const char* what, size_t a, size_t b) {
  return std::string(what) + ": " + std::to_string(a) + " against " + std::to_string(b);
}

std::string kv_difference(const FrozenSession& a, const FrozenSession& b) {
  if (!a.kv_files.empty() || !b.kv_files.empty()) return "KV in files, which is not compared";
  if (a.kv_blocks.size() != b.kv_blocks.size()) {
    return count_difference("KV blocks", a.kv_blocks.size(), b.kv_blocks.size());
  }
  for (size_t i = 0; i < a.kv_blocks.size(); ++i) {
    const std::span<const uint8_t> x = a.kv_blocks[i];
    const std::span<const uint8_t> y = b.kv_blocks[i];
    if (x.size() != y.size()) return count_difference("bytes of a KV block", x.size(), y.size());
    if (std::memcmp(x.data(), y.data(), x.size()) == 0) continue;
    const auto at = std::mismatch(x.begin(), x.end(), y.begin()).first - x.begin();
    return "KV block " + std::to_string(i) + ", byte " + std::to_string(at);
  }
  return "";
}

// A session that is closed when it goes.
class Entered {
 public:
  explicit Entered(PlacedSession placed) : placed_(placed) {}
  Entered(Entered&& other) noexcept : placed_(std::exchange(other.placed_, {})) {}
  Entered& operator=(Entered&&) = delete;
  ~Entered() {
    if (placed_.engine != nullptr) (void)placed_.engine->close(placed_.session);
  }
  Result<FrozenSession> freeze() const { return placed_.engine->freeze(placed_.session); }
  Result<int32_t> sample() const { return placed_.engine->sample(placed_.session); }
  Result<int64_t> rows() const { return placed_.engine->rows_computed(placed_.session); }
  SessionId id() const { return placed_.session; }
  PlacedSession leave() { return std::exchange(placed_, {}); }
  Status go_on(std::span<const int32_t> ids) const {
    DW_RETURN_IF_ERROR(placed_.engine->append(placed_.session, ids));
    return placed_.engine->step(placed_.session);
  }

 private:
  PlacedSession placed_;
};

// One boundary of the warm session: before and after its next token.
struct Boundary {
  FrozenSession before;
  int32_t token = 0;
  FrozenSession after;
};

// Walks one entered session over the boundary; what differed, or nothing.
Result<std::string> cross(const Entered& entered, const ContinuityWay& way, const Boundary& boundary,
                          ContinuityReport* report) {
  DW_ASSIGN_OR_RETURN(const FrozenSession before, entered.freeze());
  ++report->comparisons;
  if (auto difference = first_difference(boundary.before, before); !difference.empty()) return difference;
  DW_ASSIGN_OR_RETURN(const int32_t token, entered.sample());
  if (token != boundary.token) {
    return "drawn token: " + std::to_string(boundary.token) + " against " + std::to_string(token);
  }
  DW_RETURN_IF_ERROR(entered.go_on({&token, 1}));
  DW_ASSIGN_OR_RETURN(const FrozenSession after, entered.freeze());
  ++report->comparisons;
  if (auto difference = first_difference(boundary.after, after); !difference.empty()) {
    return "after the next token, " + difference;
  }
  DW_ASSIGN_OR_RETURN(const int64_t rows, entered.rows());
  const auto length = static_cast<int64_t>(after.tokens.size());
  if (!way.computes_all) {
    report->tokens_recomputed += rows - 1;
  } else if (rows != length) {
    return std::to_string(rows) + " of " + std::to_string(length) + " tokens were computed, expected all";
  }
  return std::string();
}

Status cross_all(Engine& engine, const Entered& warm, std::span<const ContinuityWay> ways, int64_t number,
                 ContinuityReport* report) {
  Boundary boundary;
  DW_ASSIGN_OR_RETURN(boundary.before, warm.freeze());
  DW_ASSIGN_OR_RETURN(boundary.token, warm.sample());
  std::vector<Entered> entered;
  for (const ContinuityWay& way : ways) {
    auto placed = way.enter(engine, warm.id());
    if (!placed.is_ok()) return placed.status().with_context(way.name);
    entered.emplace_back(*placed);
  }
  DW_RETURN_IF_ERROR(warm.go_on({&boundary.token, 1}));
  DW_ASSIGN_OR_RETURN(boundary.after, warm.freeze());
  for (size_t i = 0; i < ways.size() && report->first_difference.empty(); ++i) {
    auto difference = cross(entered[i], ways[i], boundary, report);
    if (!difference.is_ok()) return difference.status().with_context(ways[i].name);
    if (difference->empty()) continue;
    report->first_difference = ways[i].name + ", boundary " + std::to_string(number) + " (" +
                               std::to_string(boundary.before.tokens.size()) + " tokens): " + *difference;
  }
  return Status::ok();
}

}  // namespace

std::string first_difference(const FrozenSession& a, const FrozenSession& b) {
  if (a.max_tokens != b.max_tokens) return "max_tokens";
  if (a.tokens.size() != b.tokens.size()) return count_difference("tokens", a.tokens.size(), b.tokens.size());
  for (size_t i = 0; i < a.tokens.size(); ++i) {
    if (a.tokens[i] != b.tokens[i]) return "token " + std::to_string(i);
  }
  if (a.computed != b.computed) return "computed tokens";
  if (sampling_fields(a.sampling) != sampling_fields(b.sampling)) return "sampler parameters";
  if (a.has_logits != b.has_logits || a.logits.size() != b.logits.size()) {
    return count_difference("logits", a.logits.size(), b.logits.size());
  }
  for (size_t i = 0; i < a.logits.size(); ++i) {
    if (std::memcmp(&a.logits[i], &b.logits[i], sizeof(float)) != 0) return "logit " + std::to_string(i);
  }
  return kv_difference(a, b);
}

ContinuityWay cold_prefill() {
  return {"cold prefill", true, [](Engine& engine, SessionId warm) -> Result<PlacedSession> {
            DW_ASSIGN_OR_RETURN(const FrozenSession shape, engine.freeze(warm));
            DW_ASSIGN_OR_RETURN(const SessionId session, engine.open({shape.max_tokens, shape.sampling}));
            Entered entered({&engine, session});
            DW_RETURN_IF_ERROR(entered.go_on(shape.tokens));
            return entered.leave();
          }};
}

ContinuityWay forked() {
  return {"forked", false, [](Engine& engine, SessionId warm) -> Result<PlacedSession> {
            DW_ASSIGN_OR_RETURN(const SessionId session, engine.fork(warm, 0));
            return PlacedSession{&engine, session};
          }};
}

ContinuityWay thawed_in(Engine* elsewhere) {
  return {"thawed", false, [elsewhere](Engine& engine, SessionId warm) -> Result<PlacedSession> {
            DW_ASSIGN_OR_RETURN(const FrozenSession frozen, engine.freeze(warm));
            DW_ASSIGN_OR_RETURN(const SessionId session, elsewhere->thaw(frozen));
            return PlacedSession{elsewhere, session};
          }};
}

Result<ContinuityReport> verify_continuity(Engine& engine, std::span<const ContinuityWay> ways,
                                           const ContinuityOptions& options) {
  if (options.prompt.empty()) return invalid_argument("continuity needs a prompt of one token or more");
  if (options.boundaries < 1) {
    return invalid_argument("boundaries is " + std::to_string(options.boundaries) + ", expected 1 or more");
  }
  ContinuityReport report;
  report.ways = static_cast<int64_t>(ways.size()) + 1;
  DW_ASSIGN_OR_RETURN(const SessionId session, engine.open(options.session));
  const Entered warm({&engine, session});
  DW_RETURN_IF_ERROR(warm.go_on(options.prompt));
  for (int64_t b = 0; b < options.boundaries && report.first_difference.empty(); ++b) {
    DW_RETURN_IF_ERROR(cross_all(engine, warm, ways, b, &report));
    ++report.boundaries;
  }
  DW_ASSIGN_OR_RETURN(const int64_t rows, warm.rows());
  DW_ASSIGN_OR_RETURN(const int64_t length, engine.length(session));
  report.tokens_recomputed += rows - length;
  return report;
}

}  // namespace driftwood::engine
