// Small facts of a snapshot's section as texts, and back: what std::map<string, string> attributes hold.
//
// Numbers are decimal; floats have nine digits, enough to come back exactly. Bytes that are not printable
// ASCII, and the characters % , and space, are written %XX, so that any bytes survive and lists can be joined
// by spaces. Reading names section and key: invalid_argument for what is missing or no such value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace driftwood::actor {

std::string escape(std::string_view bytes);
bool unescape(std::string_view text, std::string* bytes);
std::string join(const std::vector<std::string>& items, char separator = ' ');
std::vector<std::string> split(std::string_view text, char separator = ' ');
std::string float_text(float value);

class AttributeReader {
 public:
  AttributeReader(std::string section, const std::map<std::string, std::string>& attributes)
      : section_(std::move(section)), attributes_(attributes) {}

  // The first failure sticks in status(); later calls leave their value alone.
  void text(const char* key, std::string* value);               // unescaped
  void list(const char* key, std::vector<std::string>* items);  // still escaped
  void u64(const char* key, uint64_t* value);
  void i64(const char* key, int64_t* value, int64_t least, int64_t most);
  void i32(const char* key, int32_t* value, int32_t least, int32_t most);
  void flag(const char* key, bool* value);
  void f32(const char* key, float* value);
  void fail(const char* key, const std::string& what);
  const Status& status() const { return status_; }

 private:
  const std::string* find(const char* key);
  std::string section_;
  const std::map<std::string, std::string>& attributes_;
  Status status_;
};

// Whole texts only; false for anything else.
bool parse_u64(std::string_view text, uint64_t* value);
bool parse_i64(std::string_view text, int64_t* value);
bool parse_f32(std::string_view text, float* value);

}  // namespace driftwood::actor
