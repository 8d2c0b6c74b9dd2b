// Section: a named part of a snapshot, as tensors that describe themselves. This folder stores sections and
// knows nothing of what they mean; whoever owns the state (linear memory, KV, mailbox) describes it here.
//
// A tensor's name in the file is "SECTION.TENSOR". Names are 1 to 200 of a-z 0-9 _ . -, and full names are
// unique. `kind` and `layout` are texts for readers: what this is, and what the dimensions mean.
// `attributes` are small facts that would not be worth a tensor (64 KiB at least); they live in the header.
//
// Hashes: one BLAKE3 of all bytes, or, with piece_bytes, one for each piece (a KV block, a memory page),
// which go into a tensor of their own, "SECTION.TENSOR.hashes", U8 [pieces, 32], so that the header does not
// grow with the data.
//
// Ownership: a Section borrows its bytes, which must not change while a writer is at work.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "snapshot/digest.h"

namespace driftwood::snapshot {

struct TensorDescription {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
  std::string layout;
  uint64_t piece_bytes = 0;  // 0: one hash; else a multiple of 4 KiB, at most 1 GiB
};

struct SectionDescription {
  std::string name;
  std::string kind;
  std::map<std::string, std::string> attributes;
};

// To be written. The chunks together are the tensor's bytes, exactly; with piece_bytes every chunk but the
// last holds whole pieces (KV blocks need not be neighbours in memory).
struct SectionTensor : TensorDescription {
  std::vector<ByteSpan> chunks;
  // With piece_bytes, of pieces that were hashed before: one digest a piece, all zero where it is not known;
  // or empty. Taken at its word.
  std::vector<Digest> known;
};

struct Section : SectionDescription {
  std::vector<SectionTensor> tensors;
};

}  // namespace driftwood::snapshot
