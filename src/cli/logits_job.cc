#include "cli/logits_job.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <thread>

#include "format/safetensors.h"
#include "format/safetensors_writer.h"
#include "os/mapped_file.h"

namespace driftwood::cli {
namespace {

constexpr int64_t kMaxResultBytes = int64_t{16} << 30;

Result<int32_t> to_token_id(int64_t value, size_t index) {
  if (value < 0 || value > INT32_MAX) {
    return invalid_argument("token " + std::to_string(index) + " is " + std::to_string(value) +
                            ", not a token id");
  }
  return static_cast<int32_t>(value);
}

// Sessions that keep the engine busy from other threads until they are stopped.
class Companions {
 public:
  Companions(engine::Engine& engine, const std::vector<int32_t>& ids, int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, &engine, ids, i] { keep_stepping(engine, ids, i); });
    }
  }
  ~Companions() {
    stop_.store(true);
    for (std::thread& t : threads_) t.join();
  }
  Status status() const {
    return failed_.load() ? internal_error("a companion session failed") : Status::ok();
  }

 private:
  void keep_stepping(engine::Engine& engine, std::vector<int32_t> ids, int which) {
    // Other prompts than the one under test: rotated, so that lengths of pieces and positions differ.
    std::rotate(ids.begin(), ids.begin() + static_cast<int64_t>(ids.size()) * ((which + 1) % 5) / 5,
                ids.end());
    const int64_t piece = 1 + which * 5;
    while (!stop_.load()) {
      auto session = engine.open({});
      if (!session.is_ok()) return failed_.store(true);
      for (size_t at = 0; at < ids.size() && !stop_.load(); at += piece) {
        const size_t n = std::min<size_t>(piece, ids.size() - at);
        Status status = engine.append(*session, std::span(ids).subspan(at, n));
        if (status.is_ok()) status = engine.step(*session);
        if (!status.is_ok()) failed_.store(true);
      }
      if (!engine.close(*session).is_ok()) failed_.store(true);
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::vector<std::thread> threads_;
};

Status run_prompt(engine::Engine& engine, engine::SessionId session, const LogitsRequest& request,
                  LogitsResult* result) {
  const int64_t vocab = result->vocab_size;
  const int64_t total = static_cast<int64_t>(request.ids.size());
  const engine::LogitsSink sink = [&](int64_t position, std::span<const float> row) {
    std::memcpy(result->logits.data() + position * vocab, row.data(),
                static_cast<size_t>(vocab) * sizeof(float));
  };
  const int64_t piece = request.chunk > 0 ? request.chunk : total;
  for (int64_t at = 0; at < total; at += piece) {
    const int64_t n = std::min(piece, total - at);
    DW_RETURN_IF_ERROR(engine.append(session, std::span(request.ids).subspan(at, n)));
    DW_RETURN_IF_ERROR(engine.step(session, &sink));
  }
  return Status::ok();
}

Status run_greedy(engine::Engine& engine, engine::SessionId session, int64_t count, LogitsResult* result) {
  for (int64_t i = 0; i < count; ++i) {
    DW_ASSIGN_OR_RETURN(const int32_t token, engine.sample(session));
    result->greedy.push_back(token);
    if (i + 1 == count) break;
    DW_RETURN_IF_ERROR(engine.append(session, std::span(&token, 1)));
    DW_RETURN_IF_ERROR(engine.step(session));
  }
  return Status::ok();
}

}  // namespace

Result<std::vector<int32_t>> parse_ids(const std::string& text) {
  std::vector<int32_t> ids;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (next != end && *next != ',')) {
      return invalid_argument("--ids: '" + std::string(at, std::find(at, end, ',')) + "' is not a token id");
    }
    DW_ASSIGN_OR_RETURN(const int32_t id, to_token_id(value, ids.size()));
    ids.push_back(id);
    at = next == end ? end : next + 1;
  }
  if (ids.empty()) return invalid_argument("--ids names no token");
  return ids;
}

Result<std::vector<int32_t>> read_ids(const std::string& file_and_tensor) {
  const size_t colon = file_and_tensor.rfind(':');
  if (colon == std::string::npos) {
    return invalid_argument("--ids-file needs FILE.safetensors:TENSOR, got '" + file_and_tensor + "'");
  }
  const std::string path = file_and_tensor.substr(0, colon);
  const std::string name = file_and_tensor.substr(colon + 1);
  DW_ASSIGN_OR_RETURN(const auto file, os::MappedFile::open(path));
  DW_ASSIGN_OR_RETURN(const auto tensors, format::parse_safetensors(file->bytes(), path));
  const auto tensor =
      std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  if (tensor == tensors.end()) return not_found(path + ": no tensor '" + name + "'");
  if (tensor->shape.size() != 1 || tensor->shape[0] == 0) {
    return invalid_argument(path + ": tensor '" + name + "' must have one dimension and not be empty");
  }
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < tensor->shape[0]; ++i) {
    int64_t value = 0;
    if (tensor->dtype == DType::kI64) {
      std::memcpy(&value, tensor->bytes.data() + i * 8, 8);
    } else if (tensor->dtype == DType::kI32 || tensor->dtype == DType::kU32) {
      uint32_t word = 0;
      std::memcpy(&word, tensor->bytes.data() + i * 4, 4);
      value = tensor->dtype == DType::kU32 ? int64_t{word} : int64_t{static_cast<int32_t>(word)};
    } else {
      return invalid_argument(path + ": tensor '" + name + "' is " + std::string(dtype_name(tensor->dtype)) +
                              "; token ids are I64, I32 or U32");
    }
    DW_ASSIGN_OR_RETURN(const int32_t id, to_token_id(value, static_cast<size_t>(i)));
    ids.push_back(id);
  }
  return ids;
}

Result<LogitsResult> compute_logits(engine::Engine& engine, const LogitsRequest& request) {
  LogitsResult result;
  result.vocab_size = engine.model().config.vocab_size;
  const int64_t total = static_cast<int64_t>(request.ids.size());
  if (total * result.vocab_size * 4 > kMaxResultBytes) {
    return resource_exhausted(std::to_string(total) + " rows of " + std::to_string(result.vocab_size) +
                              " logits are more than 16 GiB; split the sequence");
  }
  result.logits.resize(static_cast<size_t>(total * result.vocab_size));
  DW_ASSIGN_OR_RETURN(const engine::SessionId session, engine.open({}));
  Status status;
  {
    Companions companions(engine, request.ids, request.beside);
    status = run_prompt(engine, session, request, &result);
    if (status.is_ok() && request.greedy > 0) status = run_greedy(engine, session, request.greedy, &result);
    if (status.is_ok()) status = companions.status();
  }
  const Status closed = engine.close(session);
  DW_RETURN_IF_ERROR(status);
  DW_RETURN_IF_ERROR(closed);
  return result;
}

Status write_logits(const std::string& path, const LogitsResult& result, const std::string& numerics_id) {
  const int64_t rows = static_cast<int64_t>(result.logits.size()) / result.vocab_size;
  std::vector<format::OutputTensor> tensors;
  tensors.push_back(
      {"logits", DType::kF32, {rows, result.vocab_size}, std::as_bytes(std::span(result.logits))});
  if (!result.greedy.empty()) {
    tensors.push_back({"greedy",
                       DType::kI64,
                       {static_cast<int64_t>(result.greedy.size())},
                       std::as_bytes(std::span(result.greedy))});
  }
  return format::write_safetensors(path, tensors, {{"numerics_id", numerics_id}});
}

}  // namespace driftwood::cli
