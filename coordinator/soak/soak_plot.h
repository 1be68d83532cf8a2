// A plot of a few values over runs, as SVG. Pure.
#pragma once

#include <string>
#include <vector>

namespace mu {

struct PlotPoint {
  double value = 0;  // not finite: nothing is drawn
  bool disturbed = false;
  bool flagged = false;
  std::string text;  // shown when the mouse is over it
};

// Runs from left to right, disturbed and undisturbed ones as two lines.
std::string Plot(const std::string& title, const std::vector<PlotPoint>& points);

// As HTML and SVG want it.
std::string Escaped(const std::string& text);

}  // namespace mu
