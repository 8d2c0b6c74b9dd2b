#include "format/gguf.h"

#include <algorithm>
#include <set>

#include "format/byte_reader.h"
#include "format/checked_size.h"
#include "format/ggml_types.h"
#include "format/gguf_metadata.h"
#include "format/looks_like.h"

namespace driftwood::format {
namespace {

constexpr uint32_t kDefaultAlignment = 32;

// A tensor's record with what the layout check needs.
struct Record {
  TensorInfo info;
  uint64_t offset = 0;  // from the start of the data section
  uint64_t size = 0;
};

uint64_t align_up(uint64_t x, uint64_t alignment) { return (x + alignment - 1) & ~(alignment - 1); }

struct Header {
  uint32_t version = 0;
  uint64_t tensors = 0;
  uint64_t keys = 0;
};

Result<Header> read_header(ByteReader& reader, std::span<const uint8_t> bytes, const std::string& file) {
  if (!is_gguf(bytes)) return invalid_argument(file + ": not a GGUF file: " + looks_like(bytes));
  Header header;
  uint32_t magic = 0;
  if (!reader.read(&magic) || !reader.read(&header.version)) {
    return data_loss(file + ": the file ends after " + std::to_string(bytes.size()) + " bytes (truncated)");
  }
  if (header.version != 0 && (header.version & 0xffffu) == 0) {
    return unimplemented(file + ": a big-endian GGUF file; only little-endian ones are read: convert it");
  }
  if (header.version == 1) {
    return unimplemented(
        file + ": GGUF version 1; versions 2 and 3 are read: convert it with the tool that made it");
  }
  if (header.version != 2 && header.version != 3) {
    return unimplemented(file + ": GGUF version " + std::to_string(header.version) +
                         "; versions 2 and 3 are read");
  }
  if (!reader.read(&header.tensors) || !reader.read(&header.keys)) {
    return data_loss(file + ": the file ends in its header (truncated)");
  }
  if (header.tensors > GgufLimits::kTensors) {
    return invalid_argument(file + ": claims " + std::to_string(header.tensors) + " tensors, at most " +
                            std::to_string(GgufLimits::kTensors) + " are read");
  }
  if (header.keys > GgufLimits::kKeys) {
    return invalid_argument(file + ": claims " + std::to_string(header.keys) + " metadata keys, at most " +
                            std::to_string(GgufLimits::kKeys) + " are read");
  }
  return header;
}

Status check_split(const GgufContents& contents, const std::string& file) {
  const auto split = contents.metadata.find("split.count");
  if (split == contents.metadata.end() || split->second.number <= 1) return Status::ok();
  return unimplemented(file + ": one part of a GGUF model split in " +
                       std::to_string(static_cast<int64_t>(split->second.number)) +
                       " files; split models are not read: merge the parts first");
}

Result<uint32_t> read_alignment(const GgufContents& contents, const std::string& file) {
  const auto found = contents.metadata.find("general.alignment");
  if (found == contents.metadata.end()) return kDefaultAlignment;
  const MetadataValue& value = found->second;
  const std::string place = file + ": metadata key 'general.alignment'";
  if (value.kind != MetadataValue::Kind::kUint)
    return invalid_argument(place + ": must be an unsigned integer");
  const uint64_t alignment = value.unsigned_integer;
  if (alignment < 8 || alignment > GgufLimits::kAlignment || (alignment & (alignment - 1)) != 0) {
    return invalid_argument(place + ": is " + std::to_string(alignment) +
                            ", must be a power of two from 8 to " + std::to_string(GgufLimits::kAlignment));
  }
  return static_cast<uint32_t>(alignment);
}

Status read_name(ByteReader& reader, uint64_t index, const std::string& file, std::string* name) {
  const std::string place = file + ": tensor " + std::to_string(index);
  uint64_t length = 0;
  std::string_view text;
  if (!reader.read(&length)) return data_loss(place + ": the file ends before it (truncated)");
  if (length == 0 || length > GgufLimits::kTensorNameBytes) {
    return invalid_argument(place + ": its name has " + std::to_string(length) + " bytes, allowed are 1 to " +
                            std::to_string(GgufLimits::kTensorNameBytes));
  }
  if (!reader.read_bytes(length, &text)) return data_loss(place + ": the file ends in its name (truncated)");
  if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
    return invalid_argument(place + ": its name holds control characters");
  }
  *name = text;
  return Status::ok();
}

Status read_shape(ByteReader& reader, const std::string& place, std::vector<int64_t>* shape) {
  uint32_t count = 0;
  if (!reader.read(&count)) return data_loss(place + ": the file ends in its record (truncated)");
  if (count < 1 || count > 4) {
    return invalid_argument(place + ": has " + std::to_string(count) + " dimensions, allowed are 1 to 4");
  }
  shape->resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t dimension = 0;
    if (!reader.read(&dimension)) return data_loss(place + ": the file ends in its record (truncated)");
    if (dimension == 0 || dimension > GgufLimits::kDimension) {
      return invalid_argument(place + ": dimension " + std::to_string(i) + " is " +
                              std::to_string(static_cast<int64_t>(dimension)) + ", allowed are 1 to " +
                              std::to_string(GgufLimits::kDimension));
    }
    (*shape)[count - 1 - i] = static_cast<int64_t>(dimension);  // the file has them innermost first
  }
  return Status::ok();
}

// Size in bytes from type and shape.
Status size_tensor(const GgmlType& type, const std::string& place, Record* record) {
  const std::vector<int64_t>& shape = record->info.shape;
  int64_t elements = 0;
  int64_t bytes = 0;
  if (shape.back() % type.block_elements != 0) {
    return invalid_argument(place + ": its rows have " + std::to_string(shape.back()) + " values, which " +
                            type.name + " needs to be a multiple of " + std::to_string(type.block_elements));
  }
  if (!shape_elements(shape, &elements) ||
      !multiply(elements / type.block_elements, type.block_bytes, &bytes)) {
    return invalid_argument(place + ": its dimensions multiply to more than 2^63");
  }
  record->size = static_cast<uint64_t>(bytes);
  return Status::ok();
}

Result<Record> read_record(ByteReader& reader, uint64_t index, const std::string& file) {
  Record record;
  DW_RETURN_IF_ERROR(read_name(reader, index, file, &record.info.name));
  const std::string place = file + ": tensor '" + record.info.name + "'";
  DW_RETURN_IF_ERROR(read_shape(reader, place, &record.info.shape));
  uint32_t type_id = 0;
  if (!reader.read(&type_id) || !reader.read(&record.offset)) {
    return data_loss(place + ": the file ends in its record (truncated)");
  }
  const GgmlType* type = find_ggml_type(type_id);
  if (type == nullptr)
    return unimplemented(place + ": has the unknown type number " + std::to_string(type_id));
  if (!type->encoding.has_value()) {
    return unimplemented(place + ": has type " + type->name +
                         ", which is not read yet; F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 are");
  }
  record.info.encoding = *type->encoding;
  record.info.dtype = type->dtype;
  DW_RETURN_IF_ERROR(size_tensor(*type, place, &record));
  return record;
}

// Every tensor inside the data section, aligned, none over another, no holes but padding.
Status place_tensors(std::vector<Record>& records, std::span<const uint8_t> data, uint32_t alignment,
                     const std::string& file) {
  std::vector<Record*> order;
  for (Record& r : records) order.push_back(&r);
  std::sort(order.begin(), order.end(),
            [](const Record* a, const Record* b) { return a->offset < b->offset; });
  uint64_t end = 0;
  const Record* before = nullptr;
  for (Record* r : order) {
    const std::string place = file + ": tensor '" + r->info.name + "'";
    const std::string at =
        " (offset " + std::to_string(r->offset) + ", " + std::to_string(r->size) + " bytes)";
    if (r->offset % alignment != 0) {
      return invalid_argument(place + ": is not aligned to " + std::to_string(alignment) + at);
    }
    if (r->offset > data.size() || r->size > data.size() - r->offset) {
      return data_loss(place + ": lies past the end of the file" + at + "; the data section has " +
                       std::to_string(data.size()) + " bytes (truncated?)");
    }
    if (r->offset < end)
      return invalid_argument(place + ": overlaps tensor '" + before->info.name + "'" + at);
    if (r->offset != align_up(end, alignment)) {
      return invalid_argument(place + ": a hole of " + std::to_string(r->offset - end) +
                              " bytes that belongs to no tensor lies before it" + at);
    }
    end = r->offset + r->size;
    before = r;
    r->info.bytes = data.subspan(static_cast<size_t>(r->offset), static_cast<size_t>(r->size));
  }
  if (data.size() > align_up(end, alignment)) {
    return invalid_argument(file + ": " + std::to_string(data.size() - end) +
                            " bytes follow the last tensor");
  }
  return Status::ok();
}

}  // namespace

Result<GgufContents> parse_gguf(std::span<const uint8_t> bytes, const std::string& name) {
  ByteReader reader(bytes);
  DW_ASSIGN_OR_RETURN(const Header header, read_header(reader, bytes, name));
  GgufContents contents;
  contents.version = header.version;
  contents.metadata_begin = reader.position();
  DW_ASSIGN_OR_RETURN(contents.metadata, read_gguf_metadata(reader, header.keys, name));
  contents.metadata_end = reader.position();
  DW_RETURN_IF_ERROR(check_split(contents, name));
  DW_ASSIGN_OR_RETURN(contents.alignment, read_alignment(contents, name));

  std::vector<Record> records;
  std::set<std::string> names;
  for (uint64_t i = 0; i < header.tensors; ++i) {
    DW_ASSIGN_OR_RETURN(Record record, read_record(reader, i, name));
    if (!names.insert(record.info.name).second) {
      return invalid_argument(name + ": tensor '" + record.info.name + "' appears twice");
    }
    records.push_back(std::move(record));
  }
  if (!records.empty()) {
    const uint64_t data_begin = align_up(reader.position(), contents.alignment);
    if (data_begin > bytes.size())
      return data_loss(name + ": the file ends before the tensor data (truncated)");
    DW_RETURN_IF_ERROR(
        place_tensors(records, bytes.subspan(static_cast<size_t>(data_begin)), contents.alignment, name));
  }
  for (Record& r : records) contents.tensors.push_back(std::move(r.info));
  return contents;
}

}  // namespace driftwood::format
