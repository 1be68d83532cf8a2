#include "coordinator/soak/soak_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace mu {
namespace {

constexpr double kWidth = 460, kHeight = 180, kLeft = 62, kRight = 10, kTop = 26, kBottom = 14;

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
};

Range RangeOf(const std::vector<PlotPoint>& points) {
  Range range;
  for (const PlotPoint& point : points) {
    if (!std::isfinite(point.value)) continue;
    range.least = std::min(range.least, point.value);
    range.most = std::max(range.most, point.value);
  }
  if (range.least > range.most) return {0, 1};
  const double room = std::max((range.most - range.least) * 0.1, std::abs(range.most) * 1e-3);
  return {range.least - room, range.most + (room > 0 ? room : 1)};
}

}  // namespace

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string Plot(const std::string& title, const std::vector<PlotPoint>& points) {
  const Range range = RangeOf(points);
  const auto x = [&](size_t i) {
    const double share = points.size() < 2 ? 0.5 : static_cast<double>(i) / (points.size() - 1.0);
    return kLeft + share * (kWidth - kLeft - kRight);
  };
  const auto y = [&](double value) {
    return kTop + (range.most - value) / (range.most - range.least) * (kHeight - kTop - kBottom);
  };
  std::string svg =
      absl::StrFormat("<svg width=\"%g\" height=\"%g\" role=\"img\">", kWidth, kHeight);
  absl::StrAppend(&svg, "<text x=\"4\" y=\"14\">", Escaped(title), "</text>");
  for (const double value : {range.least, (range.least + range.most) / 2, range.most}) {
    absl::StrAppendFormat(&svg,
                          "<line class=\"grid\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>"
                          "<text class=\"tick\" x=\"%g\" y=\"%.1f\">%.4g</text>",
                          kLeft, kWidth - kRight, y(value), y(value), kLeft - 6, y(value) + 4,
                          value);
  }
  for (const bool disturbed : {false, true}) {
    std::string line, dots;
    for (size_t i = 0; i < points.size(); ++i) {
      const PlotPoint& point = points[i];
      if (point.disturbed != disturbed || !std::isfinite(point.value)) continue;
      absl::StrAppendFormat(&line, "%.1f,%.1f ", x(i), y(point.value));
      absl::StrAppendFormat(
          &dots, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"><title>%s</title></circle>",
          point.flagged ? "flagged" : "", x(i), y(point.value), point.flagged ? 5 : 3,
          Escaped(point.text));
    }
    absl::StrAppend(&svg, "<g class=\"", disturbed ? "disturbed" : "calm", "\"><polyline points=\"",
                    line, "\"/>", dots, "</g>");
  }
  return svg + "</svg>";
}

}  // namespace mu
