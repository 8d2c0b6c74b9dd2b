#include "format/looks_like.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace driftwood::format {
namespace {

struct Magic {
  std::string_view bytes;
  const char* what;
};

using namespace std::string_view_literals;

constexpr Magic kMagics[] = {
    {"version https://git-lfs"sv,
     "it is a Git LFS pointer, not the file itself: run `git lfs pull` in its folder"},
    {"PK\x03\x04"sv,
     "it is a zip archive, as PyTorch checkpoints are: convert it to safetensors, or take a safetensors or "
     "GGUF copy"},
    {"lmgg"sv, "it is a GGML file older than GGUF: convert it to GGUF with the tool that made it"},
    {"fmgg"sv, "it is a GGML file older than GGUF: convert it to GGUF with the tool that made it"},
    {"tjgg"sv, "it is a GGML file older than GGUF: convert it to GGUF with the tool that made it"},
    {"\x1f\x8b"sv, "it is a gzip file: unpack it first"},
    {"\x28\xb5\x2f\xfd"sv, "it is a zstd file: unpack it first"},
    {"\xfd"
     "7zXZ"sv,
     "it is an xz file: unpack it first"},
    {"7z\xbc\xaf\x27\x1c"sv, "it is a 7z archive: unpack it first"},
    {"\x89HDF"sv, "it is an HDF5 file (Keras): take a safetensors or GGUF copy"},
    {"\x93NUMPY"sv, "it is a NumPy array: take a safetensors or GGUF copy"},
    {"\x7f"
     "ELF"sv,
     "it is a program, not a model"},
    {"\0asm"sv, "it is a WebAssembly module, not a model: an actor is started with `driftwood run`"},
};

std::string_view skip_space(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty() && std::string_view(" \t\r\n").find(text.front()) != std::string_view::npos) {
    text.remove_prefix(1);
  }
  return text;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  if (text.size() < prefix.size()) return false;
  return std::equal(prefix.begin(), prefix.end(), text.begin(),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
}

bool is_text(std::string_view head) {
  return std::all_of(head.begin(), head.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u >= 0x20 ? u != 0x7f : (u == '\n' || u == '\r' || u == '\t');
  });
}

std::string first_bytes_in_hex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(8, bytes.size()); ++i) {
    if (i > 0) text += ' ';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace

bool is_gguf(std::span<const uint8_t> bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
}

bool is_safetensors(std::span<const uint8_t> bytes) {
  if (bytes.size() < 10) return false;
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  return length >= 2 && length <= bytes.size() - 8 && bytes[8] == '{';
}

std::string looks_like(std::span<const uint8_t> bytes) {
  if (bytes.empty()) return "it is empty: the download probably failed, fetch it again";
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                              std::min<size_t>(512, bytes.size()));
  if (is_gguf(bytes)) return "it is a GGUF file: name it as the model itself";
  if (is_safetensors(bytes)) {
    return "it is a safetensors file: name the model's folder, which must hold config.json too";
  }
  for (const Magic& magic : kMagics) {
    if (head.starts_with(magic.bytes)) return magic.what;
  }
  if (head.size() > 1 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) {
    return "it is a Python pickle, as old PyTorch checkpoints are, which can run code when loaded and is not "
           "read: "
           "convert it to safetensors, or take a safetensors or GGUF copy";
  }
  if (bytes.size() > 262 && std::memcmp(bytes.data() + 257, "ustar", 5) == 0) {
    return "it is a tar archive: unpack it first";
  }
  const std::string_view text = skip_space(head);
  if (starts_with_ignoring_case(text, "<!doctype html") || starts_with_ignoring_case(text, "<html")) {
    return "it is an HTML page: the download saved a web page (an error, or a form to sign in) instead of "
           "the model";
  }
  if (is_text(head)) {
    if (text.starts_with('{')) return "it is a JSON text: name the model's folder instead";
    const std::string_view line = text.substr(0, std::min<size_t>(40, text.find('\n')));
    return "it is a text that begins with \"" + std::string(line) + "\"";
  }
  return "it begins with the bytes " + first_bytes_in_hex(bytes) +
         ", which belong to no model format known here";
}

}  // namespace driftwood::format
