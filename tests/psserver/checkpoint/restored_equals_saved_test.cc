// Pushes from several threads while the server saves: what is restored is the state of one instant,
// exactly.
//
// Every push adds 1 to each counter and to some rows, all chosen by (function, step) alone; so the
// memory of applied steps in a file says what each number must be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/checkpoint/safetensors.h"
#include "common/checkpoint/tensor_names.h"
#include "common/env/file.h"
#include "common/sharding/placement.h"
#include "psserver/checkpoint/checkpoint.h"
#include "tests/psserver/frames.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::AssignAndWait;
using ::mu::testing::Bytes;
using ::mu::testing::Frame;
using ::mu::testing::PushAndWait;

constexpr uint64_t kRows = 16000;
constexpr uint32_t kPartitions = 8, kDim = 4;
constexpr uint32_t kCounter = 0, kAverage = 1, kDense = 2, kSgd = 10, kAdagrad = 11;
constexpr size_t kRowsOfAPush = 12;
constexpr int64_t kAssignments = 1'000'000'000;  // places of assignments, from here

// A counter, a variable that is assigned, one with 2 partitions that takes gradients; a table with
// SGD (value -= gradient) and one with Adagrad, whose slot adds up the squares of the gradients.
pb::RoutingProto Model(uint32_t servers = 1) {
  pb::RoutingProto routing;
  routing.set_version(1);
  for (uint32_t s = 0; s < servers; ++s) routing.add_servers()->set_index(s);
  const auto variable = [&](uint32_t id, const char* name, pb::DType dtype, int64_t elements) {
    pb::VariableProto* v = routing.add_variables();
    v->set_id(id);
    v->set_name(name);
    v->set_dtype(dtype);
    v->mutable_shape()->add_dims(elements);
    return v;
  };
  variable(kCounter, "counter", pb::INT64, 1);
  variable(kAverage, "average", pb::FLOAT32, 1000);
  pb::VariableProto* dense = variable(kDense, "dense", pb::FLOAT32, 20000);
  dense->mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
  dense->mutable_partitioner()->set_fixed_shards(2);
  for (const uint32_t id : {kSgd, kAdagrad}) {
    pb::TableProto* table = routing.add_tables();
    table->set_id(id);
    table->set_name(id == kSgd ? "sgd" : "adagrad");
    table->set_rows(kRows);
    table->set_dim(kDim);
    table->set_partitions(kPartitions);
    if (id == kSgd) {
      table->mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
    } else {
      table->mutable_optimizer()->mutable_adagrad()->set_learning_rate(0.5f);
    }
  }
  MU_CHECK(PlaceAll(&routing).ok());
  return routing;
}

std::vector<int64_t> IdsOf(const PushId& push) {
  std::set<int64_t> ids;
  SplitMix random(HashCombine(push.function, push.step));
  while (ids.size() < kRowsOfAPush) ids.insert(static_cast<int64_t>(random.Below(kRows)));
  return {ids.begin(), ids.end()};
}

Buffer PushOf(const pb::RequestContext& context, const PushId& push) {
  pb::PushRequest request;
  *request.mutable_context() = context;
  request.set_function(push.function);
  request.set_step(push.step);
  const auto add = [&](uint32_t variable, uint32_t partition, pb::VariableUpdate::Kind kind) {
    pb::VariableUpdate* update = request.add_variables();
    update->set_variable(variable);
    update->set_partition(partition);
    update->set_kind(kind);
  };
  add(kCounter, 0, pb::VariableUpdate::ASSIGN_ADD);
  add(kDense, 0, pb::VariableUpdate::GRADIENT);
  add(kDense, 1, pb::VariableUpdate::GRADIENT);
  std::map<uint32_t, std::vector<int64_t>> by_partition;
  for (const int64_t id : IdsOf(push))
    by_partition[static_cast<uint32_t>(id) % kPartitions].push_back(id);
  std::vector<int64_t> ids;
  for (const uint32_t table : {kSgd, kAdagrad}) {
    pb::TableKeys* keys = request.add_tables();
    keys->set_table(table);
    for (const auto& [partition, its] : by_partition) {
      keys->add_partitions(partition);
      keys->add_counts(static_cast<uint32_t>(its.size()));
      ids.insert(ids.end(), its.begin(), its.end());
    }
  }
  return Frame(request, Bytes(ids) + Bytes<int64_t>({1}) + Bytes(std::vector<float>(20000, -1.0f)) +
                            Bytes(std::vector<float>(ids.size() * kDim, -1.0f)));
}

// Of one file: everything as a reader finds it.
struct Contents {
  std::vector<PushId> applied;
  int64_t assigned = 0;                              // how often kAverage was
  std::map<std::string, std::vector<float>> floats;  // by tensor
  std::map<std::string, std::vector<int64_t>> ints;
};

Contents Read(const std::string& path) {
  Contents contents;
  auto reader = SafetensorsReader::Open(path);
  MU_CHECK(reader.ok());
  for (const TensorEntry& entry : reader->entries()) {
    if (entry.dtype == kInt64) {
      auto& values = contents.ints[entry.name];
      values.resize((entry.end - entry.begin) / 8);
      MU_CHECK(reader->Read(entry, 0, values.data(), values.size() * 8).ok());
    } else {
      auto& values = contents.floats[entry.name];
      values.resize((entry.end - entry.begin) / 4);
      MU_CHECK(reader->Read(entry, 0, values.data(), values.size() * 4).ok());
    }
  }
  const std::vector<int64_t>& steps = contents.ints["memory/0/steps"];
  for (size_t i = 0; i < steps.size(); i += 4) {
    if (steps[i] >= kAssignments) {
      ++contents.assigned;
      continue;
    }
    for (int64_t s = steps[i + 2]; s < steps[i + 3]; ++s) {
      contents.applied.push_back({static_cast<uint64_t>(steps[i]), static_cast<uint32_t>(s),
                                  static_cast<uint32_t>(steps[i + 1])});
    }
  }
  return contents;
}

// Every number of the file is what its memory says.
void ExpectOneCut(const Contents& contents, const std::string& where) {
  SCOPED_TRACE(where);
  const int64_t pushes = static_cast<int64_t>(contents.applied.size());
  std::vector<int> touched(kRows);
  for (const PushId& push : contents.applied) {
    for (const int64_t id : IdsOf(push)) ++touched[id];
  }
  EXPECT_EQ(contents.ints.at("variables/counter/0/value")[0], pushes);
  for (const char* name : {"variables/dense/0/value", "variables/dense/1/value"}) {
    EXPECT_THAT(contents.floats.at(name), ::testing::Each(static_cast<float>(pushes))) << name;
  }
  EXPECT_EQ(contents.ints.at("variables/counter/0/updates")[0], pushes);
  int64_t rows_touched = 0, updates = 0;
  for (uint32_t p = 0; p < kPartitions; ++p) {
    const auto name = [&](const char* table, const char* part) {
      return TableTensorName(table, p, part);
    };
    for (const char* table : {"sgd", "adagrad"}) {
      const std::vector<int64_t>& ids = contents.ints.at(name(table, "ids"));
      const std::vector<float>& values =
          contents.floats.at(name(table, std::strcmp(table, "sgd") == 0 ? "values" : "slot_0"));
      for (size_t i = 0; i < ids.size(); ++i) {
        for (uint32_t c = 0; c < kDim; ++c) {
          ASSERT_EQ(values[i * kDim + c], static_cast<float>(touched[ids[i]]))
              << table << " row " << ids[i];
        }
        rows_touched += touched[ids[i]] > 0;
      }
      updates += contents.ints.at(name(table, "updates"))[0];
    }
  }
  EXPECT_EQ(rows_touched,
            2 * std::count_if(touched.begin(), touched.end(), [](int n) { return n > 0; }));
  std::set<std::pair<PushId, int64_t>> expected;
  for (const PushId& push : contents.applied) {
    for (const int64_t id : IdsOf(push)) expected.insert({push, id % kPartitions});
  }
  EXPECT_EQ(updates, 2 * static_cast<int64_t>(expected.size()));
  // Assigned whole, and remembered.
  EXPECT_THAT(contents.floats.at("variables/average/0/value"),
              ::testing::Each(static_cast<float>(contents.assigned)));
}

class RestoredTest : public ::testing::Test {
 protected:
  RestoredTest() {
    auto directory = MakeTempDirectory("muster_restored_test");
    MU_CHECK(directory.ok());
    directory_ = *directory;
    context_.set_job(1);
    context_.set_epoch(1);
    context_.set_generation(1);
  }
  ~RestoredTest() override { (void)RemoveTree(directory_); }

  void Configure(PsServer* server) {
    pb::ConfigurePsRequest request;
    *request.mutable_context() = context_;
    *request.mutable_routing() = Model();
    MU_ASSERT_OK(server->Configure(request));
  }
  pb::SaveRequest SaveOf(const std::string& file, uint64_t attempt = 0) {
    pb::SaveRequest request;
    *request.mutable_context() = context_;
    request.set_directory(directory_);
    request.set_file(file);
    request.set_attempt(attempt);
    return request;
  }
  pb::RestoreRequest RestoreOf(const pb::CheckpointFileProto& file) {
    pb::RestoreRequest request;
    *request.mutable_context() = context_;
    request.set_directory(directory_);
    *request.add_files() = file;
    return request;
  }

  Telemetry telemetry_;
  std::string directory_;
  pb::RequestContext context_;
};

TEST_F(RestoredTest, RestoredPsEqualsSaved) {
  PsServer server({.telemetry = &telemetry_});
  Configure(&server);
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  constexpr int kThreads = 3;
  std::vector<std::atomic<uint32_t>> pushed(kThreads + 1);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      // Two functions by turns, the second one's steps backwards, so that the memory has holes.
      for (uint32_t i = 0; !stop; ++i) {
        const PushId push{static_cast<uint64_t>(2 * t + i % 2), i % 2 == 0 ? i / 2 : 1000000 - i,
                          0};
        failed += !PushAndWait(&server, PushOf(context_, push)).ok();
        if (i % 5 == 0) failed += !PushAndWait(&server, PushOf(context_, push)).ok();  // a repeat
        pushed[t] = i + 1;
      }
    });
  }
  threads.emplace_back([&] {
    for (uint32_t k = 0; !stop; ++k) {
      pb::AssignRequest assign;
      *assign.mutable_context() = context_;
      assign.set_function(kAssignments + k);
      assign.set_variable(kAverage);
      assign.set_value(Bytes(std::vector<float>(1000, static_cast<float>(k + 1))));
      failed += !AssignAndWait(&server, assign).ok();
      failed += !PushAndWait(&server, PushOf(context_, {1000, k, 0})).ok();
      pushed[kThreads] = k + 1;
    }
  });
  threads.emplace_back([&] {  // creates rows
    SplitMix random(1);
    while (!stop) {
      pb::PullRequest pull;
      *pull.mutable_context() = context_;
      const int64_t id = static_cast<int64_t>(random.Below(kRows));
      auto* keys = pull.add_tables();
      keys->set_table(kSgd);
      keys->add_partitions(static_cast<uint32_t>(id) % kPartitions);
      keys->add_counts(1);
      failed += !server.Pull(Frame(pull, Bytes<int64_t>({id}))).ok();
    }
  });

  constexpr int kSaves = 8;
  std::vector<pb::SaveReply> saved;
  for (uint32_t i = 0; i < kSaves; ++i) {
    // Each thread has pushed since the last save, however late the machine lets it run.
    for (const std::atomic<uint32_t>& count : pushed) {
      const uint32_t before = count;
      while (count < before + 2 && failed == 0) std::this_thread::yield();
    }
    auto reply = server.Save(SaveOf(absl::StrCat("cut-", i)));
    MU_EXPECT_OK(reply);
    if (reply.ok()) saved.push_back(*reply);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(failed, 0);
  ASSERT_EQ(saved.size(), static_cast<size_t>(kSaves));

  size_t before = 0;
  for (const pb::SaveReply& reply : saved) {
    const Contents contents = Read(JoinPath(directory_, reply.file().name()));
    ExpectOneCut(contents, reply.file().name());
    EXPECT_GE(contents.applied.size(), before + kThreads) << "pushes went on";
    before = contents.applied.size();
  }

  // Restored, all pushes come again: those of the cut are acknowledged, the others applied.
  const pb::SaveReply& middle = saved[kSaves / 2];
  const Contents contents = Read(JoinPath(directory_, middle.file().name()));
  const std::set<PushId> applied(contents.applied.begin(), contents.applied.end());
  PsServer restored({.telemetry = &telemetry_});
  Configure(&restored);
  MU_ASSERT_OK_AND_ASSIGN(const pb::RestoreReply reply, restored.Restore(RestoreOf(middle.file())));
  EXPECT_EQ(reply.updates(), middle.updates());
  MU_ASSERT_OK(restored.Save(SaveOf("again")));
  Contents again = Read(JoinPath(directory_, "again"));
  EXPECT_TRUE(again.floats == contents.floats);
  const auto push_again = [&](const PushId& push) {
    const auto answer = PushAndWait(&restored, PushOf(context_, push));
    ASSERT_THAT(answer, testing::IsOk());
    ASSERT_EQ(answer->repeated(), applied.count(push) > 0) << push.function << " " << push.step;
    ASSERT_EQ(answer->inherited() > 0, applied.count(push) > 0);
    ASSERT_EQ(answer->updates() > 0, applied.count(push) == 0);
  };
  size_t all = pushed[kThreads];
  for (int t = 0; t < kThreads; ++t) {
    for (uint32_t i = 0; i < pushed[t]; ++i) {
      push_again({static_cast<uint64_t>(2 * t + i % 2), i % 2 == 0 ? i / 2 : 1000000 - i, 0});
    }
    all += pushed[t];
  }
  for (uint32_t k = 0; k < pushed[kThreads]; ++k) push_again({1000, k, 0});
  MU_ASSERT_OK(restored.Save(SaveOf("end")));
  Contents end = Read(JoinPath(directory_, "end"));
  EXPECT_EQ(end.ints.at("variables/counter/0/value")[0], static_cast<int64_t>(all)) << "once each";

  // A restore of a restored state that was saved again inherits from both.
  pb::CheckpointFileProto file;
  MU_ASSERT_OK_AND_ASSIGN(const pb::SaveReply last, restored.Save(SaveOf("last")));
  PsServer second({.telemetry = &telemetry_});
  Configure(&second);
  MU_ASSERT_OK(second.Restore(RestoreOf(last.file())));
  for (uint32_t k = 0; k < pushed[kThreads]; ++k) {
    MU_ASSERT_OK_AND_ASSIGN(const auto answer,
                            PushAndWait(&second, PushOf(context_, {1000, k, 0})));
    ASSERT_TRUE(answer.repeated());
  }
}

TEST_F(RestoredTest, SavesGoOnWhenCopiesHaveLittleRoom) {
  PsServer server({.telemetry = &telemetry_, .most_copies = 1});
  Configure(&server);
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0};
  std::thread pusher([&] {
    for (uint32_t i = 0; !stop; ++i)
      failed += !PushAndWait(&server, PushOf(context_, {0, i, 0})).ok();
  });
  for (int i = 0; i < 5; ++i) {
    MU_EXPECT_OK(server.Save(SaveOf("cut")));
    Contents contents = Read(JoinPath(directory_, "cut"));
    EXPECT_EQ(contents.ints["variables/counter/0/value"][0],
              static_cast<int64_t>(contents.applied.size()));
  }
  stop = true;
  pusher.join();
  EXPECT_EQ(failed, 0);
}

TEST_F(RestoredTest, ARestoreEndsASaveAndKeepStateKeepsAll) {
  PsServer server({.telemetry = &telemetry_});
  Configure(&server);
  for (uint32_t i = 0; i < 20; ++i) MU_ASSERT_OK(PushAndWait(&server, PushOf(context_, {0, i, 0})));
  MU_ASSERT_OK_AND_ASSIGN(const pb::SaveReply saved, server.Save(SaveOf("first", 7)));
  MU_ASSERT_OK(PushAndWait(&server, PushOf(context_, {0, 20, 0})));
  MU_ASSERT_OK_AND_ASSIGN(const pb::SaveReply repeated, server.Save(SaveOf("first", 7)));
  EXPECT_EQ(repeated.SerializeAsString(), saved.SerializeAsString());

  pb::RestoreRequest keep;
  context_.set_generation(2);
  *keep.mutable_context() = context_;
  keep.set_keep_state(true);
  for (int i = 0; i < 2; ++i) {
    MU_ASSERT_OK_AND_ASSIGN(const pb::RestoreReply kept, server.Restore(keep));
    EXPECT_GT(kept.updates(), saved.updates());
  }
  MU_ASSERT_OK_AND_ASSIGN(const auto answer, PushAndWait(&server, PushOf(context_, {0, 20, 0})));
  EXPECT_TRUE(answer.repeated()) << "of the generation before";
  EXPECT_GT(answer.updates(), 0u) << "a repeat says what the first one did";

  // Saves and restores at the same time: whatever comes out is whole.
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> current{2};
  std::thread saver([&] {
    for (int i = 0; !stop; ++i) {
      pb::SaveRequest save = SaveOf(absl::StrCat("save-", i));
      save.mutable_context()->set_generation(current);
      const auto reply = server.Save(save);
      if (!reply.ok()) continue;
      Contents contents = Read(JoinPath(directory_, reply->file().name()));
      const float value = contents.floats["variables/dense/0/value"][0];
      EXPECT_EQ(value, static_cast<float>(20 + (save.context().generation() == 2)));
    }
  });
  pb::RequestContext context = context_;
  for (uint64_t generation = 3; generation < 30; ++generation) {
    context.set_generation(generation);
    pb::RestoreRequest restore = RestoreOf(saved.file());
    *restore.mutable_context() = context;
    if (generation % 3 == 0) {
      restore.clear_files();
      restore.set_keep_state(generation > 3);
      if (generation == 3) restore.add_files()->CopyFrom(saved.file());
    }
    const auto reply = server.Restore(restore);
    MU_EXPECT_OK(reply);
    current = generation;
  }
  stop = true;
  saver.join();
}

TEST_F(RestoredTest, ALateCopyOfARestoreEndsNoSave) {
  PsServer server({.telemetry = &telemetry_});
  Configure(&server);
  for (uint32_t i = 0; i < 20; ++i) MU_ASSERT_OK(PushAndWait(&server, PushOf(context_, {0, i, 0})));
  context_.set_generation(2);
  pb::RestoreRequest keep;
  *keep.mutable_context() = context_;
  keep.set_keep_state(true);
  MU_ASSERT_OK(server.Restore(keep));
  std::atomic<bool> stop{false};
  std::thread copies([&] {
    while (!stop) MU_EXPECT_OK(server.Restore(keep));
  });
  for (int i = 0; i < 20; ++i) MU_EXPECT_OK(server.Save(SaveOf(absl::StrCat("save-", i))));
  stop = true;
  copies.join();
}

}  // namespace
}  // namespace mu
