// What the models of images share: the column, its classes, and the loss.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/config_rules.h"

namespace mu {

// `Config` is CnnProto or ResNetProto.
template <typename Config>
int64_t ChannelsOf(const Config& config) {
  return config.has_channels() ? config.channels() : 1;
}

// Without `channels` the column is [batch, height, width], with it [batch, height, width,
// channels].
template <typename Config>
std::vector<pb::ColumnSchema> ImageColumns(const Config& config) {
  Shape shape({kUnknownDim, config.height(), config.width()});
  if (config.has_channels()) shape.Append(config.channels());
  return {MakeColumn(config.image_column(), kFloat32, shape),
          MakeColumn(config.label_column(), kInt64, {kUnknownDim})};
}

// float32 [batch, height, width, channels].
template <typename Config>
Sym ImageOf(const Config& config, const BatchRef& batch) {
  return Reshape(batch[config.image_column()],
                 {-1, config.height(), config.width(), ChannelsOf(config)});
}

// Adds what is wrong with the keys that both have. The image is halved `halvings` times.
template <typename Config>
void CheckImageConfig(const Config& config, int halvings, ConfigRules* rules) {
  constexpr int64_t kMostPixels = 4096;
  rules->Column("image_column", config.image_column());
  rules->Range("height", config.height(), 1, kMostPixels, "the image's", true);
  rules->Range("width", config.width(), 1, kMostPixels, "the image's", true);
  if (config.has_channels())
    rules->Range("channels", config.channels(), 1, kMostPixels, "leave it out for gray images");
  rules->Range("classes", config.classes(), 2, 1 << 24, "labels are below it", true);
  rules->Column("label_column", config.label_column());
  rules->Widths("filters", config.filters());
  const int64_t least = std::min(config.height(), config.width());
  if (least > 0 && halvings < 63 && (least >> halvings) < 1) {
    rules->Add(
        "filters",
        absl::StrCat("halve the image ", halvings, " times, but it is only ", least, " wide"),
        "write fewer");
  }
}

// logits [batch, classes].
ModelOutput ClassOutput(const Sym& logits, const std::string& label_column, const BatchRef& batch);

}  // namespace mu
