#include "psserver/product.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/tensor/dtype.h"
#include "psserver/held.h"

namespace mu {

namespace {

constexpr uint64_t kMostRecords = uint64_t{1} << 24;  // sizes in bytes cannot overflow then

}  // namespace

absl::Status CheckProduct(const StoredVariable& variable, uint64_t batch) {
  const pb::VariableProto& proto = variable.definition->proto;
  if (proto.dtype() != kFloat32 || proto.shape().dims_size() != 2 || proto.shape().dims(0) == 0 ||
      proto.shape().dims(1) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable '", proto.name(), "' is no float32 matrix; a server multiplies nothing else"));
  }
  if (batch <= kMostRecords) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a product has ", batch, " records; at most ", kMostRecords, " are possible"));
}

absl::StatusOr<std::vector<ProductPart>> ResolveProducts(
    const StoreDirectory& directory,
    const google::protobuf::RepeatedPtrField<pb::ProductKey>& products, PayloadReader* payload) {
  std::vector<ProductPart> parts;
  const pb::ProductKey* last = nullptr;
  for (const pb::ProductKey& key : products) {
    MU_ASSIGN_OR_RETURN(const StoredVariable* variable,
                        HeldVariable(directory, key.variable(), key.partition()));
    MU_RETURN_IF_ERROR(CheckProduct(*variable, key.rows()));
    const VariablePartition* partition = variable->partitions[key.partition()].get();
    ProductPart part{partition, nullptr, key.rows(), key.back(), 0};
    const uint64_t batch = key.rows();
    const bool same = last != nullptr && !key.back() && !last->back() &&
                      last->variable() == key.variable() && last->rows() == key.rows() &&
                      last->partition() < key.partition();
    if (same) {
      part.x = parts.back().x;
    } else {
      const uint64_t width = key.back() ? partition->rows() : partition->columns();
      MU_ASSIGN_OR_RETURN(part.x, payload->Take<float>(batch * width));
      payload->Align();
    }
    part.out_bytes =
        batch * (key.back() ? partition->columns() : partition->rows()) * sizeof(float);
    parts.push_back(part);
    last = &key;
  }
  return parts;
}

}  // namespace mu
