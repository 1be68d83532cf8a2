// Layers, for docs/program.md.
#include "examples/guide/guide.h"

namespace guide {

// [layers]
// A small network of layers. What a layer creates is named after it: "user", "norm/gamma", ...
struct LayeredModel {
  mu::Embedding users, jobs;
  mu::BatchNorm norm;
  mu::DropoutLayer dropout{0.1f};
  mu::Mlp mlp;

  static absl::StatusOr<LayeredModel> Create(mu::VariableFactory& c) {
    LayeredModel m;
    MU_ASSIGN_OR_RETURN(m.users, mu::Embedding::Create(c, "user", 1000, 4));
    MU_ASSIGN_OR_RETURN(m.jobs, mu::Embedding::Create(c, "job", 100, 4));
    MU_ASSIGN_OR_RETURN(m.norm, mu::BatchNorm::Create(c, "norm", 10));
    MU_ASSIGN_OR_RETURN(m.mlp, mu::Mlp::Create(c, "mlp", 10, {16, 1}));
    return m;
  }

  mu::Sym Logits(const mu::BatchRef& batch) const {  // [batch]
    auto age = mu::Reshape(batch["age"], {-1, 1});
    auto hour = mu::Reshape(batch["hour"], {-1, 1});
    auto all = mu::Concat({users(batch["user"]), jobs(batch["job"]), age, hour}, 1);
    return mu::Reshape(mlp(dropout(norm(all))), {-1});
  }
};

absl::StatusOr<mu::Function> DefineLayeredStep(mu::Coordinator& c, const LayeredModel& model,
                                               const mu::Dataset& data, std::string* summary) {
  return c.DefineFunction("layered", [&](mu::FunctionBuilder& f) {
    f.Train();  // dropout drops, batch norm takes the batch's moments
    mu::BatchRef batch = f.NextBatch(data);
    auto loss = mu::ReduceMean(mu::SigmoidCrossEntropy(model.Logits(batch), batch["clicked"]));
    f.Minimize(loss);
    f.Return("loss", loss);
    *summary = mu::Summary(f).value_or("");  // a table; empty if there was an error before
  });
}
// [/layers]

absl::StatusOr<std::string> TrainLayers(mu::Coordinator& c, const std::string& file) {
  MU_ASSIGN_OR_RETURN(LayeredModel model, LayeredModel::Create(c));
  MU_ASSIGN_OR_RETURN(mu::Dataset data, c.CreateDataset(Visits(file)));
  std::string summary;
  MU_ASSIGN_OR_RETURN(mu::Function step, DefineLayeredStep(c, model, data, &summary));
  MU_RETURN_IF_ERROR(mu::Train(c, step, data, {.epochs = 1}).status());
  return summary;
}

}  // namespace guide
