// Writes the first inputs of the targets that take messages: real requests, functions of every op
// and of the built-in models, files that a save would write. Usage: make_seeds CORPUS
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/env/compression.h"
#include "common/env/file.h"
#include "common/rpc/frame.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/passes/trace.h"
#include "tests/common/exec/all_ops.h"
#include "tests/fuzz/seeds.h"
#include "tests/testing/fake_factory.h"

namespace mu {
namespace {

using testing::GraphMaker;

std::string corpus;

void WriteSeed(const std::string& target, const std::string& name, const std::string& bytes) {
  const std::string folder = corpus + "/" + target;
  MU_CHECK(MakeDirectories(folder).ok());
  MU_CHECK(WriteFileAtomic(folder + "/" + name, bytes).ok());
}
void WriteSeed(const std::string& target, const std::string& name,
               const google::protobuf::MessageLite& message) {
  WriteSeed(target, name, message.SerializeAsString());
}

// A function of one op, whose inputs are columns.
pb::FunctionProto FunctionOf(const std::string& op, const testing::OpCase& op_case) {
  GraphMaker g;
  std::vector<GraphMaker::Ref> inputs;
  for (const testing::Dense& input : op_case.inputs) {
    inputs.push_back(g.Column(absl::StrCat("c", inputs.size()), input.dtype, Shape(input.shape)));
  }
  g.Return("y", g.Op(op, inputs, op_case.attrs));
  return g.function();
}

pb::FunctionProto ModelFunction(const pb::ModelProto& config, const Dataset& data) {
  testing::FakeFactory factory;
  auto model = ModelRegistry::WithBuiltins().Create(config);
  MU_CHECK(model.ok() && (*model)->Create(factory).ok());
  auto function = Trace("train", [&](FunctionBuilder& f) {
    const ModelOutput output = (*model)->Build(f, f.NextBatch(data));
    f.Minimize(output.loss);
    f.Return("loss", output.loss);
    f.Return("prediction", output.prediction);
  });
  MU_CHECK(function.ok());
  for (auto& node : *function->mutable_nodes()) node.mutable_location()->set_file("model.cc");
  return *std::move(function);
}

Dataset DatasetOf(const DatasetSpec& spec) {
  pb::DatasetProto proto = spec.ToProto().value();
  proto.set_id(1);
  return Dataset(std::move(proto));
}

void WriteGraphs() {
  SplitMix random(7);
  for (const auto& [op, maker] : testing::AllCaseMakers()) {
    for (int i = 0; i < 2; ++i) {
      fuzz::GraphInput input;
      *input.mutable_function() = FunctionOf(op, maker(random));
      input.set_records(3);
      if (input.ByteSizeLong() < 4000) WriteSeed("graph", absl::StrCat(op, i), input);
    }
  }
  pb::ModelProto dlrm;
  dlrm.mutable_dlrm()->set_embedding_dim(2);
  dlrm.mutable_dlrm()->set_hash_buckets(8);
  dlrm.mutable_dlrm()->add_bottom_mlp(2);
  dlrm.mutable_dlrm()->add_top_mlp(1);
  fuzz::GraphInput input;
  *input.mutable_function() = ModelFunction(dlrm, DatasetOf(CriteoTsv({"x.tsv"}, 8).Batch(4)));
  WriteSeed("graph", "dlrm", input);
  pb::ModelProto factorization;
  auto* const mf = factorization.mutable_matrix_factorization();
  mf->set_dim(2);
  mf->set_users(8);
  mf->set_items(8);
  mf->set_user_column("user");
  mf->set_item_column("item");
  mf->set_rating_column("rating");
  *input.mutable_function() = ModelFunction(
      factorization,
      DatasetOf(Csv({"r.csv"}).Header().Id("user").Id("item").Number("rating").Batch(4)));
  WriteSeed("graph", "matrix_factorization", input);
}

void WriteUnpacked() {
  const std::string text = "label\t1\t2\nsecond line\n";
  int number = 0;
  for (const Compression compression :
       {Compression::kNone, Compression::kGzip, Compression::kZstd}) {
    for (const std::string& data : {std::string(), text, std::string(3000, 'x') + text}) {
      const std::string packed = Compress(compression, data).value();
      for (char name = 0; name < 3; ++name) {
        WriteSeed("unpack", absl::StrCat("one", number++), std::string{name, 1} + packed);
      }
      WriteSeed("unpack", absl::StrCat("two", number++),
                std::string{static_cast<char>(compression), 9} + packed + packed);
    }
  }
}

void WriteFrames() {
  const fuzz::PsCalls session = fuzzing::PsSession();
  for (const auto& call : session.calls()) {
    const auto frame = [](const google::protobuf::MessageLite& header, const std::string& payload) {
      FrameWriter writer(header, payload.size());
      std::memcpy(writer.payload, payload.data(), payload.size());
      return std::string(std::move(writer.buffer).Finish().view());
    };
    if (call.has_pull())
      WriteSeed("frame", "pull", frame(call.pull().header(), call.pull().payload()));
    if (call.has_push())
      WriteSeed("frame", "push", frame(call.push().header(), call.push().payload()));
  }
}

}  // namespace
}  // namespace mu

int main(int argc, char** argv) {
  MU_CHECK(argc == 2);
  mu::corpus = argv[1];
  mu::WriteGraphs();
  mu::WriteUnpacked();
  mu::WriteFrames();
  mu::WriteSeed("psserver", "session", mu::fuzzing::PsSession());
  mu::WriteSeed("psserver", "fresh", mu::fuzzing::PsSession(/*configured=*/false));
  mu::WriteSeed("ps_replies", "good", mu::fuzzing::GoodReplies());
  mu::WriteSeed("worker", "csv", mu::fuzzing::WorkerSession());
  mu::WriteSeed("worker", "no_data", mu::fuzzing::WorkerWithoutData());
  mu::WriteSeed("coordinator", "two_functions", mu::fuzzing::CoordinatorSession());
  mu::WriteSeed("checkpoint_load", "whole", mu::fuzzing::WholeCheckpoint());
  mu::WriteSeed("layout", "two_files", mu::fuzzing::TwoLayouts());
  for (const auto& [name, input] : mu::fuzzing::RecordTexts())
    mu::WriteSeed("records", name, input);
  for (const auto& [name, input] : mu::fuzzing::DataSets()) mu::WriteSeed("dataset", name, input);
  mu::WriteSeed("error_status", "detail", mu::fuzzing::ErrorDetails());
  return 0;
}
