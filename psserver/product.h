// Products of a batch with the partitions of a variable, for pulls. Not thread safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/psserver.pb.h"
#include "psserver/payload.h"
#include "psserver/store/store.h"

namespace mu {

// INVALID_ARGUMENT unless the variable is a float32 matrix that has elements, and the batch is one
// that may be.
absl::Status CheckProduct(const StoredVariable& variable, uint64_t batch);

struct ProductPart {
  const VariablePartition* partition;
  const float* x;  // of the request
  int64_t batch;
  bool back;
  uint64_t out_bytes;

  void Compute(float* out) const { partition->Multiply(x, batch, back, out); }
};

// Takes what the products multiply from `payload`. INVALID_ARGUMENT for keys that are malformed or
// not held here.
absl::StatusOr<std::vector<ProductPart>> ResolveProducts(
    const StoreDirectory& directory,
    const google::protobuf::RepeatedPtrField<muster::ProductKey>& products, PayloadReader* payload);

}  // namespace mu
