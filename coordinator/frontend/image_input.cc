#include "coordinator/frontend/image_input.h"

#include "coordinator/frontend/neural_ops.h"

namespace mu {

ModelOutput ClassOutput(const Sym& logits, const std::string& label_column, const BatchRef& batch) {
  ModelOutput output;
  output.task = Task::kMultiClass;
  output.prediction = Softmax(logits);
  if (batch.Has(label_column)) {
    output.label = batch[label_column];
    output.loss = ReduceMean(SparseSoftmaxCrossEntropy(logits, output.label));
  }
  return output;
}

}  // namespace mu
