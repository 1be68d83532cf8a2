// Convolutions and pooling over an image, then an mlp: LeCun, Bottou, Bengio, Haffner,
// "Gradient-Based Learning Applied to Document Recognition" (1998), with ReLU and max pooling.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/frontend/features.h"
#include "coordinator/frontend/layers.h"
#include "coordinator/frontend/layers_image.h"

namespace mu {

// Behind each convolution (padded, so that the size stays) the image is halved. Variables
// conv_0/..., conv_1/..., hidden_0/..., logits/...
class Cnn final : public Model {
 public:
  static std::vector<ModelProblem> Problems(const pb::CnnProto& config);
  // INVALID_ARGUMENT naming the key of the first problem.
  static absl::StatusOr<std::unique_ptr<Model>> FromConfig(const pb::CnnProto& config);

  absl::Status Create(VariableFactory& factory) override;
  ModelOutput Build(FunctionBuilder& builder, const BatchRef& batch) override;
  Task task() const override { return Task::kMultiClass; }
  std::vector<pb::ColumnSchema> Columns() const override;
  std::map<std::string, int64_t> IdBounds() const override {
    return {{config_.label_column(), config_.classes()}};
  }

 private:
  explicit Cnn(const pb::CnnProto& config) : config_(config) {}

  const pb::CnnProto config_;
  std::vector<Conv2d> convolutions_;
  Mlp hidden_;
  Dense logits_;
};

}  // namespace mu
