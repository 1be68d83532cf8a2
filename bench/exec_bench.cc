// Speed of the executor on one core: products, unique, gather, and whole steps of DLRM without
// servers.
//
//   build/bin/exec_bench --benchmark_filter=Dlrm
//
// DLRM has a batch of 2048 and 26 tables of 200,000 rows of 16. Its products are 5.7 GFLOP a step;
// the counter GFLOP/s says how near a step comes to what Gemm alone reaches.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <map>

#include "common/base/hash.h"
#include "common/exec/compiled_function.h"
#include "common/exec/gemm.h"
#include "common/exec/kernel_table.h"
#include "common/exec/small_gemm.h"
#include "common/graph/op_table.h"
#include "common/obs/telemetry.h"
#include "coordinator/frontend/dlrm.h"
#include "coordinator/passes/trace.h"

namespace mu {
namespace {

Tensor RandomFloats(SplitMix& random, const Shape& shape, float scale = 1) {
  Tensor tensor(kFloat32, shape);
  for (float& value : tensor.flat<float>())
    value = scale * static_cast<float>(2 * random.Unit() - 1);
  return tensor;
}

void BM_Gemm(benchmark::State& state) {
  const int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  const bool transpose_a = state.range(3) != 0, transpose_b = state.range(4) != 0;
  SplitMix random(1);
  const Tensor a = RandomFloats(random, {m, k}), b = RandomFloats(random, {k, n});
  Tensor out(kFloat32, {m, n});
  for (auto _ : state) {
    Gemm(transpose_a, transpose_b, m, n, k, a.data<float>(), b.data<float>(), out.data<float>(),
         Epilogue());
    benchmark::ClobberMemory();
  }
  state.counters["FLOP/s"] =
      benchmark::Counter(2.0 * m * k * n, benchmark::Counter::kIsIterationInvariantRate);
}
// Forward, gradient of the weights and gradient of the input of DLRM's layers.
BENCHMARK(BM_Gemm)
    ->Args({2048, 13, 512, 0, 0})
    ->Args({13, 2048, 512, 1, 0})
    ->Args({2048, 512, 256, 0, 0})
    ->Args({512, 2048, 256, 1, 0})
    ->Args({2048, 256, 512, 0, 1})
    ->Args({2048, 256, 64, 0, 0})
    ->Args({2048, 64, 16, 0, 0})
    ->Args({2048, 367, 512, 0, 0})
    ->Args({367, 2048, 512, 1, 0})
    ->Args({2048, 512, 367, 0, 1})
    ->Args({2048, 256, 1, 0, 0})
    ->Args({256, 2048, 1, 1, 0})
    ->Args({2048, 1, 256, 0, 1})
    ->Args({1024, 1024, 1024, 0, 0});

// DLRM's interaction and its two gradients.
void BM_SmallGemm(benchmark::State& state) {
  const int64_t count = 2048, m = state.range(0), k = state.range(1), n = state.range(2);
  SplitMix random(1);
  const Tensor a = RandomFloats(random, {count, m, k}), b = RandomFloats(random, {count, k, n});
  Tensor out(kFloat32, {count, m, n});
  AlignedBuffer scratch;
  for (auto _ : state) {
    SmallGemm(state.range(3) != 0, state.range(4) != 0, count, m, n, k, a.data<float>(),
              b.data<float>(), out.data<float>(), scratch);
    benchmark::ClobberMemory();
  }
  state.counters["FLOP/s"] =
      benchmark::Counter(2.0 * count * m * k * n, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_SmallGemm)
    ->Args({27, 16, 27, 0, 1})
    ->Args({27, 27, 16, 0, 0})
    ->Args({27, 27, 16, 1, 0});

// Runs one kernel again and again, as steps do.
class OneKernel {
 public:
  OneKernel(const std::string& op, std::vector<Tensor> inputs,
            std::map<std::string, pb::AttrValue> attrs)
      : tensors_(std::move(inputs)) {
    node_.set_op(op);
    for (auto& [name, value] : attrs) (*node_.mutable_attrs())[name] = value;
    const OpDef* const def = AllOps().Find(op);
    NodeSpec spec{node_, def->Read(node_.attrs()), {}, {}};
    for (Tensor& tensor : tensors_) {
      spec.inputs.push_back({tensor.dtype(), tensor.shape()});
      views_.push_back({tensor.dtype(), tensor.shape(), tensor.raw()});
    }
    for (const View& view : views_) pointers_.push_back(&view);
    spec.outputs = def->Infer(spec.inputs, node_.attrs()).value();
    kernel_ = AllKernels().Find(op)(spec).value();
    buffers_.resize(spec.outputs.size());
    outputs_.resize(spec.outputs.size());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      outputs_[i].dtype = spec.outputs[i].dtype;
      places_.push_back({&buffers_[i], nullptr, -1});
    }
  }
  void Run() {
    KernelContext context(pointers_, absl::MakeSpan(outputs_), absl::MakeSpan(places_), &scratch_);
    MU_CHECK(kernel_->Run(context).ok());
    benchmark::ClobberMemory();
  }

 private:
  pb::NodeProto node_;
  std::vector<Tensor> tensors_;
  std::vector<View> views_;
  std::vector<const View*> pointers_;
  std::vector<AlignedBuffer> buffers_;
  std::vector<View> outputs_;
  std::vector<OutputPlace> places_;
  KernelPtr kernel_;
  Scratch scratch_;
};

pb::AttrValue IntAttr(int64_t value) {
  pb::AttrValue attr;
  attr.set_i(value);
  return attr;
}

Tensor RandomIds(SplitMix& random, const Shape& shape, int64_t below) {
  Tensor ids(kInt64, shape);
  for (int64_t& id : ids.flat<int64_t>()) {
    // Skewed as categories are: few ids are frequent.
    id = static_cast<int64_t>(std::pow(random.Unit(), 3) * static_cast<double>(below));
  }
  return ids;
}

// DLRM's interaction: 27 vectors of 16 for each of 2048 records.
void BM_Interaction(benchmark::State& state) {
  SplitMix random(1);
  OneKernel kernel("pairwise_interactions", {RandomFloats(random, {2048, 27, 16})}, {});
  for (auto _ : state) kernel.Run();
}
BENCHMARK(BM_Interaction);

void BM_InteractionGrad(benchmark::State& state) {
  SplitMix random(1);
  OneKernel kernel("pairwise_interactions_grad",
                   {RandomFloats(random, {2048, 351}), RandomFloats(random, {2048, 27, 16})}, {});
  for (auto _ : state) kernel.Run();
}
BENCHMARK(BM_InteractionGrad);

// Convolutions of mnist_cnn and mnist_resnet, filters of 3 x 3: (images, their side, channels,
// filters), as whole kernels: forward, gradient of the images, gradient of the filter.
void BM_Convolution(benchmark::State& state, const char* op) {
  const int64_t batch = state.range(0), side = state.range(1);
  const int64_t channels = state.range(2), filters = state.range(3);
  SplitMix random(1);
  const Shape images({batch, side, side, channels}), filter({3, 3, channels, filters});
  std::vector<Tensor> inputs = {RandomFloats(random, images), RandomFloats(random, filter)};
  if (std::string_view(op) != "conv2d") {
    inputs.insert(inputs.begin(), RandomFloats(random, {batch, side, side, filters}));
  }
  pb::AttrValue strides, padding;
  strides.mutable_ints()->add_value(1);
  strides.mutable_ints()->add_value(1);
  padding.set_s("same");
  OneKernel kernel(op, std::move(inputs), {{"strides", strides}, {"padding", padding}});
  for (auto _ : state) kernel.Run();
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * batch * side * side * 9 * channels * filters,
                                                benchmark::Counter::kIsIterationInvariantRate);
}
void ConvolutionSizes(benchmark::internal::Benchmark* bench) {
  for (const auto& sizes : std::vector<std::vector<int64_t>>{{128, 28, 1, 8},
                                                             {128, 28, 1, 16},
                                                             {128, 28, 8, 8},
                                                             {128, 14, 16, 32},
                                                             {128, 7, 32, 32},
                                                             {32, 28, 64, 64}}) {
    bench->Args(sizes);
  }
}
BENCHMARK_CAPTURE(BM_Convolution, forward, "conv2d")->Apply(ConvolutionSizes);
BENCHMARK_CAPTURE(BM_Convolution, images, "conv2d_input_grad")->Apply(ConvolutionSizes);
BENCHMARK_CAPTURE(BM_Convolution, filter, "conv2d_filter_grad")->Apply(ConvolutionSizes);

void BM_Unique(benchmark::State& state) {
  SplitMix random(1);
  OneKernel kernel("unique", {RandomIds(random, {state.range(0)}, 200000)}, {});
  for (auto _ : state) kernel.Run();
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Unique)->Arg(2048)->Arg(53248);

void BM_GatherRows(benchmark::State& state) {
  SplitMix random(1);
  OneKernel kernel(
      "gather",
      {RandomFloats(random, {state.range(0), 16}), RandomIds(random, {2048}, state.range(0))},
      {{"axis", IntAttr(0)}});
  for (auto _ : state) kernel.Run();
  state.SetItemsProcessed(state.iterations() * 2048);
}
BENCHMARK(BM_GatherRows)->Arg(2000)->Arg(1000000);

Tensor Triangle() {
  std::vector<int32_t> places;
  for (int32_t i = 0; i < 27; ++i) {
    for (int32_t j = 0; j < i; ++j) places.push_back(i * 27 + j);
  }
  return Tensor::Of<int32_t>({351}, places);
}

void BM_GatherColumns(benchmark::State& state) {
  SplitMix random(1);
  OneKernel kernel("gather", {RandomFloats(random, {2048, 729}), Triangle()},
                   {{"axis", IntAttr(1)}});
  for (auto _ : state) kernel.Run();
  state.SetItemsProcessed(state.iterations() * 2048 * 351);
}
BENCHMARK(BM_GatherColumns);

void BM_GatherColumnsGrad(benchmark::State& state) {
  SplitMix random(1);
  OneKernel kernel(
      "gather_grad",
      {RandomFloats(random, {2048, 351}), Triangle(), RandomFloats(random, {2048, 729})},
      {{"axis", IntAttr(1)}});
  for (auto _ : state) kernel.Run();
  state.SetItemsProcessed(state.iterations() * 2048 * 729);
}
BENCHMARK(BM_GatherColumnsGrad);

// Numbers variables and tables; their values are the same small ones everywhere and never change.
class StillParameters : public VariableFactory, public ParameterAccess {
 public:
  absl::StatusOr<Variable> CreateVariable(const VariableSpec& spec) override {
    MU_ASSIGN_OR_RETURN(pb::VariableProto proto, spec.ToProto());
    proto.set_id(static_cast<uint32_t>(variables_.size()));
    proto.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
    SplitMix random(proto.id());
    variables_.push_back(RandomFloats(random, spec.shape, 0.05f));
    *routing_.add_variables() = proto;
    return Variable(std::move(proto));
  }
  absl::StatusOr<EmbeddingTable> CreateEmbeddingTable(const EmbeddingTableSpec& spec) override {
    MU_ASSIGN_OR_RETURN(pb::TableProto proto, spec.ToProto());
    proto.set_id(static_cast<uint32_t>(routing_.tables_size()));
    proto.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
    *routing_.add_tables() = proto;
    return EmbeddingTable(std::move(proto));
  }
  absl::Status Pull(absl::Span<const VariableRead> variables,
                    absl::Span<const RowsRead> rows) override {
    for (const VariableRead& read : variables) {
      const Tensor& value = variables_[read.variable];
      std::memcpy(read.out, value.raw(), value.bytes());
    }
    for (const RowsRead& read : rows) {
      const int64_t dim = routing_.tables(static_cast<int>(read.table)).dim();
      for (int64_t i = 0; i < static_cast<int64_t>(read.ids.size()) * dim; ++i) {
        read.out[i] = 0.001f * static_cast<float>(i % 64);
      }
    }
    return absl::OkStatus();
  }
  absl::Status Multiply(absl::Span<const ProductRead> products) override {
    for (const ProductRead& product : products) {
      const Shape& shape = variables_[product.variable].shape();
      std::fill_n(product.out, product.batch * shape[product.back ? 1 : 0], 0.01f);
    }
    return absl::OkStatus();
  }
  absl::Status Push(absl::Span<const VariableWrite>, absl::Span<const RowsWrite>) override {
    return absl::OkStatus();
  }
  const pb::RoutingProto& routing() const { return routing_; }

 private:
  std::vector<Tensor> variables_;
  pb::RoutingProto routing_;
};

pb::DlrmProto DlrmConfig() {
  pb::DlrmProto config;
  config.set_embedding_dim(16);
  config.set_hash_buckets(200000);
  for (const uint32_t width : {512, 256, 64, 16}) config.add_bottom_mlp(width);
  for (const uint32_t width : {512, 256, 1}) config.add_top_mlp(width);
  return config;
}

Batch CriteoBatch(int64_t records) {
  SplitMix random(7);
  Batch batch;
  batch.records = static_cast<uint32_t>(records);
  batch.names = {"label", "dense", "ids"};
  Tensor labels(kFloat32, {records});
  for (float& label : labels.flat<float>()) label = static_cast<float>(random.Below(2));
  batch.columns = {labels, RandomFloats(random, {records, 13}),
                   RandomIds(random, {records, 26}, 200000)};
  return batch;
}

// The last argument turns fusion, folding and the reuse of buffers on.
void BM_DlrmStep(benchmark::State& state) {
  const int64_t records = state.range(0);
  const bool train = state.range(1) != 0;
  StillParameters parameters;
  auto model = Dlrm::FromConfig(DlrmConfig()).value();
  MU_CHECK(model->Create(parameters).ok());
  pb::DatasetProto dataset;
  dataset.set_id(1);
  dataset.mutable_criteo_tsv()->set_hash_buckets(200000);
  const auto function = Trace("step", [&](FunctionBuilder& f) {
    const ModelOutput output = model->Build(f, f.NextBatch(Dataset(dataset)));
    if (train) f.Minimize(output.loss);
    f.Return("loss", output.loss);
  });
  if (!function.ok()) return state.SkipWithError(function.status().ToString().c_str());
  PlanOptions options;
  options.fuse = options.reuse = options.fold = state.range(2) != 0;
  const auto compiled = CompileWithOptions(*function, parameters.routing(), options);
  if (!compiled.ok()) return state.SkipWithError(compiled.status().ToString().c_str());
  Telemetry telemetry;
  Executor executor(*compiled, &telemetry);
  const Batch batch = CriteoBatch(records);
  std::vector<Tensor> returns;
  const auto step = [&] { return executor.RunStep({.batch = &batch}, parameters, &returns); };
  if (const absl::Status status = step(); !status.ok()) {  // memory is there afterwards
    return state.SkipWithError(status.ToString().c_str());
  }
  for (auto _ : state) MU_CHECK(step().ok());
  state.SetItemsProcessed(state.iterations() * records);
  const double layers =
      13 * 512 + 512 * 256 + 256 * 64 + 64 * 16 + 367 * 512 + 512 * 256 + 256 + 27 * 27 * 16;
  const double flop = 2.0 * static_cast<double>(records) * (train ? 3 * layers - 13 * 512 : layers);
  state.counters["GEMM FLOP/s"] =
      benchmark::Counter(flop, benchmark::Counter::kIsIterationInvariantRate);
  for (const char* part : {"step.ids", "step.compute"}) {
    const Timer* const timer = telemetry.timer(part);
    state.counters[std::string(part) + " ms"] =
        static_cast<double>(timer->total_ns()) / 1e6 / static_cast<double>(timer->count());
  }
}
BENCHMARK(BM_DlrmStep)
    ->ArgNames({"records", "train", "optimised"})
    ->Args({2048, 1, 1})
    ->Args({2048, 1, 0})
    ->Args({2048, 0, 1})
    ->Args({512, 1, 1})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mu

BENCHMARK_MAIN();
