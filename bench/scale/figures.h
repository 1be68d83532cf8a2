// What all rounds of a measurement gave, by name.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace mu::scale {

class Figures {
 public:
  // Printed in the order of their first values.
  void Add(const std::string& name, double value) {
    for (auto& [known, values] : all_) {
      if (known == name) return values.push_back(value);
    }
    all_.emplace_back(name, std::vector<double>{value});
  }
  // 0: there is none of this name. Of an even number of values, the higher one in the middle.
  double Median(const std::string& name) const {
    for (const auto& [known, values] : all_) {
      if (known == name) return MedianOf(values);
    }
    return 0;
  }
  // A line each: the median, the lowest and the highest.
  void Print() const {
    for (const auto& [name, values] : all_) {
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      std::printf("  %-52s %12.3f (%.3f to %.3f)\n", name.c_str(), MedianOf(values), *low, *high);
    }
  }

 private:
  static double MedianOf(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  std::vector<std::pair<std::string, std::vector<double>>> all_;
};

}  // namespace mu::scale
