// Identity: what must be equal for a snapshot to mean the same thing here as where it was made; and Origin,
// what is told about a snapshot without being compared.
//
// All values are texts that the owner of the fact chooses; this folder compares them byte by byte and knows
// nothing of their meaning. An empty value is a value ("no model"). Plain values, thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace driftwood::snapshot {

struct Identity {
  std::string model_fingerprint;
  std::string module_hash;
  std::string abi;
  std::string numerics_id;
  std::string kv_format;
  std::string block_geometry;
  std::string rope;
};

struct IdentityField {
  const char* name;  // the key in the file
  std::string Identity::* value;
};
// Every field, in the file's order.
std::span<const IdentityField> identity_fields();

struct IdentityDifference {
  std::string field;
  std::string found;     // the snapshot's value
  std::string expected;  // this process's
};
std::vector<IdentityDifference> identity_differences(const Identity& found, const Identity& expected);

// failed_precondition naming every differing field with both values, except those in `exempt`. `name` stands
// for the file.
Status check_identity(const Identity& found, const Identity& expected,
                      std::span<const std::string_view> exempt, const std::string& name);

struct Origin {
  std::string parent;       // the parent snapshot's hash in hex; empty if there is none
  uint64_t created_ns = 0;  // since 1970
  std::map<std::string, std::string> notes;
};

}  // namespace driftwood::snapshot
