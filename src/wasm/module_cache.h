// ModuleCache: compiled modules on disk, so that a second load costs milliseconds instead of a compilation.
//
// A file is named by BLAKE3 over the rewritten module and the engine's fingerprint (Wasmtime, configuration,
// processor). Compiled code is machine code that we run: a file is taken only from a folder that this user owns
// and nobody else can write, only if it is the user's own regular file, and only if the BLAKE3 kept in it fits
// its contents (a torn or rotten file). Anything wrong with the cache means compiling: never an error.
//
// File: "DWMODC01", BLAKE3 of (key, payload) 32 bytes, payload bytes u64 little-endian, payload (Wasmtime's
// serialised module). Mode 0600, written beside and renamed. Thread- and process-safe. Old files are removed
// when the folder exceeds kMaxCacheBytes.
#pragma once

#include <wasmtime.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace driftwood::wasm {

inline constexpr uint64_t kMaxCacheBytes = uint64_t{1} << 30;

class ModuleCache {
 public:
  using Key = std::array<uint8_t, 32>;

  // An empty `folder`: no cache. The folder is made (0700) at the first save.
  ModuleCache(std::string folder, std::string fingerprint);

  Key key(std::span<const uint8_t> rewritten) const;
  // Null if it is not there or not to be trusted.
  wasmtime_module_t* load(wasm_engine_t* engine, const Key& key) const;
  void save(const Key& key, const wasmtime_module_t* module) const;
  std::string path(const Key& key) const;

 private:
  std::string folder_;
  std::string fingerprint_;
};

}  // namespace driftwood::wasm
