#include "coordinator/frontend/resnet.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/image_input.h"
#include "coordinator/frontend/neural_ops.h"

namespace mu {

std::vector<ModelProblem> ResNet::Problems(const pb::ResNetProto& config) {
  std::vector<ModelProblem> problems;
  ConfigRules rules(&problems);
  CheckImageConfig(config, std::max(0, config.filters_size() - 1), &rules);
  if (config.has_blocks()) rules.Range("blocks", config.blocks(), 1, 1000, "3 is ResNet-20");
  return problems;
}

absl::StatusOr<std::unique_ptr<Model>> ResNet::FromConfig(const pb::ResNetProto& config) {
  MU_RETURN_IF_ERROR(FirstProblem("resnet", Problems(config)));
  return std::unique_ptr<Model>(new ResNet(config));
}

absl::StatusOr<ResNet::ConvNorm> ResNet::CreateConvNorm(VariableFactory& factory,
                                                        const std::string& name, int64_t inputs,
                                                        int64_t outputs, int64_t kernel,
                                                        int64_t stride) {
  // He et al., "Delving Deep into Rectifiers" (2015): the variance that ReLU halves.
  const float stddev = std::sqrt(2.0f / static_cast<float>(kernel * kernel * outputs));
  ConvNorm made;
  MU_ASSIGN_OR_RETURN(made.convolution, Conv2d::Create(factory, name, inputs, outputs,
                                                       {.height = kernel,
                                                        .width = kernel,
                                                        .stride_height = stride,
                                                        .stride_width = stride,
                                                        .has_bias = false,
                                                        .kernel = Normal{0.0f, stddev}}));
  MU_ASSIGN_OR_RETURN(made.norm, BatchNorm::Create(factory, name + "/norm", outputs));
  return made;
}

absl::Status ResNet::Create(VariableFactory& factory) {
  constexpr int64_t kKernel = 3;
  int64_t channels = config_.filters(0);
  MU_ASSIGN_OR_RETURN(first_,
                      CreateConvNorm(factory, "first", ChannelsOf(config_), channels, kKernel, 1));
  const int blocks = config_.has_blocks() ? static_cast<int>(config_.blocks()) : 1;
  for (int stage = 0; stage < config_.filters_size(); ++stage) {
    const int64_t outputs = config_.filters(stage);
    for (int i = 0; i < blocks; ++i) {
      const std::string name = absl::StrCat("stage_", stage, "/block_", i, "/");
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      Block block;
      MU_ASSIGN_OR_RETURN(
          block.first, CreateConvNorm(factory, name + "first", channels, outputs, kKernel, stride));
      MU_ASSIGN_OR_RETURN(block.second,
                          CreateConvNorm(factory, name + "second", outputs, outputs, kKernel, 1));
      if (stride > 1 || channels != outputs) {
        MU_ASSIGN_OR_RETURN(block.shortcut, CreateConvNorm(factory, name + "shortcut", channels,
                                                           outputs, 1, stride));
      }
      blocks_.push_back(std::move(block));
      channels = outputs;
    }
  }
  MU_ASSIGN_OR_RETURN(logits_, Dense::Create(factory, "logits", channels, config_.classes()));
  return absl::OkStatus();
}

ModelOutput ResNet::Build(FunctionBuilder&, const BatchRef& batch) {
  Sym x = Relu(first_(ImageOf(config_, batch)));
  for (const Block& block : blocks_) {
    const Sym shortcut = block.shortcut.has_value() ? (*block.shortcut)(x) : x;
    x = Relu(block.second(Relu(block.first(x))) + shortcut);
  }
  return ClassOutput(logits_(ReduceMean(x, {1, 2})), config_.label_column(), batch);
}

std::vector<pb::ColumnSchema> ResNet::Columns() const { return ImageColumns(config_); }

}  // namespace mu
