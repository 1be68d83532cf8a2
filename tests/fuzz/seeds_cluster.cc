// Seeds of the targets that play a server, a worker or a coordinator.
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/small_model.h"
#include "tests/testing/graph_maker.h"

namespace mu::fuzzing {
namespace {

using testing::GraphMaker;

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

void AddTable(google::protobuf::RepeatedPtrField<pb::TableKeys>* tables, uint32_t table,
              const std::vector<uint32_t>& partitions, const std::vector<uint32_t>& counts) {
  pb::TableKeys* const keys = tables->Add();
  keys->set_table(table);
  keys->mutable_partitions()->Add(partitions.begin(), partitions.end());
  keys->mutable_counts()->Add(counts.begin(), counts.end());
}

// Rows 4 and 36 of "items", in partition 0, and 8 of "users", in partition 2.
const std::vector<int64_t> kIds = {4, 36, 8};

fuzz::PsCall Pull(bool read_only) {
  fuzz::PsCall call;
  pb::PullRequest* const header = call.mutable_pull()->mutable_header();
  *header->mutable_context() = SmallContext();
  header->set_read_only(read_only);
  for (uint32_t variable = 0; variable < 4; ++variable)
    header->add_variables()->set_variable(variable);
  header->add_variables()->set_partition(1);
  AddTable(header->mutable_tables(), 100, {0}, {2});
  AddTable(header->mutable_tables(), 101, {2}, {1});
  call.mutable_pull()->set_payload(Bytes(kIds));
  return call;
}

fuzz::PsCall Push(uint64_t function, uint32_t step) {
  fuzz::PsCall call;
  pb::PushRequest* const header = call.mutable_push()->mutable_header();
  *header->mutable_context() = SmallContext();
  header->set_function(function);
  header->set_step(step);
  header->set_rate_scale(0.5f);
  header->add_variables();
  pb::VariableUpdate* const steps = header->add_variables();
  steps->set_variable(2);
  steps->set_kind(pb::VariableUpdate::ASSIGN_ADD);
  AddTable(header->mutable_tables(), 100, {0}, {2});
  AddTable(header->mutable_tables(), 101, {2}, {1});
  call.mutable_push()->set_payload(Bytes(kIds) + Bytes<float>({1, 2, 3, 4, 5, 6}) +
                                   Bytes<int64_t>({1}) + Bytes<float>({1, 2, 3, 4, 5}));
  return call;
}

fuzz::PsCall Assign() {
  fuzz::PsCall call;
  *call.mutable_assign()->mutable_context() = SmallContext();
  call.mutable_assign()->set_variable(1);
  call.mutable_assign()->set_value(Bytes<float>({3}));
  call.mutable_assign()->set_function(3);
  return call;
}

fuzz::PsCall Restore(uint64_t generation, bool saved, bool keep) {
  fuzz::PsCall call;
  *call.mutable_restore()->mutable_context() = SmallContext();
  call.mutable_restore()->mutable_context()->set_generation(generation);
  call.mutable_restore()->set_keep_state(keep);
  call.set_restore_saved(saved);
  return call;
}

fuzz::PsCall LoadView(uint64_t view) {
  fuzz::PsCall call;
  *call.mutable_load_view()->mutable_context() = SmallContext();
  call.mutable_load_view()->set_view(view);
  call.set_restore_saved(true);
  return call;
}

}  // namespace

fuzz::PsCalls PsSession(bool configured) {
  fuzz::PsCalls input;
  input.set_configured(configured);
  const auto add = [&] { return input.add_calls(); };
  pb::ConfigurePsRequest* const configure = add()->mutable_configure();
  *configure->mutable_context() = SmallContext();
  *configure->mutable_routing() = SmallModel();
  *add() = Pull(true);
  *add() = Push(1, 0);
  *add() = Push(1, 1);
  *add() = Push(1, 1);
  *add() = Assign();
  *add() = Assign();
  *add() = Pull(false);
  pb::SaveRequest* const save = add()->mutable_save();
  *save->mutable_context() = SmallContext();
  save->set_file("ps-0.safetensors");
  save->set_attempt(9);
  *add()->mutable_fence()->mutable_context() = SmallContext();
  *add() = Push(2, 0);
  *add() = LoadView(3);
  fuzz::PsCall from_view = Pull(false);
  from_view.mutable_pull()->mutable_header()->set_view(3);
  *add() = from_view;
  *add() = LoadView(3);
  *add() = Restore(2, true, false);
  fuzz::PsCall later = Push(2, 1);
  later.mutable_push()->mutable_header()->mutable_context()->set_generation(2);
  *add() = later;
  *add() = Restore(3, false, true);
  *add() = Restore(4, false, false);
  *add() = from_view;
  pb::DropViewRequest* const drop = add()->mutable_drop_view();
  *drop->mutable_context() = SmallContext();
  drop->set_view(3);
  *add() = from_view;
  *add()->mutable_stats()->mutable_context() = SmallContext();
  add()->mutable_raw()->set_method("Pull");
  return input;
}

fuzz::PsReplies GoodReplies() {
  fuzz::PsReplies input;
  for (int step = 0; step < 2; ++step) {
    fuzz::PsReply* const pull = input.add_replies();
    // weights in two partitions, bias, steps and seen padded to 8; three items, two users.
    pull->set_payload(std::string(48 + 8 + 8 + 8, '\0') + Bytes<float>({1, 2, 3, 4, 5, 6, 7, 8}));
    pb::PushReply reply;
    reply.set_updates(5);
    reply.set_inherited(1);
    fuzz::PsReply* const push = input.add_replies();
    push->set_raw(true);
    push->set_payload(reply.SerializeAsString());
  }
  return input;
}

fuzz::WorkerCalls WorkerWithoutData() {
  GraphMaker g;
  g.function().set_name("count");
  g.function().set_dataset(0);
  g.Update("assign_add", "steps", 2, pb::INT64, Shape(), g.Constant(Tensor::Scalar<int64_t>(1)));
  const auto weights = g.Read("weights", 0, pb::FLOAT32, Shape({4, 3}));
  g.Update("apply_gradient", "weights", 0, pb::FLOAT32, Shape({4, 3}),
           g.Op("multiply", {weights, g.Arg("scale", pb::FLOAT32)}));
  const auto ids = g.Constant(Tensor::Of<int64_t>({2}, {4, 36}));
  g.Return("rows", g.PullRows("items", 100, 40, 2, ids));
  g.Return("before", g.Read("steps", 2, pb::INT64, Shape()));
  g.Return("worker", g.Op("worker_index"));

  fuzz::WorkerCalls input;
  input.set_configured(true);
  pb::InstallFunctionRequest* const install = input.add_calls()->mutable_install_function();
  *install->mutable_context() = SmallContext();
  *install->mutable_function() = g.function();
  pb::RunRequest* const run = input.add_calls()->mutable_run();
  *run->mutable_context() = SmallContext();
  run->set_function(1);
  run->set_steps(2);
  run->set_run(1);
  *run->add_args() = Tensor::Scalar<float>(0.5f).ToProto();
  *input.add_calls()->mutable_run() = *run;
  pb::RunRequest* const later = input.mutable_calls(2)->mutable_run();
  later->set_function(2);
  later->set_run(2);
  pb::CancelRunsRequest* const cancel = input.add_calls()->mutable_cancel_runs();
  *cancel->mutable_context() = SmallContext();
  cancel->set_below(1);
  return input;
}

fuzz::WorkerCalls WorkerSession() {
  GraphMaker g;
  g.function().set_name("sum_batches");
  const auto x = g.Column("x", pb::FLOAT32, Shape({-1}));
  const auto sum = g.Op("reduce_sum", {x});
  g.Update("assign_add", "bias", 1, pb::FLOAT32, Shape(), sum);
  g.Return("sum", sum);

  fuzz::WorkerCalls input;
  input.set_configured(true);
  input.add_files("x,id\n1,3\n2.5,7\n-1,0\n");
  pb::InstallDatasetRequest* const install = input.add_calls()->mutable_install_dataset();
  *install->mutable_context() = SmallContext();
  pb::DatasetProto* const dataset = install->mutable_dataset();
  dataset->set_id(1);
  dataset->set_name("numbers");
  dataset->add_files("");
  dataset->set_batch_size(2);
  dataset->set_block_records(2);
  dataset->mutable_csv()->set_header(true);
  for (const char* name : {"x", "id"}) {
    pb::CsvColumnProto* const column = dataset->mutable_csv()->add_columns();
    column->set_name(name);
    column->set_index(-1);
    column->set_kind(name[1] == 0 ? pb::CsvColumnProto::NUMBER : pb::CsvColumnProto::ID);
  }
  pb::ScanFileRequest* const scan = input.add_calls()->mutable_scan_file();
  *scan->mutable_context() = SmallContext();
  scan->set_dataset(1);
  pb::InstallFunctionRequest* const function = input.add_calls()->mutable_install_function();
  *function->mutable_context() = SmallContext();
  *function->mutable_function() = g.function();
  pb::RunRequest* const run = input.add_calls()->mutable_run();
  *run->mutable_context() = SmallContext();
  run->set_function(1);
  run->set_steps(2);
  run->set_run(1);
  pb::RunBatches* const range = run->add_batches();
  range->set_lease(1);
  range->set_batches(2);
  pb::FeedLease* const lease = input.mutable_calls(input.calls_size() - 1)->add_leases();
  lease->set_id(1);
  lease->mutable_lease()->set_dataset(1);
  lease->mutable_lease()->set_permutation(5);
  for (const auto& [first, count] : {std::pair(0, 2), std::pair(2, 1)}) {
    pb::BlockProto* const block = lease->mutable_lease()->add_blocks();
    block->set_first(static_cast<uint64_t>(first));
    block->set_count(static_cast<uint32_t>(count));
  }
  run->add_upcoming(1);
  return input;
}

fuzz::CoordinatorCalls CoordinatorSession() {
  fuzz::CoordinatorCalls input;
  const auto daemon = [&](pb::Role role, uint64_t incarnation) {
    pb::RegisterRequest* const request = input.add_calls()->mutable_register_();
    request->set_role(role);
    request->set_address("memory:77");
    request->set_incarnation(incarnation);
    request->set_host("host");
    request->set_pid(static_cast<int64_t>(incarnation));
    request->set_index(-1);
    request->set_version("0.1.0");
  };
  daemon(pb::ROLE_PSSERVER, 3);
  daemon(pb::ROLE_WORKER, 4);
  for (const auto& [role, incarnation] :
       {std::pair(pb::ROLE_PSSERVER, 3), std::pair(pb::ROLE_WORKER, 4)}) {
    pb::HeartbeatRequest* const heartbeat = input.add_calls()->mutable_heartbeat();
    heartbeat->set_job(1);
    heartbeat->set_epoch(1);
    heartbeat->set_role(role);
    heartbeat->set_incarnation(static_cast<uint64_t>(incarnation));
    heartbeat->set_applied_bytes(10);
    heartbeat->set_most_applied_bytes(1000);
  }
  for (int run = 0; run < 2; ++run) {
    input.add_calls()->set_schedule(1);
    fuzz::RunAnswer* const answer = input.add_runs();
    for (uint32_t step = 0; step < 2; ++step) {
      pb::StepResult* const result = answer->add_replies()->add_steps();
      result->set_step(step);
      result->set_samples(3);
      result->add_updates(2);
      *result->add_returns() = Tensor::Scalar<float>(0.5f).ToProto();
    }
  }
  input.mutable_runs(1)->set_code(static_cast<int>(absl::StatusCode::kUnavailable));
  input.add_calls()->mutable_status();
  pb::LeaveRequest* const leave = input.add_calls()->mutable_leave();
  leave->set_role(pb::ROLE_WORKER);
  leave->set_incarnation(4);
  leave->set_reason("asked to stop");
  input.add_calls()->mutable_raw()->set_method("Register");
  return input;
}

fuzz::CheckpointInput WholeCheckpoint() {
  fuzz::CheckpointInput input;
  fuzz::TensorsFile* const file = input.add_files();
  file->set_name("ps-0.safetensors");
  const auto add = [&](const std::string& name, const char* dtype,
                       const std::vector<int64_t>& shape, std::string data) {
    fuzz::TensorsFile::Tensor* const tensor = file->add_tensors();
    tensor->set_name(name);
    tensor->set_dtype(dtype);
    tensor->mutable_shape()->Add(shape.begin(), shape.end());
    tensor->set_data(std::move(data));
  };
  for (const char* partition : {"0", "1"}) {
    const std::string weights = absl::StrCat("variables/weights/", partition, "/");
    add(weights + "value", "F32", {2, 3}, std::string(24, '\1'));
    add(weights + "slot_0", "F32", {2, 3}, std::string(24, '\2'));
    add(weights + "updates", "I64", {1}, Bytes<int64_t>({2}));
    add(weights + "inherits", "I64", {1}, Bytes<int64_t>({1}));
  }
  add("variables/bias/0/value", "F32", {}, Bytes<float>({1}));
  add("variables/steps/0/value", "I64", {}, Bytes<int64_t>({1}));
  add("variables/seen/0/value", "I32", {2}, Bytes<int32_t>({1, 2}));
  for (const int64_t partition : {0, 1, 2, 3}) {
    const std::string items = absl::StrCat("tables/items/", partition, "/");
    add(items + "ids", "I64", {2}, Bytes<int64_t>({partition, partition + 4}));
    add(items + "values", "F32", {2, 2}, Bytes<float>({1, 2, 3, 4}));
    add(items + "slot_0", "F32", {2, 2}, Bytes<float>({1, 2, 3, 4}));
    add(items + "updates", "I64", {1}, Bytes<int64_t>({partition}));
  }
  for (const int64_t partition : {0, 1, 2}) {
    const std::string users = absl::StrCat("tables/users/", partition, "/");
    add(users + "ids", "I64", {0}, "");
    add(users + "values", "F32", {0, 1}, "");
  }
  // Function, part, and a range of its steps.
  add("memory/0/steps", "I64", {2, 4}, Bytes<int64_t>({5, 0, 0, 3, 6, 1, 2, 9}));
  add("memory/1/steps", "I64", {1, 4}, Bytes<int64_t>({4, 0, 1, 2}));
  return input;
}

std::string ErrorDetails() {
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_STALE);
  detail.set_role(pb::ROLE_WORKER);
  detail.set_function("train");
  detail.set_op("matmul");
  detail.mutable_location()->set_file("model.cc");
  detail.set_step(3);
  detail.set_epoch(2);
  const absl::Status status = WithDetail(absl::FailedPreconditionError("stale"), detail);
  pb::StatusProto proto;
  proto.set_code(static_cast<int>(status.code()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    proto.add_details()->set_type_url(std::string(url));
    proto.mutable_details(0)->set_value(std::string(payload));
  });
  return std::string(1, static_cast<char>(status.code())) + proto.SerializeAsString();
}

}  // namespace mu::fuzzing
