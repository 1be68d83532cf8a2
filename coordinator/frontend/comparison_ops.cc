#include "coordinator/frontend/op_support.h"
#include "coordinator/frontend/ops.h"

namespace mu {

Sym Greater(const Operand& a, const Operand& b) { return Binary("greater", a, b); }
Sym GreaterEqual(const Operand& a, const Operand& b) { return Binary("greater_equal", a, b); }
Sym Less(const Operand& a, const Operand& b) { return Binary("less", a, b); }
Sym LessEqual(const Operand& a, const Operand& b) { return Binary("less_equal", a, b); }
Sym Equal(const Operand& a, const Operand& b) { return Binary("equal", a, b); }
Sym NotEqual(const Operand& a, const Operand& b) { return Binary("not_equal", a, b); }
Sym LogicalAnd(const Operand& a, const Operand& b) { return Binary("logical_and", a, b); }
Sym LogicalOr(const Operand& a, const Operand& b) { return Binary("logical_or", a, b); }
Sym LogicalNot(const Operand& x) { return Unary("logical_not", x); }

Sym Where(const Operand& condition, const Operand& a, const Operand& b) {
  const Sym first = a.is_number() && !b.is_number() ? a.Bind(b.Bind().dtype()) : a.Bind();
  return AddOp("where", {condition.Bind(kBool), first, b.Bind(first.dtype())}, {},
               condition.place());
}

Sym FloorDivide(const Operand& a, const Operand& b) { return Binary("floor_divide", a, b); }
Sym Modulo(const Operand& a, const Operand& b) { return Binary("modulo", a, b); }

Sym HashBucket(const Operand& ids, int64_t buckets, int64_t seed) {
  return AddOp("hash_bucket", {ids.Bind(kInt64)}, Attrs().Int("buckets", buckets).Int("seed", seed),
               ids.place());
}

}  // namespace mu
