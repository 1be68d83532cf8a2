#include "coordinator/frontend/paper_factory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/sharding/partition.h"

namespace mu {

absl::StatusOr<Variable> PaperFactory::CreateVariable(const VariableSpec& spec) {
  VariableSpec full = spec;
  if (!full.optimizer && full.trainable && full.dtype == kFloat32) {
    full.optimizer = default_optimizer_;
    defaulted_.insert(full.name);
  }
  MU_ASSIGN_OR_RETURN(pb::VariableProto proto, full.ToProto());
  MU_RETURN_IF_ERROR(Claim(proto.name()));
  proto.set_id(static_cast<uint32_t>(variables_.size()));
  return variables_.emplace_back(std::move(proto));
}

absl::StatusOr<EmbeddingTable> PaperFactory::CreateEmbeddingTable(const EmbeddingTableSpec& spec) {
  EmbeddingTableSpec full = spec;
  if (!full.optimizer && full.trainable) {
    full.optimizer = default_optimizer_;
    defaulted_.insert(full.name);
  }
  MU_ASSIGN_OR_RETURN(pb::TableProto proto, full.ToProto());
  if (servers_ > 0 && full.partitions == 0) {
    full.partitions = DefaultTablePartitions(servers_);
    MU_RETURN_IF_ERROR(full.ToProto().status());
  }
  MU_RETURN_IF_ERROR(Claim(proto.name()));
  proto.set_id(static_cast<uint32_t>(tables_.size()));
  return tables_.emplace_back(std::move(proto));
}

absl::Status PaperFactory::Claim(const std::string& name) {
  if (names_.insert(name).second) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("two variables or tables are called '", name, "'"));
}

}  // namespace mu
