// Checks of operation arguments: what a caller can get wrong without looking at the data. Each returns
// invalid_argument naming the operation and the field, or ok.
#pragma once

#include "base/status.h"
#include "tensor/op_args.h"

namespace driftwood::device {

Status check(const EmbedArgs& args);
Status check(const RmsNormArgs& args);
Status check(const QuantiseArgs& args);
Status check(const MatmulBatchArgs& args);
Status check(const RopeTableArgs& args);
Status check(const RopeArgs& args);
Status check(const KvStoreArgs& args);
Status check(const AttentionArgs& args);
Status check(const SwigluArgs& args);
Status check(const AddArgs& args);
Status check(const SoftmaxArgs& args);
Status check(const GemmArgs& args);

}  // namespace driftwood::device
