#include "common/graph/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/graph/fingerprint.h"
#include "common/graph/op_table.h"
#include "common/graph/print.h"
#include "tests/common/graph/specs.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

// x [?, 3] times w [3, 2], the loss's gradient applied to w; one table.
pb::FunctionProto Example() {
  pb::FunctionProto f;
  f.set_name("train");
  f.set_dataset(1);
  pb::ArgProto* arg = f.add_args();
  arg->set_name("rate");
  arg->set_dtype(kFloat32);
  const int x =
      AddNode(f, "batch_column", {}, {Text("column", "x"), Type(kFloat32), Dims({-1, 3})}, 10);
  const int ids =
      AddNode(f, "batch_column", {}, {Text("column", "ids"), Type(kInt64), Dims({-1})}, 11);
  const int rate = AddNode(f, "arg", {}, {Int("index", 0), Type(kFloat32)}, 12);
  const int unique = AddNode(f, "unique", {{ids, 0}}, {}, 13);
  const auto table = {Text("table", "t"), Int("id", 4), Int("rows", 100), Int("dim", 2)};
  const int rows = AddNode(f, "pull_rows", {{unique, 0}}, table, 13);
  const int gathered = AddNode(f, "gather", {{rows, 0}, {unique, 1}}, {}, 13);
  const auto variable = {Text("variable", "w"), Int("id", 7), Type(kFloat32), Dims({3, 2})};
  const int w = AddNode(f, "variable_read", {}, variable, 14);
  const int product = AddNode(f, "matmul", {{x, 0}, {w, 0}}, {}, 15);
  const int sum = AddNode(f, "add", {{product, 0}, {gathered, 0}}, {}, 16);
  const int scaled = AddNode(f, "multiply", {{sum, 0}, {rate, 0}}, {}, 17);
  const int gradient = AddNode(f, "matmul", {{x, 0}, {scaled, 0}}, {Flag("transpose_a", true)}, 18);
  AddNode(f, "apply_gradient", {{gradient, 0}}, variable, 18);
  const int scattered = AddNode(f, "gather_grad", {{scaled, 0}, {unique, 1}, {rows, 0}}, {}, 19);
  AddNode(f, "push_rows", {{unique, 0}, {scattered, 0}}, table, 19);
  const int loss = AddNode(f, "reduce_mean", {{scaled, 0}}, {}, 20);
  AddReturn(f, "loss", loss);
  return f;
}

// The message of a refusal that must be there, with its typed detail.
std::string Refusal(const pb::FunctionProto& f, GraphStage stage = GraphStage::kLowered) {
  const absl::Status status = VerifyFunction(f, stage);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(KindOf(status), pb::ERROR_USER);
  const auto detail = DetailOf(status);
  EXPECT_TRUE(detail.has_value());
  if (detail) {
    EXPECT_EQ(detail->function(), f.name());
  }
  return std::string(status.message());
}

TEST(Verifier, AcceptsAndInfers) {
  const pb::FunctionProto f = Example();
  MU_ASSERT_OK(VerifyFunction(f, GraphStage::kLowered));
  MU_ASSERT_OK_AND_ASSIGN(const FunctionSpecs specs, InferSpecs(f));
  EXPECT_EQ(specs[7][0], F32({-1, 2}));
  EXPECT_EQ(specs[3].size(), 2u);
}

TEST(Verifier, NamesOpNodeAndPlace) {
  pb::FunctionProto f = Example();
  (*f.mutable_nodes(7)->mutable_attrs())["transpose_b"].set_b(true);
  const std::string message = Refusal(f);
  EXPECT_THAT(message, HasSubstr("\"matmul\" (node 7"));
  EXPECT_THAT(message, HasSubstr("model.cc:15"));
  EXPECT_THAT(message, HasSubstr("inner sizes differ"));
  const auto detail = DetailOf(VerifyFunction(f, GraphStage::kLowered));
  EXPECT_EQ(detail->op(), "matmul");
  EXPECT_EQ(detail->location().line(), 15);
}

TEST(Verifier, UnknownOp) {
  pb::FunctionProto f = Example();
  f.mutable_nodes(7)->set_op("matmull");
  EXPECT_THAT(Refusal(f), HasSubstr("did you mean \"matmul\"?"));
}

TEST(Verifier, RefusesCyclesAndForwardAndBackwardReferences) {
  for (const int target : {7, 8, 100, -1, INT32_MIN}) {
    pb::FunctionProto f = Example();
    f.mutable_nodes(7)->mutable_inputs(0)->set_node(target);
    EXPECT_THAT(Refusal(f), HasSubstr("does not come before it")) << target;
  }
  pb::FunctionProto f = Example();
  f.mutable_nodes(5)->mutable_inputs(1)->set_output(2);
  EXPECT_THAT(Refusal(f), HasSubstr("output 2 of node 3, which has 2"));
}

TEST(Verifier, RefusesALieAboutAVariable) {
  pb::FunctionProto f = Example();
  (*f.mutable_nodes(11)->mutable_attrs())["variable"].set_s("v");
  EXPECT_THAT(Refusal(f), HasSubstr("says that variable 7 is \"v\""));
  f = Example();
  (*f.mutable_nodes(4)->mutable_attrs())["rows"].set_i(5);
  EXPECT_THAT(Refusal(f), HasSubstr("says that table 4 is"));
  f = Example();
  for (const int node : {6, 11}) (*f.mutable_nodes(node)->mutable_attrs())["id"].set_i(-3);
  EXPECT_THAT(Refusal(f), HasSubstr("\"id\" is -3"));
}

TEST(Verifier, EachParameterOncePerKindOfUpdate) {
  pb::FunctionProto f = Example();
  *f.add_nodes() = f.nodes(11);
  EXPECT_THAT(Refusal(f), HasSubstr("twice for one parameter"));
  f = Example();
  *f.add_nodes() = f.nodes(4);
  EXPECT_THAT(Refusal(f), HasSubstr("twice for one parameter"));
}

TEST(Verifier, PushedIdsMustBeDistinct) {
  pb::FunctionProto f = Example();
  f.mutable_nodes(13)->mutable_inputs(0)->set_node(1);  // the ids of the batch, which may repeat
  EXPECT_THAT(Refusal(f), HasSubstr("distinct ids"));
}

TEST(Verifier, StagesKeepTheirOpsApart) {
  EXPECT_THAT(Refusal(Example(), GraphStage::kTraced), HasSubstr("made by the passes only"));
  pb::FunctionProto f = Example();
  AddNode(f, "embedding_lookup", {{1, 0}},
          {Text("table", "t"), Int("id", 4), Int("rows", 100), Int("dim", 2)});
  EXPECT_THAT(Refusal(f), HasSubstr("was not lowered"));
}

TEST(Verifier, ArgumentsReturnsAndDataset) {
  pb::FunctionProto f = Example();
  f.clear_args();
  EXPECT_THAT(Refusal(f), HasSubstr("is argument 0, the function has 0"));
  f = Example();
  f.mutable_args(0)->set_dtype(kInt64);
  EXPECT_THAT(Refusal(f), HasSubstr("as float32 that is declared int64"));
  f = Example();
  *f.add_args() = f.args(0);
  EXPECT_THAT(Refusal(f), HasSubstr("two arguments are named \"rate\""));
  f = Example();
  f.mutable_returns(0)->mutable_value()->set_node(99);
  EXPECT_THAT(Refusal(f), HasSubstr("return \"loss\" refers to node 99"));
  f = Example();
  *f.add_returns() = f.returns(0);
  EXPECT_THAT(Refusal(f), HasSubstr("two returns are named \"loss\""));
  f = Example();
  f.set_dataset(0);
  EXPECT_THAT(Refusal(f), HasSubstr("names no dataset"));
}

// One random change to a random node.
void Mutate(SplitMix& random, pb::FunctionProto* f) {
  static const std::vector<const OpDef*> ops = AllOps().All();
  const auto below = [&](int64_t n) {
    return static_cast<int>(random.Below(static_cast<uint64_t>(n)));
  };
  pb::NodeProto* node = f->mutable_nodes(below(f->nodes_size()));
  const auto odd = [&]() -> int64_t {
    static constexpr int64_t kOdd[] = {
        -2, -1, 0, 1, 2, 3, 16, INT32_MAX, INT64_MIN, INT64_MAX, int64_t{1} << 40};
    return kOdd[below(11)];
  };
  switch (below(9)) {
    case 0:
      node->set_op(ops[below(static_cast<int64_t>(ops.size()))]->name);
      break;
    case 1:
      if (node->inputs_size() > 0)
        node->mutable_inputs(below(node->inputs_size()))->set_node(static_cast<int>(odd()));
      break;
    case 2:
      if (node->inputs_size() > 0)
        node->mutable_inputs(below(node->inputs_size()))->set_output(static_cast<int>(odd()));
      break;
    case 3:
      node->add_inputs()->set_node(below(f->nodes_size()));
      break;
    case 4:
      if (node->inputs_size() > 0) node->mutable_inputs()->RemoveLast();
      break;
    case 5:
      f->mutable_nodes()->SwapElements(below(f->nodes_size()), below(f->nodes_size()));
      break;
    case 6:  // take over another node's attributes
      *node->mutable_attrs() = f->nodes(below(f->nodes_size())).attrs();
      break;
    case 7:
      if (f->returns_size() > 0)
        f->mutable_returns(0)->mutable_value()->set_node(static_cast<int>(odd()));
      break;
    case 8: {
      const OpDef* def = AllOps().Find(node->op());
      if (def == nullptr || def->attrs.empty()) break;
      pb::AttrValue& value =
          (*node->mutable_attrs())[def->attrs[below(static_cast<int64_t>(def->attrs.size()))].name];
      switch (below(6)) {
        case 0:
          value.set_i(odd());
          break;
        case 1:
          value.mutable_ints()->add_value(odd());
          break;
        case 2:
          value.mutable_shape()->add_dims(odd());
          break;
        case 3:
          value.set_dtype(static_cast<DType>(below(9)));
          break;
        case 4:
          value.mutable_tensor()->mutable_shape()->add_dims(odd());
          break;
        default:
          value.clear_value();
      }
    }
  }
}

// Nothing that can come over the wire may crash the verifier, the printers or the fingerprint.
TEST(Verifier, RandomMutationsNeverCrash) {
  constexpr uint64_t kSeed = 20240607;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  SplitMix random(kSeed);
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    pb::FunctionProto f = Example();
    const int changes = 1 + static_cast<int>(random.Below(4));
    for (int i = 0; i < changes; ++i) Mutate(random, &f);
    const absl::Status status = VerifyFunction(f, GraphStage::kLowered);
    if (status.ok()) {
      ++accepted;
    } else {
      EXPECT_EQ(KindOf(status), pb::ERROR_USER);
    }
    FunctionToText(f);
    FunctionToDot(f);
    FingerprintOf(f);
  }
  EXPECT_GT(accepted, 0);     // the changes are not all hopeless,
  EXPECT_LT(accepted, 1500);  // nor all harmless
}

TEST(Verifier, RandomBytesNeverCrash) {
  google::protobuf::LogSilencer silencer;  // it reports each text that is no UTF-8
  SplitMix random(7);
  const std::string valid = Example().SerializeAsString();
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = valid;
    for (int i = 0; i < 3; ++i)
      bytes[random.Below(bytes.size())] = static_cast<char>(random.Next());
    pb::FunctionProto f;
    if (!f.ParseFromString(bytes)) continue;
    VerifyFunction(f, GraphStage::kLowered).IgnoreError();
    FunctionToText(f);
  }
}

}  // namespace
}  // namespace mu
