#include "format/safetensors_writer.h"

#include <nlohmann/json.hpp>

#include "os/atomic_file.h"

namespace driftwood::format {

Status write_safetensors(const std::string& path, const std::vector<OutputTensor>& tensors,
                         const std::vector<std::pair<std::string, std::string>>& metadata) {
  nlohmann::ordered_json header;
  for (const auto& [key, value] : metadata) header["__metadata__"][key] = value;
  size_t offset = 0;
  for (const OutputTensor& t : tensors) {
    size_t bytes = dtype_size(t.dtype);
    for (const int64_t dim : t.shape) bytes *= static_cast<size_t>(dim);
    DW_CHECK(bytes == t.bytes.size(), "a tensor's bytes must be its shape's");
    header[t.name] = {{"dtype", dtype_name(t.dtype)}, {"shape", t.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  uint8_t prefix[8];
  for (int i = 0; i < 8; ++i) prefix[i] = static_cast<uint8_t>(length >> (8 * i));

  DW_ASSIGN_OR_RETURN(os::AtomicFile file, os::AtomicFile::create(path, os::FileAccess::kShared));
  DW_RETURN_IF_ERROR(file.write(prefix));
  DW_RETURN_IF_ERROR(file.write({reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  for (const OutputTensor& t : tensors) {
    DW_RETURN_IF_ERROR(file.write({reinterpret_cast<const uint8_t*>(t.bytes.data()), t.bytes.size()}));
  }
  return file.commit();
}

}  // namespace driftwood::format
