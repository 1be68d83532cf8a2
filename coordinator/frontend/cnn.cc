#include "coordinator/frontend/cnn.h"

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/image_input.h"
#include "coordinator/frontend/neural_ops.h"

namespace mu {
namespace {

constexpr int64_t kKernel = 3;

}  // namespace

std::vector<ModelProblem> Cnn::Problems(const pb::CnnProto& config) {
  std::vector<ModelProblem> problems;
  ConfigRules rules(&problems);
  CheckImageConfig(config, config.filters_size(), &rules);
  if (config.has_kernel()) rules.Range("kernel", config.kernel(), 1, 31, "3 is usual");
  for (int i = 0; i < config.hidden_size(); ++i)
    rules.Range(absl::StrCat("hidden[", i, "]"), config.hidden(i), 1, 1 << 16);
  rules.Dropout("dropout", config.dropout());
  return problems;
}

absl::StatusOr<std::unique_ptr<Model>> Cnn::FromConfig(const pb::CnnProto& config) {
  MU_RETURN_IF_ERROR(FirstProblem("cnn", Problems(config)));
  return std::unique_ptr<Model>(new Cnn(config));
}

absl::Status Cnn::Create(VariableFactory& factory) {
  const int64_t kernel = config_.has_kernel() ? config_.kernel() : kKernel;
  int64_t channels = ChannelsOf(config_);
  for (int i = 0; i < config_.filters_size(); ++i) {
    MU_ASSIGN_OR_RETURN(
        Conv2d convolution,
        Conv2d::Create(factory, absl::StrCat("conv_", i), channels, config_.filters(i),
                       {.height = kernel, .width = kernel, .activation = Activation::kRelu}));
    convolutions_.push_back(std::move(convolution));
    channels = config_.filters(i);
  }
  int64_t width =
      (config_.height() >> config_.filters_size()) * (config_.width() >> config_.filters_size());
  width *= channels;
  if (config_.hidden_size() > 0) {
    MU_ASSIGN_OR_RETURN(hidden_, Mlp::Create(factory, "hidden", width,
                                             {config_.hidden().begin(), config_.hidden().end()},
                                             {.last_activation = Activation::kRelu}));
    width = config_.hidden(config_.hidden_size() - 1);
  }
  MU_ASSIGN_OR_RETURN(logits_, Dense::Create(factory, "logits", width, config_.classes()));
  return absl::OkStatus();
}

ModelOutput Cnn::Build(FunctionBuilder&, const BatchRef& batch) {
  Sym x = ImageOf(config_, batch);
  for (const Conv2d& convolution : convolutions_) x = MaxPool2d(convolution(x));
  x = Flatten(x);
  if (config_.hidden_size() > 0) x = hidden_(x);
  if (config_.dropout() > 0) x = Dropout(x, config_.dropout());
  return ClassOutput(logits_(x), config_.label_column(), batch);
}

std::vector<pb::ColumnSchema> Cnn::Columns() const { return ImageColumns(config_); }

}  // namespace mu
