#include "common/graph/fingerprint.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tests/common/graph/specs.h"

namespace mu {
namespace {

pb::FunctionProto Example() {
  pb::FunctionProto f;
  f.set_name("f");
  const int a = AddNode(f, "constant", {}, {Value(Tensor::Of<float>({2}, {1, 2}))}, 3);
  const int b = AddNode(f, "slice", {{a, 0}}, {Ints("begin", {0}), Ints("size", {1})}, 4);
  AddReturn(f, "x", b);
  return f;
}

TEST(Fingerprint, IsAConstantOfTheGraph) {
  // Written down: workers of one job may be other builds than its coordinator.
  EXPECT_EQ(FingerprintOf(Example()).value(), FingerprintOf(Example()).value());
  EXPECT_EQ(FingerprintOf(Example()).value(), 4588564736401931437ull);
}

TEST(Fingerprint, SurvivesTheWireAndAttributeOrder) {
  pb::FunctionProto other;
  ASSERT_TRUE(other.ParseFromString(Example().SerializeAsString()));
  EXPECT_EQ(FingerprintOf(other), FingerprintOf(Example()));
  pb::FunctionProto reordered = Example();
  auto& attrs = *reordered.mutable_nodes(1)->mutable_attrs();
  const pb::AttrValue begin = attrs["begin"];
  attrs.erase("begin");
  attrs["begin"] = begin;
  EXPECT_EQ(FingerprintOf(reordered), FingerprintOf(Example()));
}

TEST(Fingerprint, NamesAndLocationsAreNoPartOfIt) {
  pb::FunctionProto other = Example();
  other.set_name("g");
  other.mutable_nodes(0)->set_name("named");
  other.mutable_nodes(1)->mutable_location()->set_line(99);
  EXPECT_EQ(FingerprintOf(other), FingerprintOf(Example()));
}

TEST(Fingerprint, EverythingElseIs) {
  const std::vector<std::function<void(pb::FunctionProto&)>> changes = {
      [](pb::FunctionProto& f) { f.mutable_nodes(0)->set_op("ones_like"); },
      [](pb::FunctionProto& f) { f.set_warmup_steps(1); },
      [](pb::FunctionProto& f) { f.mutable_schedule()->mutable_cosine()->set_steps(1); },
      [](pb::FunctionProto& f) { f.mutable_schedule()->mutable_cosine()->set_steps(2); },
      [](pb::FunctionProto& f) { f.set_rate_arg(1); },
      [](pb::FunctionProto& f) { f.set_first_step(1); },
      [](pb::FunctionProto& f) { f.set_micro_batches(2); },
      [](pb::FunctionProto& f) { f.set_micro_batches(3); },
      [](pb::FunctionProto& f) { f.mutable_staleness(); },
      [](pb::FunctionProto& f) { f.mutable_staleness()->set_max(0); },
      [](pb::FunctionProto& f) { f.mutable_staleness()->set_max(1); },
      [](pb::FunctionProto& f) {
        f.mutable_staleness()->set_discount(pb::STALENESS_DISCOUNT_INVERSE);
      },
      [](pb::FunctionProto& f) {
        (*f.mutable_nodes(1)->mutable_attrs())["size"].mutable_ints()->set_value(0, 2);
      },
      [](pb::FunctionProto& f) {
        (*f.mutable_nodes(1)->mutable_attrs())["begin"].mutable_ints()->add_value(0);
      },
      [](pb::FunctionProto& f) {
        (*f.mutable_nodes(0)->mutable_attrs())["value"].mutable_tensor()->mutable_data()->at(0) ^=
            1;
      },
      [](pb::FunctionProto& f) { (*f.mutable_nodes(0)->mutable_attrs())["x"].set_i(0); },
      [](pb::FunctionProto& f) { (*f.mutable_nodes(0)->mutable_attrs())["x"].set_b(false); },
      [](pb::FunctionProto& f) { f.mutable_nodes(1)->mutable_inputs(0)->set_output(1); },
      [](pb::FunctionProto& f) { f.mutable_nodes(1)->add_inputs(); },
      [](pb::FunctionProto& f) { f.mutable_returns(0)->set_name("y"); },
      [](pb::FunctionProto& f) { f.mutable_returns(0)->mutable_value()->set_node(0); },
      [](pb::FunctionProto& f) { f.add_args()->set_name("a"); },
      [](pb::FunctionProto& f) { f.set_dataset(1); },
      [](pb::FunctionProto& f) { f.mutable_nodes()->RemoveLast(); },
  };
  std::set<uint64_t> seen = {FingerprintOf(Example()).value()};
  for (size_t i = 0; i < changes.size(); ++i) {
    pb::FunctionProto f = Example();
    changes[i](f);
    EXPECT_TRUE(seen.insert(FingerprintOf(f).value()).second) << "change " << i;
  }
}

}  // namespace
}  // namespace mu
