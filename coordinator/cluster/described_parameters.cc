#include "coordinator/cluster/described_parameters.h"

#include "absl/strings/str_cat.h"
#include "common/optimizer/optimizer_settings.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace mu {
namespace {

template <typename Message>
std::map<std::string, DescribedParameter> DescribeAll(const Message& message) {
  std::map<std::string, DescribedParameter> all;
  for (const pb::VariableProto& v : message.variables()) {
    DescribedParameter& described = all[v.name()];
    described.what =
        absl::StrCat("variable ", std::string(DTypeName(v.dtype())), Shape(v.shape()).ToString());
    described.partitions.assign(v.partition_starts().begin(), v.partition_starts().end());
    described.optimizer = DescribeOptimizer(v.optimizer());
  }
  for (const pb::TableProto& t : message.tables()) {
    DescribedParameter& described = all[t.name()];
    described.what = absl::StrCat("table of ", t.rows(), " rows of ", t.dim());
    described.is_table = true;
    if (t.partitions() > 0) described.partitions = {t.partitions()};
    described.optimizer = DescribeOptimizer(t.optimizer());
  }
  return all;
}

}  // namespace

std::map<std::string, DescribedParameter> DescribeParameters(const pb::CheckpointProto& saved) {
  return DescribeAll(saved);
}

std::map<std::string, DescribedParameter> DescribeParameters(const pb::RoutingProto& created) {
  return DescribeAll(created);
}

}  // namespace mu
