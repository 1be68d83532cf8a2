// Functions as a worker receives them: verified, compiled and run on a small batch, planned as
// usual and without any optimisation. Both must say the same.
#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/exec/compiled_function.h"
#include "common/graph/fingerprint.h"
#include "common/graph/verifier.h"
#include "tests/fuzz/graph_limits.h"
#include "tests/fuzz/structured.h"

namespace mu {
namespace {

constexpr int64_t kMostRecords = 6;
constexpr size_t kMostNodes = 64;

// Bytes of the input, again and again.
class Values {
 public:
  explicit Values(const std::string& bytes) : bytes_(bytes.empty() ? "\1\2\3\5" : bytes) {}
  uint8_t Next() { return static_cast<uint8_t>(bytes_[next_++ % bytes_.size()]); }
  void Fill(Tensor* tensor) {
    for (int64_t i = 0; i < tensor->elements(); ++i) {
      const uint8_t value = Next();
      switch (tensor->dtype()) {
        case kFloat32:
          tensor->data<float>()[i] = (static_cast<float>(value) - 100) / 16;
          break;
        case kInt32:
          tensor->data<int32_t>()[i] = value % 8;
          break;
        case kInt64:
          tensor->data<int64_t>()[i] = value % 8;
          break;
        default:
          static_cast<uint8_t*>(tensor->raw())[i] = value & 1;
      }
    }
  }

 private:
  const std::string bytes_;
  size_t next_ = 0;
};

// Parameters as the function says they are, with values that are the same at each pull.
class AnyParameters final : public ParameterAccess {
 public:
  explicit AnyParameters(const pb::FunctionProto& function) {
    for (const pb::NodeProto& node : function.nodes()) {
      const auto attr = [&](const char* name) {
        const auto it = node.attrs().find(name);
        return it == node.attrs().end() ? pb::AttrValue() : it->second;
      };
      const uint32_t id = static_cast<uint32_t>(attr("id").i());
      if (attr("id").i() != id) continue;
      if (node.attrs().contains("variable")) {
        if (!shapes_.emplace(id, Shape(attr("shape").shape())).second) continue;
        pb::VariableProto* const variable = routing_.add_variables();
        variable->set_id(id);
        variable->set_name(attr("variable").s());
        variable->set_dtype(attr("dtype").dtype());
        *variable->mutable_shape() = attr("shape").shape();
        types_[id] = variable->dtype();
      } else if (node.attrs().contains("table")) {
        if (!dims_.emplace(id, attr("dim").i()).second) continue;
        pb::TableProto* const table = routing_.add_tables();
        table->set_id(id);
        table->set_name(attr("table").s());
        table->set_rows(static_cast<uint64_t>(attr("rows").i()));
        table->set_dim(static_cast<uint32_t>(attr("dim").i()));
        rows_[id] = attr("rows").i();
      }
    }
  }
  const pb::RoutingProto& routing() const { return routing_; }

  absl::Status Pull(absl::Span<const VariableRead> variables,
                    absl::Span<const RowsRead> rows) override {
    for (const VariableRead& read : variables) {
      uint8_t value = static_cast<uint8_t>(read.variable);
      char* const out = static_cast<char*>(read.out);
      const Shape& shape = shapes_.at(read.variable);
      const int64_t elements = read.rows < 0   ? shape.elements()
                               : shape[0] == 0 ? 0
                                               : shape.elements() / shape[0] * read.rows;
      if (types_.at(read.variable) == kFloat32) {
        for (int64_t i = 0; i < elements; ++i)
          reinterpret_cast<float*>(out)[i] = static_cast<float>(value += 7) / 64;
      } else {
        std::memset(out, 1, static_cast<size_t>(elements) * ElementSize(types_.at(read.variable)));
      }
    }
    for (const RowsRead& read : rows) {
      MU_RETURN_IF_ERROR(CheckIds(read.table, read.ids));
      const int64_t dim = dims_.at(read.table);
      for (size_t i = 0; i < read.ids.size(); ++i) {
        for (int64_t d = 0; d < dim; ++d)
          read.out[static_cast<int64_t>(i) * dim + d] = static_cast<float>(read.ids[i] + d) / 8;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Multiply(absl::Span<const ProductRead> products) override {
    for (const ProductRead& product : products) {
      const Shape& shape = shapes_.at(product.variable);
      std::fill_n(product.out, product.batch * shape[product.back ? 1 : 0], 0.5f);
    }
    return absl::OkStatus();
  }
  absl::Status Push(absl::Span<const VariableWrite> variables,
                    absl::Span<const RowsWrite> rows) override {
    for (const VariableWrite& write : variables) {
      if (write.has_rows()) {
        Add(absl::StrCat(write.variable, "rows"), write.rows.data(),
            write.rows.size() * sizeof(int64_t));
        continue;
      }
      if (write.kind == VariableWrite::kProductGradient) {
        const Shape& shape = shapes_.at(write.variable);
        Add(absl::StrCat(write.variable, "dy"), write.value,
            static_cast<size_t>(write.batch * shape[0]) * sizeof(float));
        Add(absl::StrCat(write.variable, "x"), write.x,
            static_cast<size_t>(write.batch * shape[1]) * sizeof(float));
        continue;
      }
      const size_t size = static_cast<size_t>(shapes_.at(write.variable).elements()) *
                          ElementSize(types_.at(write.variable));
      Add(absl::StrCat(write.variable, write.kind), write.value, size);
    }
    for (const RowsWrite& write : rows) {
      MU_RETURN_IF_ERROR(CheckIds(write.table, write.ids));
      Add(absl::StrCat("ids", write.table), write.ids.data(), write.ids.size() * sizeof(int64_t));
      Add(absl::StrCat("rows", write.table), write.gradients,
          write.ids.size() * static_cast<size_t>(dims_.at(write.table)) * sizeof(float));
    }
    return absl::OkStatus();
  }

  std::map<std::string, std::string> pushed;

 private:
  absl::Status CheckIds(uint32_t table, absl::Span<const int64_t> ids) const {
    for (const int64_t id : ids) {
      if (id < 0 || id >= rows_.at(table)) return absl::OutOfRangeError("no such row");
    }
    return absl::OkStatus();
  }
  void Add(const std::string& name, const void* data, size_t size) {
    pushed[name] += std::string(static_cast<const char*>(data), size);
  }

  pb::RoutingProto routing_;
  std::map<uint32_t, Shape> shapes_;
  std::map<uint32_t, DType> types_;
  std::map<uint32_t, int64_t> dims_, rows_;
};

Batch MakeBatch(const pb::FunctionProto& function, int64_t records, Values* values) {
  Batch batch;
  batch.records = static_cast<uint32_t>(records);
  for (const pb::NodeProto& node : function.nodes()) {
    if (node.op() != "batch_column") continue;
    const std::string& name = node.attrs().at("column").s();
    if (batch.Find(name) != nullptr) continue;
    Shape shape(node.attrs().at("shape").shape());
    const bool splits = absl::EndsWith(name, ".splits");
    if (shape.rank() > 0 && shape[0] < 0) {
      shape[0] = splits ? records + 1 : absl::EndsWith(name, ".values") ? 2 * records : records;
    }
    for (int i = 0; i < shape.rank(); ++i) shape[i] = shape[i] < 0 ? 2 : shape[i];
    Tensor column(node.attrs().at("dtype").dtype(), shape);
    values->Fill(&column);
    if (splits && column.dtype() == kInt32) {
      for (int64_t i = 0; i < column.elements(); ++i)
        column.data<int32_t>()[i] = static_cast<int32_t>(2 * i);
    }
    batch.names.push_back(name);
    batch.columns.push_back(std::move(column));
  }
  return batch;
}

struct Outcome {
  absl::Status status;
  std::vector<std::string> returns;
  std::map<std::string, std::string> pushed;
};

Outcome RunTwice(const pb::FunctionProto& function,
                 std::shared_ptr<const CompiledFunction> compiled, const StepInputs& inputs) {
  Executor executor(std::move(compiled));
  Outcome outcome;
  for (int step = 0; step < 2; ++step) {  // buffers are used again
    AnyParameters access(function);
    std::vector<Tensor> returns;
    outcome.status = executor.RunStep(inputs, access, &returns);
    outcome.pushed = access.pushed;
    outcome.returns.clear();
    for (const Tensor& value : returns)
      outcome.returns.push_back(value.ToProto().SerializeAsString());
  }
  return outcome;
}

void RunBoth(const pb::FunctionProto& function, int64_t records, const std::string& bytes) {
  const AnyParameters parameters(function);
  const auto usual = Compile(function, parameters.routing());
  const auto plain = CompileWithOptions(function, parameters.routing(),
                                        {.fuse = false, .reuse = false, .fold = false});
  MU_CHECK(plain.ok() || !usual.ok());
  if (!usual.ok()) return;
  Values values(bytes);
  const Batch batch = MakeBatch(function, records, &values);
  std::vector<Tensor> args;
  for (const pb::ArgProto& arg : function.args()) {
    args.emplace_back(arg.dtype(), Shape());
    values.Fill(&args.back());
  }
  const StepInputs inputs = {function.dataset() == 0 ? nullptr : &batch, args, 1};
  const Outcome a = RunTwice(function, *usual, inputs);
  const Outcome b = RunTwice(function, *plain, inputs);
  MU_CHECK(a.status.code() == b.status.code());
  if (!a.status.ok()) return;
  MU_CHECK(a.returns == b.returns);
  MU_CHECK(a.pushed == b.pushed);
}

}  // namespace
}  // namespace mu

MUSTER_FUZZ_MESSAGE(muster::fuzz::GraphInput) {
  const muster::FunctionProto& function = input.function();
  const int64_t records = 1 + input.records() % mu::kMostRecords;
  (void)mu::VerifyFunction(function, mu::GraphStage::kTraced);
  if (!mu::VerifyFunction(function, mu::GraphStage::kLowered).ok()) return;
  (void)mu::FingerprintOf(function);
  if (static_cast<size_t>(function.nodes_size()) > mu::kMostNodes ||
      !mu::fuzzing::IsSmall(function, 2 * records + 1)) {
    return;
  }
  mu::RunBoth(function, records, input.values());
}
