// Where every partition lives: RoutingProto checked once and laid out for fast lookups.
//
// Immutable, hence thread safe; share it by shared_ptr<const Routing> and replace it whole.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/sharding/partition.h"
#include "proto/table.pb.h"

namespace mu {

// x % divisor with a mask where the divisor is a power of two, as it is by default.
class FastMod {
 public:
  FastMod() = default;
  explicit FastMod(uint32_t divisor)
      : divisor_(divisor), mask_((divisor & (divisor - 1)) == 0 ? divisor - 1 : 0) {}
  uint32_t operator()(uint64_t x) const {
    return static_cast<uint32_t>(mask_ != 0 || divisor_ == 1 ? x & mask_ : x % divisor_);
  }

 private:
  uint32_t divisor_ = 1;
  uint64_t mask_ = 0;
};

struct VariableRoute {
  muster::VariableProto proto;
  RowLayout layout;
  // Of each partition: byte offset in the whole variable, its size, and the position of its server
  // in servers().
  std::vector<size_t> offsets;
  std::vector<size_t> sizes;
  std::vector<uint32_t> servers;
  size_t bytes = 0;
};

struct TableRoute {
  muster::TableProto proto;
  FastMod partition_of;
  std::vector<uint32_t> servers;  // position in servers() of each partition's server
  // Partitions sorted by server, then number, and where each server's begin (servers() + 1
  // entries).
  std::vector<uint32_t> order;
  std::vector<uint32_t> server_begin;
};

class Routing {
 public:
  // INVALID_ARGUMENT if something is missing or contradicts itself (duplicate ids, placement on
  // unknown servers, ...).
  static absl::StatusOr<std::shared_ptr<const Routing>> Create(const muster::RoutingProto& proto);

  const muster::RoutingProto& proto() const { return proto_; }
  const std::vector<muster::ServerProto>& servers() const { return servers_; }  // by index
  // nullptr if there is none.
  const VariableRoute* variable(uint32_t id) const;
  const VariableRoute* variable(absl::string_view name) const;
  const TableRoute* table(uint32_t id) const;
  const TableRoute* table(absl::string_view name) const;

 private:
  absl::Status AddVariable(const muster::VariableProto& proto);
  absl::Status AddTable(const muster::TableProto& proto);
  absl::StatusOr<uint32_t> ServerPosition(uint32_t index, const std::string& what) const;

  muster::RoutingProto proto_;
  std::vector<muster::ServerProto> servers_;
  absl::flat_hash_map<uint32_t, uint32_t> position_of_server_;
  absl::flat_hash_map<uint32_t, std::unique_ptr<VariableRoute>> variables_;
  absl::flat_hash_map<uint32_t, std::unique_ptr<TableRoute>> tables_;
  absl::flat_hash_map<std::string, const VariableRoute*> variable_names_;
  absl::flat_hash_map<std::string, const TableRoute*> table_names_;
};

// INVALID_ARGUMENT, saying what is wrong, unless the definition is whole and sane: name, type,
// shape, partitions, initializer, optimizer. Placement is not looked at.
absl::Status CheckVariable(const muster::VariableProto& variable);
absl::Status CheckTable(const muster::TableProto& table);

}  // namespace mu
