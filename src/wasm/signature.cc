#include "wasm/signature.h"

namespace driftwood::wasm {
namespace {

// Not wasm_valtype_kind(): that one aborts on a v128, which any module may have in a signature.
std::optional<ValueType> value_type_of(const wasm_valtype_t* type) {
  wasmtime_valtype_t full;
  wasmtime_valtype_new(type, &full);
  const auto kind = full.kind;
  wasmtime_valtype_delete(&full);
  switch (kind) {
    case WASMTIME_VALTYPE_KIND_I32: return ValueType::kI32;
    case WASMTIME_VALTYPE_KIND_I64: return ValueType::kI64;
    case WASMTIME_VALTYPE_KIND_F32: return ValueType::kF32;
    case WASMTIME_VALTYPE_KIND_F64: return ValueType::kF64;
    default: return std::nullopt;
  }
}

const char* value_type_name(std::optional<ValueType> type) {
  if (!type) return "v128 or reference";
  switch (*type) {
    case ValueType::kI32: return "i32";
    case ValueType::kI64: return "i64";
    case ValueType::kF32: return "f32";
    case ValueType::kF64: return "f64";
  }
  return "?";
}

template <typename Types, typename Name>
std::string list_text(const Types& types, size_t count, Name name) {
  std::string text = "(";
  for (size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::string(name(types, i));
  return text + ")";
}

template <typename Types, typename Name>
std::string whole_text(const Types& params, size_t n_params, const Types& results, size_t n_results, Name name) {
  std::string text = list_text(params, n_params, name);
  if (n_results == 0) return text;
  if (n_results == 1) return text + " -> " + name(results, 0);
  return text + " -> " + list_text(results, n_results, name);
}

bool convert(const wasm_valtype_vec_t* types, size_t limit, std::vector<ValueType>* out) {
  if (types->size > limit) return false;
  for (size_t i = 0; i < types->size; ++i) {
    const std::optional<ValueType> type = value_type_of(types->data[i]);
    if (!type) return false;
    out->push_back(*type);
  }
  return true;
}

wasm_valtype_vec_t new_types(const std::vector<ValueType>& types) {
  wasm_valtype_vec_t vec;
  wasm_valtype_vec_new_uninitialized(&vec, types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    static constexpr wasm_valkind_t kKinds[] = {WASM_I32, WASM_I64, WASM_F32, WASM_F64};
    vec.data[i] = wasm_valtype_new(kKinds[static_cast<size_t>(types[i])]);
  }
  return vec;
}

}  // namespace

std::string signature_text(const Signature& signature) {
  return whole_text(signature.params, signature.params.size(), signature.results, signature.results.size(),
                    [](const std::vector<ValueType>& types, size_t i) { return value_type_name(types[i]); });
}

std::string function_type_text(const wasm_functype_t* type) {
  const wasm_valtype_vec_t* params = wasm_functype_params(type);
  const wasm_valtype_vec_t* results = wasm_functype_results(type);
  return whole_text(params, params->size, results, results->size,
                    [](const wasm_valtype_vec_t* types, size_t i) {
                      return value_type_name(value_type_of(types->data[i]));
                    });
}

std::optional<Signature> signature_of(const wasm_functype_t* type) {
  Signature signature;
  if (!convert(wasm_functype_params(type), kMaxParams, &signature.params)) return std::nullopt;
  if (!convert(wasm_functype_results(type), kMaxResults, &signature.results)) return std::nullopt;
  return signature;
}

wasm_functype_t* new_function_type(const Signature& signature) {
  wasm_valtype_vec_t params = new_types(signature.params);
  wasm_valtype_vec_t results = new_types(signature.results);
  return wasm_functype_new(&params, &results);
}

}  // namespace driftwood::wasm
