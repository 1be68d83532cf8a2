// Parts of variables: rows that a step reads or adds to, and products with a variable that stays on
// its servers. What the steps do not use does not travel.
#pragma once

#include <cstdint>

#include "coordinator/frontend/handles.h"
#include "coordinator/frontend/sym.h"

namespace mu {

// Rows [first, first + count) of axis 0. Only these travel to the worker; their gradient travels
// back as one of the whole variable, 0 elsewhere, since optimizers see whole updates.
Sym ReadRows(const Variable& variable, int64_t first, int64_t count,
             const char* file = __builtin_FILE(), int line = __builtin_LINE());

// Adds row i of `delta` [n, ...] to row rows[i] (int64 [n]) when the step's updates are pushed.
// What comes to one row several times is added up. Only these rows travel. OUT_OF_RANGE when a step
// names a row that there is not.
void ScatterAdd(const Variable& variable, const Operand& rows, const Operand& delta);

// Row rows[i] (int64 [n]) gets row i of `value` [n, ...] when the step's updates are pushed; of a
// row that is there several times, the last one counts. Only these rows travel, and each step does
// it once; in a synchronous round the last of the data counts. OUT_OF_RANGE when a step names a row
// that there is not.
void ScatterUpdate(const Variable& variable, const Operand& rows, const Operand& value);

enum class ProductPlace {
  // Where fewer bytes move, see MovesLessFromServers, and servers can compute it. Decided when the
  // function is complete: it trains where a gradient goes through the product.
  kAuto,
  kServers,  // each server multiplies with the partitions that it has
  kWorker,   // the variable is read
};

struct ShardedMatMulOptions {
  ProductPlace place = ProductPlace::kAuto;
  // Rows of x, for kAuto: to be given where these are not the records of a batch, as in
  // [batch * time, k]. 0: the batch size of the function's data set; if that is not known, the
  // variable is read.
  int64_t batch = 0;
};

// x [batch, k] times the transposed variable [n, k]: [batch, n]. The layer of a softmax over many
// classes has a row for each class, cut into partitions as its partitioner says. Where servers
// compute, x goes to each of them and the products come back; in training they are asked again, for
// the gradient of x, and the push brings the gradients of the products instead of the variable's,
// which each server computes from them. A step reads the variable for the products at the moment of
// each. Servers cannot compute it where the variable takes another gradient in the function, nor
// with penalties, clipping, weight decay or micro_batches: kServers is refused there.
Sym ShardedMatMul(const Operand& x, const Variable& variable,
                  const ShardedMatMulOptions& options = {});

// What a step moves for such a product of `batch` rows with a variable [n, k], in bytes.
struct ProductBytes {
  double read = 0;          // if the variable is read: that and, in training, its gradient
  double from_servers = 0;  // if the servers compute
};
// In training servers move batch * (3n + k * (partitions + 2 * servers)) numbers: the products, and
// their gradients twice; x to each server for the product and in the push; and the gradient of x
// from each partition. What only reads moves batch * (n + k * servers). How many servers there will
// be is not known here, since a job may go on with another number of them. So this counts as if
// each partition had a server of its own: 3 * batch * (n + k * partitions) and
// batch * (n + k * partitions). Where servers are few and x is wide, that is too much: kServers, or
// fewer partitions.
ProductBytes BytesOfProduct(int64_t batch, int64_t n, int64_t k, int64_t partitions, bool trains);

// Whether it moves fewer bytes if the servers compute.
bool MovesLessFromServers(int64_t batch, int64_t n, int64_t k, int64_t partitions, bool trains);

}  // namespace mu
