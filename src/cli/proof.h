// The measurements behind `driftwood proof`: that guest, CPU and device work on the same bytes, and what it
// costs.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "cli/actor_host.h"

namespace driftwood::cli {

struct MemoryProof {
  bool region_equals_wasm = false;    // region base == linear memory as Wasmtime reports it
  bool region_equals_device = false;  // == the device's pointer to it
  bool device_pointer_is_host_by_nature = false;
  double rss_zero_copy_mb = 0;  // resident growth when the device works on a 16 MiB guest buffer in place
  double rss_copy_mb = 0;       // the same through a copy in device memory
  int64_t gemm_elements = 0;
  int64_t gemm_errors = 0;  // elements whose bits differ from the guest's own result
  double gemm_us = 0;       // 128 x 128 x 128 from the guest, in place
  double gemm_copy_us = 0;  // the same with A, B and C copied
  double host_call_ns = 0;  // an empty host call and its return
};

struct ModelProof {
  double model_load_ms = 0;
  double prefill_5_ms = 0;
  double per_token_ms = 0;         // medians of interleaved runs: an actor in event style ...
  double per_token_native_ms = 0;  // ... and the same tokens by engine calls from C++
  double guest_per_token_us = 0;   // what the guest adds, measured alone: the dw_on_token call with its emit
  bool same_tokens = false;        // both ways gave the same tokens
};

Result<MemoryProof> prove_memory(ActorHost& host);
Result<ModelProof> prove_model(ActorHost& host);

}  // namespace driftwood::cli
