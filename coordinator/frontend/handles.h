// Handles to what a job has on its servers: variables, embedding tables, datasets. Cheap to copy;
// immutable, so safe from all threads. Made by a VariableFactory (the coordinator, in users'
// programs).
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/tensor/shape.h"
#include "proto/dataset.pb.h"
#include "proto/table.pb.h"

namespace mu {

class Coordinator;

class Variable {
 public:
  Variable() = default;  // of nothing: an error where it is used
  explicit Variable(pb::VariableProto proto)
      : proto_(std::make_shared<const pb::VariableProto>(std::move(proto))) {}
  explicit Variable(std::shared_ptr<const pb::VariableProto> proto) : proto_(std::move(proto)) {}

  bool valid() const { return proto_ != nullptr; }
  const std::string& name() const { return proto().name(); }
  const pb::VariableProto& proto() const {
    MU_CHECK(valid());
    return *proto_;
  }
  Shape shape() const { return Shape(proto().shape()); }

 private:
  std::shared_ptr<const pb::VariableProto> proto_;
};

class EmbeddingTable {
 public:
  EmbeddingTable() = default;
  explicit EmbeddingTable(pb::TableProto proto)
      : proto_(std::make_shared<const pb::TableProto>(std::move(proto))) {}
  explicit EmbeddingTable(std::shared_ptr<const pb::TableProto> proto) : proto_(std::move(proto)) {}

  bool valid() const { return proto_ != nullptr; }
  const std::string& name() const { return proto().name(); }
  const pb::TableProto& proto() const {
    MU_CHECK(valid());
    return *proto_;
  }

 private:
  std::shared_ptr<const pb::TableProto> proto_;
};

class Dataset {
 public:
  Dataset() = default;
  explicit Dataset(pb::DatasetProto proto)
      : proto_(std::make_shared<const pb::DatasetProto>(std::move(proto))) {}
  explicit Dataset(std::shared_ptr<const pb::DatasetProto> proto) : proto_(std::move(proto)) {}

  bool valid() const { return proto_ != nullptr; }
  const std::string& name() const { return proto().name(); }
  const pb::DatasetProto& proto() const {
    MU_CHECK(valid());
    return *proto_;
  }

 private:
  friend class Coordinator;
  std::shared_ptr<const pb::DatasetProto> proto_;
  const void* owner_ = nullptr;  // the coordinator that created it
};

}  // namespace mu
