#include "snapshot/header_scan.h"

#include <charconv>
#include <cstring>

#include "snapshot/container.h"

namespace driftwood::snapshot {
namespace {

constexpr size_t kHexDigits = 2 * sizeof(Digest);

// Every method takes something off the front of the text, or says false and leaves it anyhow.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  std::string_view rest() const { return text_; }

  bool literal(std::string_view wanted) {
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(wanted.size());
    return true;
  }
  bool character(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool skip(size_t bytes) {
    if (text_.size() < bytes) return false;
    text_.remove_prefix(bytes);
    return true;
  }
  bool number(uint64_t* value) {
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), *value);
    const auto digits = static_cast<size_t>(end - text_.data());
    if (error != std::errc() || (digits > 1 && text_[0] == '0')) return false;
    text_.remove_prefix(digits);
    return true;
  }
  bool text(std::string* out);
  bool member(std::string_view key, std::string* value) {  // "key":"value"
    return character('"') && literal(key) && literal("\":") && text(value);
  }

 private:
  bool escape(std::string* out);
  std::string_view text_;
};

bool Scanner::escape(std::string* out) {
  if (text_.empty()) return false;
  const char kind = text_[0];
  text_.remove_prefix(1);
  constexpr std::string_view kKinds = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (const size_t at = kKinds.find(kind); at != std::string_view::npos) {
    out->push_back(kMeanings[at]);
    return true;
  }
  unsigned value = 0;
  if (kind != 'u' || text_.size() < 4) return false;
  const auto [end, error] = std::from_chars(text_.data(), text_.data() + 4, value, 16);
  if (error != std::errc() || end != text_.data() + 4 || value >= 0x80) return false;
  out->push_back(static_cast<char>(value));
  text_.remove_prefix(4);
  return true;
}

bool Scanner::text(std::string* out) {
  if (!character('"')) return false;
  out->clear();
  for (;;) {
    size_t plain = 0;
    while (plain < text_.size() && text_[plain] != '"' && text_[plain] != '\\') {
      const auto c = static_cast<unsigned char>(text_[plain]);
      if (c < 0x20 || c >= 0x80) return false;
      ++plain;
    }
    if (plain == text_.size()) return false;
    out->append(text_.substr(0, plain));
    const bool ends = text_[plain] == '"';
    text_.remove_prefix(plain + 1);
    if (ends) return true;
    if (!escape(out)) return false;
  }
}

// Keys ascend, as those of a map do.
bool scan_texts(Scanner* in, std::map<std::string, std::string>* out) {
  if (!in->character('{')) return false;
  if (in->character('}')) return true;
  do {
    std::string key, value;
    if (!in->text(&key) || !in->character(':') || !in->text(&value)) return false;
    if (!out->empty() && key <= out->rbegin()->first) return false;
    out->emplace_hint(out->end(), std::move(key), std::move(value));
  } while (in->character(','));
  return in->character('}');
}

bool scan_dtype(std::string_view text, DType* dtype) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    *dtype = static_cast<DType>(i);
    if (dtype_name(*dtype) == text) return true;
  }
  return false;
}

bool scan_shape(Scanner* in, std::vector<int64_t>* shape) {
  if (!in->character('[')) return false;
  if (in->character(']')) return true;
  do {
    uint64_t value = 0;
    if (!in->number(&value) || value > uint64_t{INT64_MAX}) return false;
    shape->push_back(static_cast<int64_t>(value));
  } while (in->character(','));
  return in->character(']');
}

bool scan_tensor(Scanner* in, DirectoryTensor* tensor) {
  std::string dtype, digest;
  if (!in->character('{') || !in->member("name", &tensor->name) || !in->character(',') ||
      !in->member("dtype", &dtype) || !scan_dtype(dtype, &tensor->dtype) || !in->literal(",\"shape\":") ||
      !scan_shape(in, &tensor->shape) || !in->character(',') || !in->member("layout", &tensor->layout)) {
    return false;
  }
  if (in->literal(",\"piece_bytes\":") && (!in->number(&tensor->piece_bytes) || tensor->piece_bytes == 0)) {
    return false;
  }
  return in->character(',') && in->member("blake3", &digest) && from_hex(digest, &tensor->digest) &&
         in->character('}');
}

bool scan_section(Scanner* in, DirectorySection* section) {
  if (!in->character('{') || !in->member("name", &section->name) || !in->character(',') ||
      !in->member("kind", &section->kind) || !in->literal(",\"attributes\":") ||
      !scan_texts(in, &section->attributes) || !in->literal(",\"tensors\":[")) {
    return false;
  }
  if (in->literal("]}")) return true;
  do {
    section->tensors.emplace_back();
    if (!scan_tensor(in, &section->tensors.back())) return false;
  } while (in->character(','));
  return in->literal("]}");
}

bool scan_sections(const std::string& text, std::vector<DirectorySection>* sections) {
  Scanner in(text);
  if (!in.character('[')) return false;
  if (in.character(']')) return in.rest().empty();
  do {
    sections->emplace_back();
    if (!scan_section(&in, &sections->back())) return false;
  } while (in.character(','));
  return in.character(']') && in.rest().empty();
}

bool scan_metadata(Scanner* in, Header* header) {
  if (!in->literal(kHeaderStart) || !in->literal(kFormatNumber) || !in->literal(kHashStart) ||
      !in->skip(kHexDigits) || !in->character('"')) {
    return false;
  }
  for (const IdentityField& field : identity_fields()) {
    if (!in->character(',') || !in->member(field.name, &(header->identity.*field.value))) return false;
  }
  std::string created, notes, sections;
  if (!in->character(',') || !in->member("parent", &header->origin.parent) || !in->character(',') ||
      !in->member("created_ns", &created) || !in->character(',') || !in->member("notes", &notes) ||
      !in->character(',') || !in->member("sections", &sections) || !in->character('}')) {
    return false;
  }
  Scanner number(created);
  Scanner texts(notes);
  return number.number(&header->origin.created_ns) && number.rest().empty() &&
         scan_texts(&texts, &header->origin.notes) && texts.rest().empty() &&
         scan_sections(sections, &header->sections);
}

void append_numbers(std::string* out, std::initializer_list<uint64_t> values) {
  char digits[24];
  for (const uint64_t value : values) {
    out->append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    out->push_back(',');
  }
}

// The table's entry of that tensor, as the writer spells it.
void spell_entry(const Placement& p, std::string* out) {
  out->assign(",\"")
      .append(p.name)
      .append("\":{\"dtype\":\"")
      .append(dtype_name(p.dtype))
      .append("\",\"shape\":[");
  for (const int64_t d : p.shape) append_numbers(out, {static_cast<uint64_t>(d)});
  if (!p.shape.empty()) out->pop_back();
  out->append("],\"data_offsets\":[");
  append_numbers(out, {p.begin, p.begin + p.extent_bytes});
  out->back() = ']';
  out->push_back('}');
}

bool is_padding(std::string_view text) {
  return text.empty() || (text[0] == ' ' && std::memcmp(text.data(), text.data() + 1, text.size() - 1) == 0);
}

}  // namespace

std::optional<ScannedHeader> scan_header(std::string_view text, const std::string& place) {
  ScannedHeader scanned;
  Scanner in(text);
  if (!scan_metadata(&in, &scanned.header) || !check_header(scanned.header, place).is_ok())
    return std::nullopt;
  scanned.placements = place_tensors(scanned.header);
  std::string entry;
  for (const Placement& p : scanned.placements) {
    spell_entry(p, &entry);
    if (!in.literal(entry)) return std::nullopt;
  }
  if (!in.character('}') || !is_padding(in.rest())) return std::nullopt;
  return scanned;
}

}  // namespace driftwood::snapshot
