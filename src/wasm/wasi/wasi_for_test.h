// A guest that is nothing but WASI: every function of the table, imported and exported again under its name.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "wasm/guest_for_test.h"
#include "wasm/wasi/wasi_functions.h"

namespace driftwood::wasm {

inline std::string wasi_forwarder_text() {
  std::string imports;
  std::string functions;
  for (const HostImport& f : wasi_functions()) {
    std::string types;
    std::string gets;
    for (size_t i = 0; i < f.signature.params.size(); ++i) {
      types += f.signature.params[i] == ValueType::kI64 ? " i64" : " i32";
      gets += " (local.get " + std::to_string(i) + ")";
    }
    const std::string signature =
        (types.empty() ? "" : " (param" + types + ")") + (f.signature.results.empty() ? "" : " (result i32)");
    imports += "(import \"wasi_snapshot_preview1\" \"" + f.name + "\" (func $" + f.name + signature + "))\n";
    functions += "(func (export \"" + f.name + "\")" + signature + " (call $" + f.name + gets + "))\n";
  }
  return "(module\n" + imports + "(memory (export \"memory\") 1)\n" + functions + ")";
}

inline std::unique_ptr<Instance> wasi_forwarder(InstanceOptions options = {}) {
  static const std::shared_ptr<Module> module = std::move(load_text(wasi_forwarder_text())).value();
  return std::move(shared_runtime().instantiate(module, {}, std::move(options))).value();
}

// The error code of one call; the guest must survive it.
inline Errno wasi_call(Instance& guest, const std::string& name, std::vector<uint64_t> args) {
  auto result = guest.call(name, args);
  EXPECT_TRUE(result.is_ok()) << name << ": " << result.status().to_string();
  if (!result.is_ok()) return Errno::kIo;
  return static_cast<Errno>(result->at(0));
}

inline uint32_t u32_at(Instance& guest, uint32_t pointer) {
  uint32_t value = 0;
  std::memcpy(&value, guest.bytes(pointer, 4), 4);
  return value;
}
inline void put_u32(Instance& guest, uint32_t pointer, uint32_t value) {
  std::memcpy(guest.bytes(pointer, 4), &value, 4);
}
inline void put_text(Instance& guest, uint32_t pointer, std::string_view text) {
  std::memcpy(guest.bytes(pointer, text.size()), text.data(), text.size());
}

// A folder of its own, removed with the object.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "dw_wasi_XXXXXX").string();
    DW_CHECK(mkdtemp(name.data()) != nullptr, "no temporary folder");
    path_ = name;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace driftwood::wasm
