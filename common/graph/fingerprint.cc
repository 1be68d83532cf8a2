#include "common/graph/fingerprint.h"

#include <cstring>
#include <map>

#include "common/base/hash.h"
#include "common/base/status.h"

namespace mu {
namespace {

class Hasher {
 public:
  void Add(uint64_t value) { state_ = HashCombine(state_, value); }
  void AddText(const std::string& text) {
    Add(text.size());
    Add(HashString(text));
  }
  void AddFloat(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    Add(bits);
  }
  template <typename Range>
  void AddInts(const Range& values) {
    Add(static_cast<uint64_t>(values.size()));
    for (const int64_t value : values) Add(static_cast<uint64_t>(value));
  }
  uint64_t state() const { return state_; }

 private:
  uint64_t state_ = 0x6d75737465720002;  // grows with every change of what is hashed
};

void AddAttr(const pb::AttrValue& value, Hasher& hasher) {
  hasher.Add(static_cast<uint64_t>(value.value_case()));
  switch (value.value_case()) {
    case pb::AttrValue::kI:
      return hasher.Add(static_cast<uint64_t>(value.i()));
    case pb::AttrValue::kF:
      return hasher.AddFloat(value.f());
    case pb::AttrValue::kB:
      return hasher.Add(value.b());
    case pb::AttrValue::kS:
      return hasher.AddText(value.s());
    case pb::AttrValue::kInts:
      return hasher.AddInts(value.ints().value());
    case pb::AttrValue::kDtype:
      return hasher.Add(value.dtype());
    case pb::AttrValue::kShape:
      return hasher.AddInts(value.shape().dims());
    case pb::AttrValue::kTensor:
      hasher.Add(value.tensor().dtype());
      hasher.AddInts(value.tensor().shape().dims());
      return hasher.AddText(value.tensor().data());
    case pb::AttrValue::VALUE_NOT_SET:
      return;
  }
}

void AddInput(const pb::NodeInput& input, Hasher& hasher) {
  hasher.Add(static_cast<uint64_t>(input.node()));
  hasher.Add(static_cast<uint64_t>(input.output()));
}

}  // namespace

Fingerprint FingerprintOf(const pb::FunctionProto& function) {
  Hasher hasher;
  hasher.Add(function.dataset());
  hasher.Add(function.warmup_steps());
  hasher.Add(function.nodes_size());
  for (const pb::NodeProto& node : function.nodes()) {
    hasher.AddText(node.op());
    hasher.Add(node.inputs_size());
    for (const pb::NodeInput& input : node.inputs()) AddInput(input, hasher);
    // A protobuf map has no order of its own.
    const std::map<std::string, pb::AttrValue> attrs(node.attrs().begin(), node.attrs().end());
    hasher.Add(attrs.size());
    for (const auto& [name, value] : attrs) {
      hasher.AddText(name);
      AddAttr(value, hasher);
    }
  }
  hasher.Add(function.args_size());
  for (const pb::ArgProto& arg : function.args()) {
    hasher.AddText(arg.name());
    hasher.Add(arg.dtype());
  }
  hasher.Add(function.returns_size());
  for (const pb::ReturnProto& value : function.returns()) {
    hasher.AddText(value.name());
    AddInput(value.value(), hasher);
  }
  // What functions of earlier programs do not have: theirs stay what they were.
  if (function.has_schedule()) hasher.AddText(function.schedule().SerializeAsString());
  if (function.rate_arg() != 0 || function.first_step() != 0) {
    hasher.Add(function.rate_arg());
    hasher.Add(function.first_step());
  }
  if (function.has_staleness()) {
    const pb::StalenessProto& staleness = function.staleness();
    hasher.AddText("staleness");
    hasher.Add(static_cast<uint64_t>(staleness.discount()));
    hasher.Add(staleness.has_max() ? uint64_t{staleness.max()} + 1 : 0);
  }
  if (function.micro_batches() > 1) {
    hasher.AddText("micro_batches");
    hasher.Add(function.micro_batches());
  }
  return Fingerprint(hasher.state());
}

}  // namespace mu
