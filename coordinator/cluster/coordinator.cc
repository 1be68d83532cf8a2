// Creation, functions, scheduling. Data sets are in coordinator_data.cc, parameters in
// coordinator_parameters.cc.
#include "coordinator/cluster/coordinator.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/client/membership.h"
#include "common/graph/fingerprint.h"
#include "common/graph/limits.h"
#include "common/graph/op_table.h"
#include "common/obs/log.h"
#include "common/sharding/initializer.h"
#include "common/sharding/partition.h"
#include "coordinator/cluster/coordinator_impl.h"
#include "coordinator/cluster/job_epoch.h"
#include "coordinator/passes/trace.h"

namespace mu {
namespace {

constexpr double kInt64Range = 9223372036854775808.0;  // 2^63, which int64 has not

absl::Status NotWhileTracing(const char* what) {
  if (TraceGraph::Current() == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what,
                   " inside a function: a function is traced once and runs many times; create it "
                   "outside, before "
                   "DefineFunction"));
}

bool HasUpdates(const pb::FunctionProto& function) {
  return std::any_of(function.nodes().begin(), function.nodes().end(),
                     [](const pb::NodeProto& node) {
                       const OpDef* const op = AllOps().Find(node.op());
                       return op != nullptr && op->has_effect();
                     });
}

}  // namespace

absl::StatusOr<pb::TensorProto> ArgValue::ToProto(const pb::ArgProto& arg) const {
  if (remote_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "argument '", arg.name(), "' is a RemoteValue; Fetch it first and pass the value"));
  }
  const bool integer = std::holds_alternative<int64_t>(value_);
  const double f =
      integer ? static_cast<double>(std::get<int64_t>(value_)) : std::get<double>(value_);
  const auto misfit = [&] {
    return absl::InvalidArgumentError(absl::StrCat("argument '", arg.name(), "' is ", f,
                                                   ", which is no ",
                                                   std::string(DTypeName(arg.dtype()))));
  };
  if (arg.dtype() == kFloat32) {
    const auto narrow = static_cast<float>(f);
    if (std::isfinite(f) && !std::isfinite(narrow)) return misfit();
    return Tensor::Scalar<float>(narrow).ToProto();
  }
  // Before it is converted: beyond int64, or NaN, that gives any number.
  if (!integer && !(std::nearbyint(f) == f && f >= -kInt64Range && f < kInt64Range))
    return misfit();
  const int64_t i = integer ? std::get<int64_t>(value_) : static_cast<int64_t>(f);
  switch (arg.dtype()) {
    case kInt64:
      return Tensor::Scalar<int64_t>(i).ToProto();
    case kInt32:
      if (i < std::numeric_limits<int32_t>::min() || i > std::numeric_limits<int32_t>::max())
        return misfit();
      return Tensor::Scalar<int32_t>(static_cast<int32_t>(i)).ToProto();
    case kUInt8:
      if (i < 0 || i > 255) return misfit();
      return Tensor::Scalar<uint8_t>(static_cast<uint8_t>(i)).ToProto();
    case kBool:
      if (i < 0 || i > 1) return misfit();
      return Tensor::Scalar<bool>(i != 0).ToProto();
    default:
      return misfit();
  }
}

Coordinator::Impl::Impl(Options o, std::unique_ptr<Transport> t)
    : options(std::move(o)), transport(std::move(t)), servers([this](const std::string& address) {
        return transport->Connect(address, pb::ROLE_PSSERVER);
      }) {}

absl::Status Coordinator::Impl::StartMonitor() {
  if (options.http.empty()) return absl::OkStatus();
  Monitor::Options http{
      .listen = options.http, .tls = options.tls, .telemetry = options.runtime.telemetry};
  http.pages["/targets"] = [r = runtime.get()](const HttpRequest& request) -> HttpReply {
    return {.content_type = "application/json", .body = r->MetricTargets(request.url)};
  };
  MU_ASSIGN_OR_RETURN(monitor, Monitor::Start(std::move(http)));
  monitor->Watch({.health = [this]() -> MonitorHealth {
                    const absl::Status ended = runtime->ended();
                    return {.ready = ended.ok(), .why = std::string(ended.message())};
                  },
                  .metrics = [this](MetricList* list) { runtime->AddMetrics(list); }});
  return absl::OkStatus();
}

Coordinator::Impl::~Impl() {
  monitor.reset();
  {
    MutexLock lock(&there->mutex);
    there->runtime = nullptr;
  }
  if (runtime == nullptr) return;
  runtime->Close();
  environment.reset();  // daemons end while there is still somebody to say goodbye to
  runtime->Stop();
  runtime.reset();  // before what it uses
}

Coordinator::Coordinator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Coordinator::~Coordinator() = default;

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Create(
    Options options, std::unique_ptr<Transport> transport) {
  options.runtime.transport = transport.get();
  if (options.runtime.job.value() == 0) {
    options.runtime.job = JobId(RandomIdentity());
    // Daemons that are up belong to the job, and so to whoever continues it.
    if (!options.job_dir.empty()) {
      MU_ASSIGN_OR_RETURN(options.runtime.job, JobIdOf(options.job_dir, options.runtime.job));
    }
  }
  if (options.runtime.epoch.value() == 0) {
    options.runtime.epoch = CoordinatorEpoch(1);
    if (!options.job_dir.empty()) {
      MU_ASSIGN_OR_RETURN(options.runtime.epoch, ClaimEpoch(options.job_dir));
      options.runtime.newest_epoch = [dir = options.job_dir, next = options.runtime.epoch.Next()] {
        return EpochClaimed(dir, next) ? next.value() : 0;
      };
    }
  }
  auto impl = std::make_unique<Impl>(options, std::move(transport));
  options.runtime.server_api = &impl->servers;
  options.runtime.checkpoints = &impl->checkpoints;
  MU_ASSIGN_OR_RETURN(impl->runtime, Runtime::Start(options.runtime));
  {
    MutexLock lock(&impl->there->mutex);
    impl->there->runtime = impl->runtime.get();
  }
  if (options.names_log)
    SetLogIdentity({.job = options.runtime.job_name, .epoch = options.runtime.epoch.value()});
  MU_RETURN_IF_ERROR(impl->StartMonitor());
  MU_LOG(INFO, "coordinator of job '{}' (epoch {}) listens at {}", options.runtime.job_name,
         options.runtime.epoch.value(), impl->runtime->address());
  return std::unique_ptr<Coordinator>(new Coordinator(std::move(impl)));
}

absl::Status Coordinator::Join() { return impl_->runtime->Join(); }
absl::StatusOr<bool> Coordinator::Done() { return impl_->runtime->Done(); }
void Coordinator::Cancel() { impl_->runtime->CancelEverything(); }
void Coordinator::SetUserState(std::string state) {
  impl_->runtime->SetUserState(std::move(state));
}
void Coordinator::Dismiss() { impl_->runtime->Dismiss(); }
std::string Coordinator::address() const { return impl_->runtime->address(); }
std::string Coordinator::http() const {
  return impl_->monitor == nullptr ? "" : impl_->monitor->url();
}
uint64_t Coordinator::seed() const { return impl_->options.seed; }
RuntimeCounts Coordinator::Counts() const { return impl_->runtime->Counts(); }
RuntimeStats Coordinator::Stats() const { return impl_->runtime->Stats(); }
Runtime& Coordinator::runtime() { return *impl_->runtime; }
void Coordinator::OwnEnvironment(std::shared_ptr<void> environment) {
  impl_->environment = std::move(environment);
}

absl::Status Coordinator::WaitForCluster(int workers) {
  const absl::Duration timeout = impl_->options.runtime.start_timeout;
  MU_RETURN_IF_ERROR(
      impl_->runtime->WaitFor(pb::ROLE_PSSERVER, impl_->options.runtime.servers, timeout));
  return impl_->runtime->WaitFor(pb::ROLE_WORKER, static_cast<size_t>(workers), timeout);
}

void Coordinator::Impl::SetInitializer(const std::string& name, DType dtype,
                                       pb::InitializerProto* initializer) const {
  initializer->set_seed(options.seed);
  auto saved = checkpoints.InitializerOf(name);
  // One of another type says nothing about this one; whoever loads the checkpoint refuses it.
  if (saved.has_value() && CheckInitializer(*saved, dtype).ok()) *initializer = *std::move(saved);
}

absl::StatusOr<Variable> Coordinator::CreateVariable(const VariableSpec& spec) {
  MU_RETURN_IF_ERROR(NotWhileTracing("a variable is created"));
  VariableSpec full = spec;
  if (!full.optimizer && full.trainable && full.dtype == kFloat32)
    full.optimizer = impl_->options.default_optimizer;
  if (!full.partitioner) full.partitioner = impl_->options.default_partitioner;
  MU_ASSIGN_OR_RETURN(pb::VariableProto proto, full.ToProto());
  impl_->SetInitializer(proto.name(), proto.dtype(), proto.mutable_initializer());
  absl::StatusOr<pb::VariableProto> added = proto;
  impl_->runtime->ChangeCatalog([&](Catalog& catalog) { added = catalog.AddVariable(proto); });
  MU_RETURN_IF_ERROR(added.status());
  return Variable(*std::move(added));
}

absl::StatusOr<EmbeddingTable> Coordinator::CreateEmbeddingTable(const EmbeddingTableSpec& spec) {
  MU_RETURN_IF_ERROR(NotWhileTracing("an embedding table is created"));
  EmbeddingTableSpec full = spec;
  if (!full.optimizer && full.trainable) full.optimizer = impl_->options.default_optimizer;
  if (full.partitions == 0) full.partitions = impl_->checkpoints.PartitionsOf(full.name);
  if (full.partitions == 0)
    full.partitions = DefaultTablePartitions(impl_->runtime->options().servers);
  MU_ASSIGN_OR_RETURN(pb::TableProto proto, full.ToProto());
  impl_->SetInitializer(proto.name(), kFloat32, proto.mutable_initializer());
  absl::StatusOr<pb::TableProto> added = proto;
  impl_->runtime->ChangeCatalog([&](Catalog& catalog) { added = catalog.AddTable(proto); });
  MU_RETURN_IF_ERROR(added.status());
  return EmbeddingTable(*std::move(added));
}

absl::StatusOr<Function> Coordinator::DefineFunction(
    const std::string& name, const std::function<void(FunctionBuilder&)>& build) {
  MU_RETURN_IF_ERROR(NotWhileTracing("a function is defined"));
  MU_ASSIGN_OR_RETURN(pb::FunctionProto proto, Trace(name, build, impl_->options.seed));
  MU_RETURN_IF_ERROR(impl_->CheckOwn(proto));
  MU_RETURN_IF_ERROR(impl_->runtime->EnsureServers());
  Function function;
  function.fingerprint_ = FingerprintOf(proto);
  function.owner_ = this;
  function.proto_ = std::make_shared<const pb::FunctionProto>(std::move(proto));
  bool full = false;
  impl_->runtime->ChangeCatalog([&](Catalog& catalog) {
    full = catalog.functions() >= kMostFunctions &&
           catalog.FindFunction(function.fingerprint_) == nullptr;
    if (!full) catalog.AddFunction(function.fingerprint_, *function.proto_);
  });
  if (full) {
    return absl::ResourceExhaustedError(
        absl::StrCat("function '", name, "': this program has defined ", kMostFunctions,
                     " different ones; define a function once, outside the loop, and give what "
                     "changes as arguments"));
  }
  return function;
}

void Coordinator::BoundStaleness(std::optional<uint64_t> steps) {
  impl_->runtime->BoundStaleness(steps);
}

absl::Status Coordinator::SynchronousRounds(const RoundRules& rules) {
  return impl_->runtime->SetRounds(rules);
}

absl::Status Coordinator::Check(const Function& function) const {
  if (function.owner_ == this) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "this function was not defined by this coordinator; use what its DefineFunction returned");
}

RemoteValue Coordinator::Schedule(const Function& function, ScheduleOptions options) {
  if (absl::Status own = Check(function); !own.ok()) return impl_->runtime->Refuse(std::move(own));
  const auto group = IdOf(options.group);
  if (!group.ok()) return impl_->runtime->Refuse(group.status());
  const auto refuse = [&](absl::Status error) {
    return impl_->runtime->Refuse(std::move(error), *group);
  };
  if (options.steps == 0)
    return refuse(absl::InvalidArgumentError("a function needs at least 1 step"));
  std::vector<pb::TensorProto> args;
  for (const pb::ArgProto& arg : function.proto().args()) {
    const auto given = std::find_if(options.args.begin(), options.args.end(),
                                    [&](const auto& pair) { return pair.first == arg.name(); });
    if (given == options.args.end()) {
      return refuse(absl::InvalidArgumentError(
          absl::StrCat("function '", function.name(), "' needs the argument '", arg.name(), "'")));
    }
    if (std::any_of(std::next(given), options.args.end(),
                    [&](const auto& pair) { return pair.first == arg.name(); })) {
      return refuse(absl::InvalidArgumentError(absl::StrCat(
          "function '", function.name(), "' is given the argument '", arg.name(), "' twice")));
    }
    auto value = given->second.ToProto(arg);
    if (!value.ok())
      return refuse(Annotate(value.status(), absl::StrCat("function '", function.name(), "'")));
    args.push_back(*std::move(value));
  }
  for (const auto& given : options.args) {
    const std::string& name = given.first;
    const auto& known = function.proto().args();
    if (std::none_of(known.begin(), known.end(),
                     [&](const auto& arg) { return arg.name() == name; })) {
      return refuse(absl::InvalidArgumentError(
          absl::StrCat("function '", function.name(), "' has no argument '", name, "'")));
    }
  }
  FunctionWork work;
  work.fingerprint = function.fingerprint_;
  work.steps = options.steps;
  work.group = *group;
  work.dataset = function.proto().dataset();
  work.trains = HasUpdates(function.proto());
  if (work.dataset != 0) {
    // Files that could not be looked through are not looked through again for each further call.
    const auto unseen = [&] { return impl_->runtime->unseen_error(*group); };
    const absl::Status prepared = impl_->PrepareDataset(work.dataset, unseen).status();
    if (!prepared.ok()) return refuse(prepared);
  }
  std::vector<std::string> names;
  for (const auto& value : function.proto().returns()) names.push_back(value.name());
  if (!args.empty())
    work.args = std::make_shared<const std::vector<pb::TensorProto>>(std::move(args));
  return impl_->runtime->Schedule(std::move(work), std::move(names), std::move(options.user_state));
}

}  // namespace mu
