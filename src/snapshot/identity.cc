#include "snapshot/identity.h"

#include <algorithm>

namespace driftwood::snapshot {
namespace {

constexpr IdentityField kFields[] = {
    {"model_fingerprint", &Identity::model_fingerprint},
    {"module_hash", &Identity::module_hash},
    {"abi", &Identity::abi},
    {"numerics_id", &Identity::numerics_id},
    {"kv_format", &Identity::kv_format},
    {"block_geometry", &Identity::block_geometry},
    {"rope", &Identity::rope},
};

std::string quoted(const std::string& value) { return "\"" + value.substr(0, 200) + "\""; }

}  // namespace

std::span<const IdentityField> identity_fields() { return kFields; }

std::vector<IdentityDifference> identity_differences(const Identity& found, const Identity& expected) {
  std::vector<IdentityDifference> differences;
  for (const IdentityField& field : kFields) {
    if (found.*field.value == expected.*field.value) continue;
    differences.push_back({field.name, found.*field.value, expected.*field.value});
  }
  return differences;
}

Status check_identity(const Identity& found, const Identity& expected,
                      std::span<const std::string_view> exempt, const std::string& name) {
  std::string message;
  for (const IdentityDifference& d : identity_differences(found, expected)) {
    if (std::find(exempt.begin(), exempt.end(), d.field) != exempt.end()) continue;
    if (!message.empty()) message += "; ";
    message += d.field + " is " + quoted(d.found) + " in the snapshot and " + quoted(d.expected) + " here";
  }
  if (message.empty()) return Status::ok();
  return failed_precondition(name + ": does not fit: " + message);
}

}  // namespace driftwood::snapshot
