#include "actor/attributes.h"

#include <charconv>
#include <cstdio>

namespace driftwood::actor {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

template <typename T>
bool parse_number(std::string_view text, T* value) {
  if (text.empty()) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string escape(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && c != '%' && c != ',') {
      text += c;
    } else {
      text += '%';
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    }
  }
  return text;
}

bool unescape(std::string_view text, std::string* bytes) {
  bytes->clear();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes->push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size()) return false;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return false;
    bytes->push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return true;
}

std::string join(const std::vector<std::string>& items, char separator) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += separator;
    text += items[i];
  }
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    items.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
    if (text.empty()) items.emplace_back();
  }
  return items;
}

std::string float_text(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return text;
}

bool parse_u64(std::string_view text, uint64_t* value) { return parse_number(text, value); }
bool parse_i64(std::string_view text, int64_t* value) { return parse_number(text, value); }
bool parse_f32(std::string_view text, float* value) { return parse_number(text, value); }

void AttributeReader::fail(const char* key, const std::string& what) {
  if (!status_.is_ok()) return;
  status_ = invalid_argument("section '" + section_ + "', attribute '" + key + "': " + what);
}

const std::string* AttributeReader::find(const char* key) {
  if (!status_.is_ok()) return nullptr;
  const auto it = attributes_.find(key);
  if (it == attributes_.end()) {
    fail(key, "it is missing");
    return nullptr;
  }
  return &it->second;
}

void AttributeReader::text(const char* key, std::string* value) {
  const std::string* found = find(key);
  if (found != nullptr && !unescape(*found, value)) fail(key, "a % is not followed by two hex digits");
}

void AttributeReader::list(const char* key, std::vector<std::string>* items) {
  if (const std::string* found = find(key)) *items = split(*found);
}

void AttributeReader::u64(const char* key, uint64_t* value) {
  const std::string* found = find(key);
  if (found != nullptr && !parse_u64(*found, value)) fail(key, "'" + *found + "' is no whole number");
}

void AttributeReader::i64(const char* key, int64_t* value, int64_t least, int64_t most) {
  const std::string* found = find(key);
  if (found == nullptr) return;
  int64_t parsed = 0;
  if (!parse_i64(*found, &parsed) || parsed < least || parsed > most) {
    fail(key, "'" + *found + "' is no number from " + std::to_string(least) + " to " + std::to_string(most));
    return;
  }
  *value = parsed;
}

void AttributeReader::i32(const char* key, int32_t* value, int32_t least, int32_t most) {
  int64_t parsed = *value;
  i64(key, &parsed, least, most);
  *value = static_cast<int32_t>(parsed);
}

void AttributeReader::flag(const char* key, bool* value) {
  int32_t parsed = *value ? 1 : 0;
  i32(key, &parsed, 0, 1);
  *value = parsed != 0;
}

void AttributeReader::f32(const char* key, float* value) {
  const std::string* found = find(key);
  if (found != nullptr && !parse_f32(*found, value)) fail(key, "'" + *found + "' is no number");
}

}  // namespace driftwood::actor
