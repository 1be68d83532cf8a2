// ONNX's own checker, where Debian's libonnx-dev is installed.
#pragma once

#include <string>

namespace mu::testing {

// What ONNX's checker and its inference of types and shapes say against the serialized model; empty
// if nothing, or if the library is not there (then `*checked` is false). `path` of the model where
// it has data beside it.
std::string OnnxComplaint(const std::string& model, bool* checked);

}  // namespace mu::testing
