// Pulls and pushes of embedding rows through gRPC on loopback, beside a plain gather in the same
// run.
//
//   ps_bench [--benchmark_filter=...]
//
// One caller with one call in flight; 26 tables of 200,000 rows of 16 floats, 1,024 ids of each in
// a call (26,624 rows) or 20 (520 rows). The counter rows/s is the figure; gather_rows/s of the
// plain loop is the limit of memory.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/client/ps_admin.h"
#include "common/client/ps_client.h"
#include "common/rpc/transport.h"
#include "common/sharding/placement.h"
#include "psserver/server.h"

namespace mu {
namespace {

constexpr uint32_t kTables = 26;
constexpr uint64_t kRows = 200000;
constexpr uint32_t kDim = 16;

pb::RoutingProto Model(uint32_t servers) {
  pb::RoutingProto routing;
  routing.set_version(1);
  for (uint32_t s = 0; s < servers; ++s) routing.add_servers()->set_index(s);
  for (uint32_t t = 0; t < kTables; ++t) {
    pb::TableProto* table = routing.add_tables();
    table->set_id(t);
    table->set_name("table_" + std::to_string(t));
    table->set_rows(kRows);
    table->set_dim(kDim);
    table->mutable_initializer()->mutable_normal()->set_stddev(0.1f);
    table->mutable_optimizer()->mutable_adagrad()->set_learning_rate(0.01f);
  }
  MU_CHECK(PlaceAll(&routing).ok());
  return routing;
}

// Servers and a client in this process, talking through gRPC on loopback.
struct Cluster {
  explicit Cluster(uint32_t count)
      : transport(NewGrpcTransport()), client([this](const std::string& address) {
          return transport->Connect(address, pb::ROLE_PSSERVER);
        }) {
    context.set_job(1);
    pb::RoutingProto model = Model(count);
    for (uint32_t s = 0; s < count; ++s) {
      servers.push_back(std::make_unique<PsServer>());
      MethodTable methods;
      servers.back()->RegisterMethods(&methods);
      auto server = transport->Listen("127.0.0.1:0", std::move(methods));
      MU_CHECK(server.ok());
      model.mutable_servers(s)->set_address((*server)->address());
      listening.push_back(*std::move(server));
    }
    MU_CHECK(client.SetRouting(model).ok());
    MU_CHECK(PsAdmin(&client).Configure(context).ok());
  }

  std::unique_ptr<Transport> transport;
  pb::RequestContext context;
  std::vector<std::unique_ptr<PsServer>> servers;
  std::vector<std::unique_ptr<RpcServer>> listening;
  PsClient client;
};

// Distinct ids of each table, several sets so that the processor's caches do not hold the answer.
struct Requests {
  static constexpr size_t kSets = 16;
  explicit Requests(size_t per_table)
      : values(kTables, std::vector<float>(per_table * kDim, 0.01f)) {
    SplitMix random(1);
    for (size_t set = 0; set < kSets; ++set) {
      for (uint32_t t = 0; t < kTables; ++t) {
        std::vector<int64_t> ids(per_table);
        const uint64_t stride = kRows / per_table;
        for (size_t i = 0; i < per_table; ++i)
          ids[i] = static_cast<int64_t>(i * stride + random.Below(stride));
        for (size_t i = per_table; i > 1; --i) std::swap(ids[i - 1], ids[random.Below(i)]);
        this->ids.push_back(std::move(ids));
      }
    }
  }
  const std::vector<int64_t>& of(size_t set, uint32_t table) const {
    return ids[set % kSets * kTables + table];
  }

  std::vector<std::vector<int64_t>> ids;
  std::vector<std::vector<float>> values;
};

void Count(benchmark::State& state, size_t rows_per_call) {
  state.counters["rows/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * rows_per_call), benchmark::Counter::kIsRate);
}

void BM_Pull(benchmark::State& state) {
  Cluster cluster(static_cast<uint32_t>(state.range(0)));
  Requests requests(static_cast<size_t>(state.range(1)));
  PsSession session(&cluster.client, {.context = cluster.context, .function = 1});
  size_t set = 0;
  const auto pull = [&] {
    std::vector<RowsRead> rows;
    for (uint32_t t = 0; t < kTables; ++t)
      rows.push_back({t, requests.of(set, t), requests.values[t].data()});
    MU_CHECK(session.Pull({}, rows).ok());
    ++set;
  };
  for (size_t i = 0; i < Requests::kSets; ++i) pull();  // creates the rows
  for (auto _ : state) pull();
  Count(state, kTables * state.range(1));
}

void BM_Push(benchmark::State& state) {
  Cluster cluster(static_cast<uint32_t>(state.range(0)));
  Requests requests(static_cast<size_t>(state.range(1)));
  PsSession session(&cluster.client, {.context = cluster.context, .function = 1});
  size_t set = 0;
  const auto push = [&] {
    std::vector<RowsWrite> rows;
    for (uint32_t t = 0; t < kTables; ++t)
      rows.push_back({t, requests.of(set, t), requests.values[t].data()});
    session.BeginStep(static_cast<uint32_t>(set));
    MU_CHECK(session.Push({}, rows).ok());
    ++set;
  };
  for (size_t i = 0; i < Requests::kSets; ++i) push();
  for (auto _ : state) push();
  Count(state, kTables * state.range(1));
}

// What memory allows: the same rows copied from plain arrays of [value | slot] rows.
void BM_PlainGather(benchmark::State& state) {
  Requests requests(static_cast<size_t>(state.range(0)));
  std::vector<std::vector<float>> tables(kTables, std::vector<float>(kRows * kDim * 2, 1.0f));
  size_t set = 0;
  for (auto _ : state) {
    for (uint32_t t = 0; t < kTables; ++t) {
      const std::vector<int64_t>& ids = requests.of(set, t);
      for (size_t i = 0; i < ids.size(); ++i) {
        if (i + 12 < ids.size()) __builtin_prefetch(tables[t].data() + ids[i + 12] * kDim * 2);
        std::memcpy(requests.values[t].data() + i * kDim, tables[t].data() + ids[i] * kDim * 2,
                    kDim * sizeof(float));
      }
      benchmark::DoNotOptimize(requests.values[t].data());
    }
    ++set;
  }
  Count(state, kTables * state.range(0));
}

BENCHMARK(BM_PlainGather)->Arg(1024)->UseRealTime();
BENCHMARK(BM_Pull)->Args({1, 1024})->Args({2, 1024})->Args({1, 20})->UseRealTime()->Unit(
    benchmark::kMicrosecond);
BENCHMARK(BM_Push)->Args({1, 1024})->Args({2, 1024})->Args({1, 20})->UseRealTime()->Unit(
    benchmark::kMicrosecond);

}  // namespace
}  // namespace mu

BENCHMARK_MAIN();
