// The architectures this build knows. A new one: its own file defining `const Architecture& name()`, and one
// line here.
#include "model/model.h"

#define DW_ARCHITECTURES(X) X(llama)

namespace driftwood::model {

#define DW_DECLARE(name) const Architecture& name();
DW_ARCHITECTURES(DW_DECLARE)
#undef DW_DECLARE

namespace {

using ArchitectureFunction = const Architecture& (*)();
#define DW_LIST(name) name,
constexpr ArchitectureFunction kArchitectures[] = {DW_ARCHITECTURES(DW_LIST)};
#undef DW_LIST

std::string found_name(const format::Checkpoint& checkpoint) {
  const char* key = checkpoint.format() == format::FileFormat::kGguf ? "general.architecture" : "model_type";
  return format::metadata_string_or(checkpoint, key).value_or("");
}

}  // namespace

Result<const Architecture*> find_architecture(const format::Checkpoint& checkpoint) {
  for (ArchitectureFunction architecture : kArchitectures) {
    if (architecture().matches(checkpoint)) return &architecture();
  }
  const std::string found = found_name(checkpoint);
  std::string supported;
  for (const std::string& name : architecture_names()) supported += (supported.empty() ? "" : ", ") + name;
  if (found.empty()) {
    return invalid_argument(checkpoint.path() +
                            ": names no architecture (general.architecture or model_type)");
  }
  return unimplemented(checkpoint.path() + ": architecture \"" + found +
                       "\" is not supported (supported: " + supported + ")");
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (ArchitectureFunction architecture : kArchitectures) names.push_back(architecture().name);
  return names;
}

}  // namespace driftwood::model
