// What the reference page says about layers, losses and composed calls (docs/reference/layers.md is
// made from it).
#pragma once

#include <string>
#include <vector>

namespace mu {

struct LayerDoc {
  std::string name;       // of the class
  std::string shapes;     // "[batch, n] -> [batch, m]"
  std::string variables;  // named after the layer; empty: none
  std::string doc;
};

struct CallDoc {
  std::string call;  // of the function
  std::string shapes;
  std::string doc;
};

const std::vector<LayerDoc>& LayerDocs();      // of layers.h and layers_*.h
const std::vector<CallDoc>& LossDocs();        // of losses.h
const std::vector<CallDoc>& NeuralCallDocs();  // of neural_ops.h, what is no op by itself

}  // namespace mu
