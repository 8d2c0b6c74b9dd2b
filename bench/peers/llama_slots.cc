// llama.cpp's slot files on this machine: prefill, save, restore and the next token, at 24, 512 and 4,096 tokens. Built
// and run by tools/bench_snapshots.py against the llama.h and libllama of tools/bench_peers.py.
//
//     llama_slots MODEL.gguf THREADS FOLDER
//
// One line of JSON a figure, as snapshot_actor_bench prints them: medians and quartiles in milliseconds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/stat.h>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "llama.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kContexts[] = {24, 512, 4096};
constexpr int kRounds = 9;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void print(const char* figure, int tokens, const char* unit, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  std::printf(
      "{\"figure\":\"llama_%s\",\"tokens\":%d,\"unit\":\"%s\",\"median\":%.4f,\"low\":%.4f,\"high\":%.4f,\"n\":%zu}\n",
      figure, tokens, unit, values[n / 2], values[n / 4], values[n * 3 / 4], n);
  std::fflush(stdout);
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "llama_slots: %s failed\n", what);
  std::exit(1);
}

void decode(llama_context* context, llama_token* tokens, int count, int batch) {
  for (int at = 0; at < count; at += batch) {
    if (llama_decode(context, llama_batch_get_one(tokens + at, std::min(batch, count - at))) != 0) fail("decode");
  }
  if (llama_get_logits_ith(context, -1) == nullptr) fail("reading logits");
}

void drop_from_page_cache(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  if (fd < 0) fail("opening the slot file");
  ::fsync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

double restore(llama_context* context, const std::string& path, std::vector<llama_token>* tokens) {
  llama_memory_clear(llama_get_memory(context), true);
  size_t count = 0;
  const auto start = Clock::now();
  const size_t read =
      llama_state_seq_load_file(context, path.c_str(), 0, tokens->data(), tokens->size(), &count);
  const double ms = ms_since(start);
  if (read == 0 || count != tokens->size()) fail("restoring a slot");
  return ms;
}

void measure(llama_context* context, int count, int batch, const std::string& folder) {
  std::vector<llama_token> tokens;
  uint32_t x = 7;
  for (int i = 0; i < count; ++i) {
    tokens.push_back(static_cast<llama_token>(1000 + ((x = x * 1664525u + 1013904223u) >> 16) % 20000));
  }
  const std::string path = folder + "/llama.slot";
  llama_token next = 7;
  llama_memory_clear(llama_get_memory(context), true);
  const auto start = Clock::now();
  decode(context, tokens.data(), count, batch);
  const double prefill = ms_since(start);
  std::vector<double> save, load, step, warm, cold;
  for (int i = 0; i < kRounds; ++i) {
    const auto at_save = Clock::now();
    if (llama_state_seq_save_file(context, path.c_str(), 0, tokens.data(), tokens.size()) == 0) fail("saving a slot");
    save.push_back(ms_since(at_save));
  }
  const auto at_first = Clock::now();
  decode(context, &next, 1, batch);
  print("prefill", count, "ms", {prefill});
  print("prefill_and_first_token", count, "ms", {prefill + ms_since(at_first)});
  for (int i = 0; i < kRounds; ++i) {
    load.push_back(restore(context, path, &tokens));
    const auto at_step = Clock::now();
    decode(context, &next, 1, batch);
    step.push_back(ms_since(at_step));
    warm.push_back(load.back() + step.back());
  }
  for (int i = 0; i < 3; ++i) {
    drop_from_page_cache(path);
    const double ms = restore(context, path, &tokens);
    const auto at_step = Clock::now();
    decode(context, &next, 1, batch);
    cold.push_back(ms + ms_since(at_step));
  }
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) fail("looking at the slot file");
  print("save", count, "ms", save);
  print("save_bytes", count, "MB", {static_cast<double>(info.st_size) / 1e6});
  print("restore", count, "ms", load);
  print("token_after_restore", count, "ms", step);
  print("restore_and_first_token", count, "ms", warm);
  print("cold_restore_and_first_token", count, "ms", cold);
  ::unlink(path.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: llama_slots MODEL.gguf THREADS FOLDER\n");
    return 2;
  }
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  llama_model* model = llama_model_load_from_file(argv[1], llama_model_default_params());
  if (model == nullptr) fail("loading the model");
  llama_context_params params = llama_context_default_params();
  params.n_ctx = 4096 + 256;
  params.n_batch = params.n_ubatch = 512;
  params.n_threads = params.n_threads_batch = std::atoi(argv[2]);
  llama_context* context = llama_init_from_model(model, params);
  if (context == nullptr) fail("making a context");
  llama_token warm_up = 7;
  decode(context, &warm_up, 1, 512);
  for (const int count : kContexts) measure(context, count, 512, argv[3]);
  llama_free(context);
  llama_model_free(model);
}
