// Residual networks for small images: He, Zhang, Ren, Sun, "Deep Residual Learning for Image
// Recognition" (2016), section 4.2.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/frontend/features.h"
#include "coordinator/frontend/layers.h"
#include "coordinator/frontend/layers_image.h"
#include "coordinator/frontend/layers_norm.h"

namespace mu {

// A convolution, stages of blocks, the mean over the image, and the logits. Each stage but the
// first halves the image. Where a block changes the shape, its shortcut is a convolution with
// filters of size 1 (the paper's option B).
class ResNet final : public Model {
 public:
  static std::vector<ModelProblem> Problems(const pb::ResNetProto& config);
  // INVALID_ARGUMENT naming the key of the first problem.
  static absl::StatusOr<std::unique_ptr<Model>> FromConfig(const pb::ResNetProto& config);

  absl::Status Create(VariableFactory& factory) override;
  ModelOutput Build(FunctionBuilder& builder, const BatchRef& batch) override;
  Task task() const override { return Task::kMultiClass; }
  std::vector<pb::ColumnSchema> Columns() const override;
  std::map<std::string, int64_t> IdBounds() const override {
    return {{config_.label_column(), config_.classes()}};
  }

 private:
  struct ConvNorm {
    Conv2d convolution;
    BatchNorm norm;
    Sym operator()(const Sym& x) const { return norm(convolution(x)); }
  };
  struct Block {
    ConvNorm first;
    ConvNorm second;
    std::optional<ConvNorm> shortcut;
  };

  explicit ResNet(const pb::ResNetProto& config) : config_(config) {}
  static absl::StatusOr<ConvNorm> CreateConvNorm(VariableFactory& factory, const std::string& name,
                                                 int64_t inputs, int64_t outputs, int64_t kernel,
                                                 int64_t stride);

  const pb::ResNetProto config_;
  ConvNorm first_;
  std::vector<Block> blocks_;
  Dense logits_;
};

}  // namespace mu
