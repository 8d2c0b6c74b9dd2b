// embed: rows of a packed matrix as f32.
#include "kernels/ref/packed_codes.h"
#include "kernels/ref/ref_ops.h"

namespace driftwood::kernels::ref {

void embed(const EmbedArgs& args, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    for (int64_t k = 0; k < args.table.cols; ++k) {
      args.out[t * args.table.cols + k] = weight_value(args.table, args.ids[t], k);
    }
  }
}

}  // namespace driftwood::kernels::ref
