// The one table of host calls, put together from its groups, and the imports made of it.
#include "actor/guest_call.h"

namespace driftwood::actor {
namespace {

// "ptr text, len length, i64 tag" to types. ptr and len are i32.
std::vector<wasm::ValueType> value_types(std::string_view parameters) {
  std::vector<wasm::ValueType> types;
  while (!parameters.empty()) {
    const size_t comma = parameters.find(", ");
    const std::string_view one = parameters.substr(0, comma);
    const std::string_view type = one.substr(0, one.find(' '));
    types.push_back(type == "i64" ? wasm::ValueType::kI64 : wasm::ValueType::kI32);
    DW_CHECK(type == "i32" || type == "i64" || type == "ptr" || type == "len",
             "unknown type in the host table");
    parameters = comma == std::string_view::npos ? "" : parameters.substr(comma + 2);
  }
  return types;
}

std::vector<HostCall> collect() {
  std::vector<HostCall> all;
  for (const std::span<const HostCall> group :
       {info_calls(), text_calls(), session_calls(), generate_calls(), message_calls(), tensor_calls(),
        timer_calls(), state_calls()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

}  // namespace

std::span<const HostCall> host_calls() {
  static const std::vector<HostCall> calls = collect();
  return calls;
}

const std::vector<wasm::HostImport>& host_imports() {
  static const std::vector<wasm::HostImport> imports = [] {
    std::vector<wasm::HostImport> made;
    for (const HostCall& call : host_calls()) {
      made.push_back({"driftwood",
                      std::string(call.name),
                      {value_types(call.parameters), value_types(call.result)},
                      call.function});
    }
    return made;
  }();
  return imports;
}

}  // namespace driftwood::actor
