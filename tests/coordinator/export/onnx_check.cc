#include "tests/coordinator/export/onnx_check.h"

#ifdef MUSTER_HAS_ONNX
#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>
#endif

namespace mu::testing {

std::string OnnxComplaint(const std::string& bytes, bool* checked) {
#ifdef MUSTER_HAS_ONNX
  *checked = true;
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) return "it does not parse";
  try {
    onnx::checker::check_model(model);
    const onnx::ShapeInferenceOptions strict(/*check_type=*/true, /*strict_mode=*/1,
                                             /*data_propagation=*/true);
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), strict);
  } catch (const std::exception& error) {
    return error.what();
  }
#else
  (void)bytes;
  *checked = false;
#endif
  return "";
}

}  // namespace mu::testing
