#include "wasm/restore_check.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "wasm/engine.h"

namespace driftwood::wasm {
namespace {

constexpr size_t kMaxDifferencesNamed = 8;
constexpr uint64_t kMaxPages = 65536;

std::string join(std::span<const std::string> parts) {
  std::string text;
  for (size_t i = 0; i < parts.size() && i < kMaxDifferencesNamed; ++i)
    text += (i > 0 ? "; " : "") + parts[i];
  if (parts.size() > kMaxDifferencesNamed) {
    text += "; and " + std::to_string(parts.size() - kMaxDifferencesNamed) + " more";
  }
  return text;
}

bool has_excess_bits(const GlobalValue& value) {
  const bool narrow = value.type == GlobalType::kI32 || value.type == GlobalType::kF32;
  if (narrow && value.bits > UINT32_MAX) return true;
  return value.type != GlobalType::kV128 && value.high_bits != 0;
}

std::string named(uint32_t index, GlobalType type) {
  return "global " + std::to_string(index) + " (" + global_type_name(type) + ")";
}

Status check_size(const std::string& who, const ParsedReport& module, uint64_t max_memory_bytes,
                  uint64_t size) {
  if (!module.has_memory) {
    if (size == 0) return Status::ok();
    return invalid_argument(who + std::to_string(size) + " bytes, but the module has no memory");
  }
  const uint64_t pages = size / kWasmPageBytes;
  const uint64_t most = std::min(module.memory_max_pages.value_or(kMaxPages), kMaxPages);
  if (pages < module.memory_min_pages || pages > most) {
    return invalid_argument(who + std::to_string(pages) + " pages, the module declares " +
                            std::to_string(module.memory_min_pages) + " to " + std::to_string(most));
  }
  if (size > max_memory_bytes) {
    return resource_exhausted(who + std::to_string(size) + " bytes, the limit is " +
                              std::to_string(max_memory_bytes));
  }
  return Status::ok();
}

Status check_patches(const std::string& who, uint64_t memory_bytes, std::span<const MemoryPatch> patches) {
  const uint64_t page = region::os_page_bytes();
  uint64_t end = 0;
  for (size_t i = 0; i < patches.size(); ++i) {
    const uint64_t offset = patches[i].offset;
    const uint64_t length = patches[i].bytes.size();
    const auto refused = [&](const std::string& why) {
      return invalid_argument(who + "patch " + std::to_string(i) + " of " + std::to_string(length) +
                              " bytes at " + std::to_string(offset) + why);
    };
    if (offset % page != 0 || length % page != 0) {
      return refused(": not whole pages of " + std::to_string(page) + " bytes");
    }
    if (offset > memory_bytes || length > memory_bytes - offset) {
      return refused(" is past the end of a memory of " + std::to_string(memory_bytes));
    }
    if (offset < end) return refused(" begins before the end of the one before it, " + std::to_string(end));
    end = offset + length;
  }
  return Status::ok();
}

}  // namespace

Status check_no_blockers(const std::string& module_name, const ModuleReport& report) {
  if (report.snapshot_blockers.empty()) return Status::ok();
  return failed_precondition("module '" + module_name +
                             "' cannot be frozen or restored: " + join(report.snapshot_blockers));
}

Status check_memory(const std::string& module_name, const ParsedReport& module, uint64_t max_memory_bytes,
                    const FrozenMemory& memory) {
  const std::string who = "memory image for module '" + module_name + "': ";
  const MemoryImage& image = memory.image;
  uint64_t length = 0;
  for (size_t i = 0; i < image.pieces.size(); ++i) {
    const uint64_t bytes = image.pieces[i].length;
    if (bytes % kWasmPageBytes != 0 || bytes > kMaxPages * kWasmPageBytes - length) {
      return invalid_argument(who + "piece " + std::to_string(i) + " has " + std::to_string(bytes) +
                              " bytes at " + std::to_string(length) +
                              ": not whole pages of 65536 bytes within 4 GiB");
    }
    length += bytes;
  }
  const uint64_t size = image.memory_bytes == 0 ? length : image.memory_bytes;
  if (size % kWasmPageBytes != 0) {
    return invalid_argument(who + "a memory of " + std::to_string(size) +
                            " bytes: not whole pages of 65536 bytes");
  }
  if (length > size) {
    return invalid_argument(who + std::to_string(length) + " bytes do not fit into a memory of " +
                            std::to_string(size));
  }
  const Status fits = check_size(who, module, max_memory_bytes, size);
  return fits.is_ok() ? check_patches(who, size, memory.patches) : fits;
}

Status check_globals(const std::string& module_name, std::span<const GlobalDeclaration> declared,
                     std::span<const GlobalValue> values) {
  std::unordered_map<uint32_t, GlobalType> missing;
  for (const GlobalDeclaration& global : declared) missing.emplace(global.index, global.type);
  std::unordered_map<uint32_t, GlobalType> known = missing;
  std::vector<std::string> differences;
  for (const GlobalValue& value : values) {
    const auto found = known.find(value.index);
    if (found == known.end()) {
      differences.push_back("saved " + named(value.index, value.type) +
                            " is no mutable global of the module");
    } else if (missing.erase(value.index) == 0) {
      differences.push_back("global " + std::to_string(value.index) + " is saved twice");
    } else if (found->second != value.type) {
      differences.push_back("global " + std::to_string(value.index) + " is " +
                            global_type_name(found->second) + " in the module, saved as " +
                            global_type_name(value.type));
    } else if (has_excess_bits(value)) {
      differences.push_back("saved " + named(value.index, value.type) + " has more bits than its type");
    }
  }
  for (const GlobalDeclaration& global : declared) {
    if (missing.count(global.index) != 0)
      differences.push_back(named(global.index, global.type) + " is not saved");
  }
  if (differences.empty()) return Status::ok();
  return invalid_argument("saved globals are not those of module '" + module_name +
                          "': " + join(differences));
}

}  // namespace driftwood::wasm
