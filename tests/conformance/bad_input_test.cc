// What a broken or hostile client may send to real daemons: each such request gets a clear error,
// the daemon lives, and a job that runs beside it does not notice. Bytes that are no request at
// all: garbage_test.cc; bad_job_file: bad_job_file_test.cc; bad_data_line:
// tests/integration/cli/bad_input_test.cc.
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/base/version.h"
#include "tests/conformance/victims.h"
#include "tests/testing/graph_maker.h"

namespace mu {
namespace {

using testing::Bytes;
using testing::GraphMaker;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::IntAttr;
using testing::StatusIs;
using testing::Victims;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kOutOfRange = absl::StatusCode::kOutOfRange;

int NodeWithInput(const pb::FunctionProto& function) {
  for (int n = 0; n < function.nodes_size(); ++n) {
    if (function.nodes(n).inputs_size() > 0) return n;
  }
  ADD_FAILURE() << "no node has an input";
  return 0;
}

TEST(Conformance, MalformedGraph) {
  MU_ASSERT_OK_AND_ASSIGN(const auto victims, Victims::Start());
  const pb::FunctionProto& good = victims->step().proto();
  const int user = NodeWithInput(good);
  const auto expect_refused = [&](const char* what, const std::string& says, const auto& change) {
    pb::FunctionProto bad = good;
    change(bad);
    EXPECT_THAT(victims->Install(bad), StatusIs(kInvalid, HasSubstr(says))) << what;
  };
  expect_refused("an op that nobody knows", "frobnicate",
                 [&](auto& f) { f.mutable_nodes(0)->set_op("frobnicate"); });
  expect_refused("an input of nowhere", "does not come before it",
                 [&](auto& f) { f.mutable_nodes(user)->mutable_inputs(0)->set_node(1 << 20); });
  expect_refused("a negative input", "does not come before it",
                 [&](auto& f) { f.mutable_nodes(user)->mutable_inputs(0)->set_node(-1); });
  expect_refused("an output of nowhere", "output",
                 [&](auto& f) { f.mutable_nodes(user)->mutable_inputs(0)->set_output(9); });
  expect_refused("an input too many", "input",
                 [&](auto& f) { f.mutable_nodes(user)->add_inputs(); });
  expect_refused("a missing attribute", "attribute", [&](auto& f) {
    for (auto& node : *f.mutable_nodes()) node.clear_attrs();
  });
  expect_refused("an attribute too many", "colour",
                 [&](auto& f) { (*f.mutable_nodes(0)->mutable_attrs())["colour"] = IntAttr(3); });
  expect_refused("a variable that there is not", "variable", [&](auto& f) {
    for (auto& node : *f.mutable_nodes()) {
      if (node.attrs().contains("variable")) (*node.mutable_attrs())["id"].set_i(99);
    }
  });
  expect_refused("a result of nowhere", "return",
                 [&](auto& f) { f.mutable_returns(0)->mutable_value()->set_node(1 << 20); });

  pb::InstallFunctionRequest lie;
  *lie.mutable_context() = victims->c().runtime().Context();
  *lie.mutable_function() = good;
  lie.set_fingerprint(1);
  EXPECT_THAT(victims->Send(victims->worker(), "/muster.Worker/InstallFunction",
                            Buffer(lie.SerializeAsString())),
              StatusIs(kInvalid, HasSubstr("fingerprint")));

  // Damaged in all kinds of places. What is left may be a good graph; it is installed and never
  // run.
  const std::string bytes = good.SerializeAsString();
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SplitMix random(seed);
    std::string damaged = bytes;
    for (uint64_t n = 1 + random.Below(4); n > 0; --n)
      damaged[random.Below(damaged.size())] = static_cast<char>(random.Next());
    pb::FunctionProto function;
    if (!function.ParseFromString(damaged)) continue;
    const absl::Status status = victims->Install(function);
    EXPECT_TRUE(status.ok() || status.code() == kInvalid) << "seed " << seed << ": " << status;
  }
  victims->ExpectUnharmed();
}

TEST(Conformance, CyclicGraph) {
  MU_ASSERT_OK_AND_ASSIGN(const auto victims, Victims::Start());
  const pb::FunctionProto& good = victims->step().proto();
  const int user = NodeWithInput(good);
  pb::FunctionProto itself = good;
  itself.mutable_nodes(user)->mutable_inputs(0)->set_node(user);
  EXPECT_THAT(victims->Install(itself), StatusIs(kInvalid, HasSubstr("does not come before it")));
  pb::FunctionProto circle = good;
  circle.mutable_nodes(user)->mutable_inputs(0)->set_node(good.nodes_size() - 1);
  EXPECT_THAT(victims->Install(circle), StatusIs(kInvalid, HasSubstr("does not come before it")));
  victims->ExpectUnharmed();
}

TEST(Conformance, ShapeLie) {
  MU_ASSERT_OK_AND_ASSIGN(const auto victims, Victims::Start());
  const std::string name = "weight";
  const uint32_t id = victims->weight().proto().id();
  // Constants that say more than they hold, as far as sizes that overflow.
  for (const std::vector<int64_t>& dims :
       std::vector<std::vector<int64_t>>{{2},
                                         {int64_t{1} << 40},
                                         {int64_t{1} << 32, int64_t{1} << 32},
                                         {int64_t{1} << 62, 4},
                                         {-1},
                                         {-5, 0}}) {
    GraphMaker g;
    g.function().set_dataset(0);
    g.Return("x", g.Constant(Tensor::Scalar(1.0f)));
    pb::TensorProto& tensor =
        *(*g.function().mutable_nodes(0)->mutable_attrs())["value"].mutable_tensor();
    for (const int64_t dim : dims) tensor.mutable_shape()->add_dims(dim);
    EXPECT_THAT(victims->Install(g.function()), HasCode(kInvalid))
        << ::testing::PrintToString(dims);
  }
  // A variable that is said to be larger than it is, to be smaller, to be of another type.
  for (const auto& [dtype, shape] :
       {std::pair{kFloat32, Shape({1000})}, {kFloat32, Shape({2})}, {kInt64, Shape({4})}}) {
    GraphMaker g;
    g.function().set_dataset(0);
    g.Return("x", g.Read(name, id, dtype, shape));
    EXPECT_THAT(victims->Install(g.function()), StatusIs(kInvalid, HasSubstr(name)));
  }
  // A table with other rows.
  GraphMaker g;
  g.function().set_dataset(0);
  const auto ids = g.Op("unique", {g.Constant(Tensor::Of<int64_t>(Shape({1}), {1}))});
  g.Return("x", g.PullRows("items", victims->items().proto().id(), 1000, 400, ids));
  EXPECT_THAT(victims->Install(g.function()), StatusIs(kInvalid, HasSubstr("items")));
  // An argument with a shape of its own.
  pb::RunRequest run;
  *run.mutable_context() = victims->c().runtime().Context();
  run.set_function(1'000'000'000);
  run.set_fingerprint(victims->step().fingerprint().value());
  run.set_steps(1);
  *run.add_args() = Tensor::Scalar(1.0f).ToProto();
  run.mutable_args(0)->mutable_shape()->add_dims(int64_t{1} << 40);
  pb::FeedRequest feed;
  *feed.mutable_hello()->mutable_context() = run.context();
  feed.set_number(1);
  *feed.add_runs() = run;
  EXPECT_THAT(victims->Send(victims->worker(), "/muster.Worker/Feed", testing::Serialized(feed)),
              HasCode(absl::StatusCode::kFailedPrecondition))
      << "a stream that is older than the coordinator's";

  // Payloads that are not what their headers say.
  pb::PushRequest push;
  push.set_function(1'000'000'000);
  push.add_variables()->set_variable(id);
  for (const size_t floats : {0, 1, 3, 5, 1000}) {
    EXPECT_THAT(victims->SendFrame("Push", push, Bytes<float>(std::vector<float>(floats, 1.0f))),
                StatusIs(kInvalid, HasSubstr(floats < 4 ? "shorter" : "longer")));
  }
  pb::PullRequest pull;
  pb::TableKeys* const keys = pull.add_tables();
  keys->set_table(victims->items().proto().id());
  keys->add_partitions(1);
  keys->add_counts(std::numeric_limits<uint32_t>::max());
  EXPECT_THAT(victims->SendFrame("Pull", pull, Bytes<int64_t>({1})),
              StatusIs(kInvalid, HasSubstr("shorter")));
  keys->add_counts(1);
  EXPECT_THAT(victims->SendFrame("Pull", pull, Bytes<int64_t>({1})),
              StatusIs(kInvalid, HasSubstr("differ in number")));
  for (const uint32_t header : {uint32_t{0x7fffffff}, uint32_t{0xffffffff}, uint32_t{17}}) {
    EXPECT_THAT(victims->Send(victims->server(), "/muster.PsServer/Pull",
                              Buffer(Bytes<uint32_t>({header, 0, 0, 0}))),
                HasCode(kInvalid));
  }
  pb::AssignRequest assign;
  *assign.mutable_context() = victims->c().runtime().Context();
  assign.set_function(1'000'000'000);
  assign.set_variable(id);
  for (const size_t bytes : {0, 15, 17, 1 << 20}) {
    assign.set_value(std::string(bytes, 'x'));
    EXPECT_THAT(victims->Send(victims->server(), "/muster.PsServer/Assign",
                              Buffer(assign.SerializeAsString())),
                HasCode(kInvalid));
  }
  victims->ExpectUnharmed();
}

TEST(Conformance, IdOutOfRange) {
  MU_ASSERT_OK_AND_ASSIGN(const auto victims, Victims::Start());
  const uint32_t table = victims->items().proto().id();
  const auto partitions = static_cast<int64_t>(victims->items().proto().partitions());
  const auto send = [&](int64_t id, uint32_t partition, uint32_t of_table) {
    pb::PullRequest pull;
    pb::PushRequest push;
    push.set_function(1'000'000'000);
    pb::TableKeys keys;
    keys.set_table(of_table);
    keys.add_partitions(partition);
    keys.add_counts(1);
    *pull.add_tables() = keys;
    *push.add_tables() = keys;
    const absl::Status pulled = victims->SendFrame("Pull", pull, Bytes<int64_t>({id}));
    const absl::Status pushed =
        victims->SendFrame("Push", push, Bytes<int64_t>({id}) + Bytes<float>({1, 1, 1, 1}));
    EXPECT_EQ(pulled.code(), pushed.code()) << pulled << pushed;
    EXPECT_EQ(KindOf(pushed), pb::ERROR_USER);
    return pushed;
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t id : {int64_t{1000}, int64_t{-1}, kMost, -kMost - 1, int64_t{1} << 32}) {
    const auto home = static_cast<uint32_t>(((id % partitions) + partitions) % partitions);
    EXPECT_THAT(send(id, home, table),
                StatusIs(kOutOfRange, HasSubstr("table 'items', which has ids 0 to 999")))
        << id;
  }
  EXPECT_THAT(send(5, 6, table), StatusIs(kInvalid, HasSubstr("does not belong to partition 6")));
  EXPECT_THAT(send(5, 1 << 30, table), StatusIs(kInvalid, HasSubstr("not held here")));
  EXPECT_THAT(send(5, 5, 77), StatusIs(kInvalid, HasSubstr("no table with id 77")));
  for (const auto& [variable, partition] :
       {std::pair<uint32_t, uint32_t>{99, 0}, {victims->weight().proto().id(), 7}}) {
    pb::PullRequest pull;
    pull.add_variables()->set_variable(variable);
    pull.mutable_variables(0)->set_partition(partition);
    EXPECT_THAT(victims->SendFrame("Pull", pull, ""),
                StatusIs(kInvalid, HasSubstr("not held here")));
  }
  pb::ScanFileRequest scan;
  *scan.mutable_context() = victims->c().runtime().Context();
  scan.set_dataset(victims->step().proto().dataset());
  scan.set_file(1000);
  const absl::Status scanned =
      victims->Send(victims->worker(), "/muster.Worker/ScanFile", Buffer(scan.SerializeAsString()));
  EXPECT_FALSE(scanned.ok());
  EXPECT_THAT(scanned.message(), HasSubstr("1000"));
  pb::RegisterRequest server;
  server.set_role(pb::ROLE_PSSERVER);
  server.set_address("127.0.0.1:1");
  server.set_incarnation(7);
  server.set_index(5);
  server.set_protocol(kProtocol);
  EXPECT_THAT(victims->Send(victims->c().address(), "/muster.Coordinator/Register",
                            Buffer(server.SerializeAsString())),
              StatusIs(kInvalid, HasSubstr("index 5")));
  victims->ExpectUnharmed();
}

TEST(Conformance, NanGradient) {
  MU_ASSERT_OK_AND_ASSIGN(const auto victims, Victims::Start());
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {std::nanf(""), inf, -inf}) {
    pb::PushRequest push;
    push.set_function(1'000'000'000);
    push.add_variables()->set_variable(victims->weight().proto().id());
    EXPECT_THAT(victims->SendFrame("Push", push, Bytes<float>({1, 1, 1, bad})),
                StatusIs(kInvalid, HasSubstr("'weight' holds NaN or infinity")));
    push.set_rate_scale(bad);
    EXPECT_THAT(victims->SendFrame("Push", push, Bytes<float>({1, 1, 1, 1})),
                StatusIs(kInvalid, HasSubstr("learning rate")));
    push.clear_rate_scale();
    // The variable's good half of it is not applied either.
    pb::TableKeys* const keys = push.add_tables();
    keys->set_table(victims->items().proto().id());
    keys->add_partitions(3);
    keys->add_counts(1);
    EXPECT_THAT(victims->SendFrame("Push", push,
                                   Bytes<int64_t>({3}) + Bytes<float>({1, 1, 1, 1, 1, bad, 1, 1})),
                StatusIs(kInvalid, HasSubstr("'items' holds NaN or infinity")));
  }
  victims->ExpectUnharmed();
}

}  // namespace
}  // namespace mu
