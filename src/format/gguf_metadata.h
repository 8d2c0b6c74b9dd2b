// The key/value part of a GGUF file (gguf.h).
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "format/byte_reader.h"
#include "format/checkpoint.h"

namespace driftwood::format {

// Reads `count` keys at the reader's place.
Result<std::map<std::string, MetadataValue>> read_gguf_metadata(ByteReader& reader, uint64_t count,
                                                                const std::string& file);

}  // namespace driftwood::format
