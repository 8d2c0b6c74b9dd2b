#include "wasm/module_cache.h"

#include <dw_bridge.h>

#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "os/private_folder.h"

namespace driftwood::wasm {
namespace {

constexpr char kMagic[8] = {'D', 'W', 'M', 'O', 'D', 'C', '0', '1'};
constexpr size_t kHashAt = sizeof kMagic;
constexpr size_t kLengthAt = kHashAt + 32;
constexpr size_t kHeaderBytes = kLengthAt + 8;
constexpr uint64_t kMaxCompiledBytes = uint64_t{512} << 20;

using Hash = std::array<uint8_t, 32>;

// BLAKE3 over two pieces; the first one's length is fixed or ends in its own length, so they cannot be confused.
bool hash_pair(std::span<const uint8_t> first, std::span<const uint8_t> second, Hash* out) {
  dwb_hasher* hasher = dwb_hasher_new();
  if (hasher == nullptr) return false;
  const bool ok = dwb_hasher_update(hasher, first.data(), first.size()) == DWB_OK &&
                  dwb_hasher_update(hasher, second.data(), second.size()) == DWB_OK &&
                  dwb_hasher_finish(hasher, out->data()) == DWB_OK;
  dwb_hasher_free(hasher);
  return ok;
}

std::span<const uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

ModuleCache::ModuleCache(std::string folder, std::string fingerprint)
    : folder_(std::move(folder)), fingerprint_(std::move(fingerprint)) {}

ModuleCache::Key ModuleCache::key(std::span<const uint8_t> rewritten) const {
  Key key{};
  if (folder_.empty()) return key;
  const std::string prefix = fingerprint_ + '\0' + std::to_string(fingerprint_.size()) + '\0';
  const bool ok = hash_pair(as_bytes(prefix), rewritten, &key);
  DW_CHECK(ok, "BLAKE3 of a module failed");
  return key;
}

std::string ModuleCache::path(const Key& key) const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string name;
  for (const uint8_t byte : key) {
    name += kDigits[byte >> 4];
    name += kDigits[byte & 15];
  }
  return folder_ + "/" + name + ".dwmod";
}

wasmtime_module_t* ModuleCache::load(wasm_engine_t* engine, const Key& key) const {
  if (folder_.empty()) return nullptr;
  const auto file = os::read_private_file(folder_, path(key), kMaxCompiledBytes + kHeaderBytes);
  if (!file.is_ok() || file->size() < kHeaderBytes) return nullptr;
  const std::span<const uint8_t> bytes(*file);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data() + kLengthAt, sizeof length);
  const std::span<const uint8_t> payload = bytes.subspan(kHeaderBytes);
  Hash hash;
  if (std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0 || length != payload.size() ||
      !hash_pair(key, payload, &hash) || std::memcmp(hash.data(), bytes.data() + kHashAt, hash.size()) != 0) {
    return nullptr;
  }
  wasmtime_module_t* module = nullptr;
  wasmtime_error_t* error = wasmtime_module_deserialize(engine, payload.data(), payload.size(), &module);
  if (error != nullptr) {
    wasmtime_error_delete(error);
    return nullptr;
  }
  return module;
}

void ModuleCache::save(const Key& key, const wasmtime_module_t* module) const {
  if (folder_.empty()) return;
  wasm_byte_vec_t serialized;
  wasmtime_error_t* error = wasmtime_module_serialize(module, &serialized);
  if (error != nullptr) {
    wasmtime_error_delete(error);
    return;
  }
  const std::span<const uint8_t> payload(reinterpret_cast<const uint8_t*>(serialized.data), serialized.size);
  Hash hash;
  if (payload.size() <= kMaxCompiledBytes && hash_pair(key, payload, &hash)) {
    std::vector<uint8_t> header(kHeaderBytes);
    const uint64_t length = payload.size();
    std::memcpy(header.data(), kMagic, sizeof kMagic);
    std::memcpy(header.data() + kHashAt, hash.data(), hash.size());
    std::memcpy(header.data() + kLengthAt, &length, sizeof length);
    const Status written = os::write_private_file(folder_, path(key), header, payload);
    if (written.is_ok()) os::trim_folder(folder_, ".dwmod", kMaxCacheBytes);
  }
  wasm_byte_vec_delete(&serialized);
}

}  // namespace driftwood::wasm
