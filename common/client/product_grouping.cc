#include "common/client/product_grouping.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/frame.h"
#include "common/tensor/dtype.h"

namespace mu {
namespace {

// The partitions of one variable multiply one x.
bool SharesInput(const std::vector<ProductPiece>& pieces, size_t i) {
  if (i == 0 || pieces[i].back || pieces[i - 1].back) return false;
  return pieces[i - 1].variable == pieces[i].variable && pieces[i - 1].batch == pieces[i].batch &&
         pieces[i - 1].partition < pieces[i].partition;
}

size_t InputBytes(const ProductPiece& piece) {
  return piece.back ? piece.NarrowBytes() : piece.WideBytes();
}
size_t OutputBytes(const ProductPiece& piece) {
  return piece.back ? piece.WideBytes() : piece.NarrowBytes();
}

}  // namespace

absl::Status ProductGrouping::Group(const Routing& routing,
                                    absl::Span<const ProductRead> products) {
  if (pieces_.size() < routing.servers().size()) pieces_.resize(routing.servers().size());
  for (auto& of_server : pieces_) of_server.clear();
  sums_.clear();
  for (const ProductRead& product : products) {
    const VariableRoute* route = routing.variable(product.variable);
    if (route == nullptr || route->proto.dtype() != kFloat32 ||
        route->proto.shape().dims_size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("no float32 matrix has id ", product.variable,
                                                     " in the routing that is known here"));
    }
    AddProducts(*route, product, &pieces_);
    if (!product.back) continue;
    Sum& sum = sums_.emplace_back();
    sum.part_size = static_cast<size_t>(product.batch * route->layout.elements_per_row);
    sum.count = route->servers.size();
    sum.parts.resize(sum.count * sum.part_size);
    sum.out = product.out;
    // Vectors move, what they hold does not.
    for (auto& of_server : pieces_) {
      for (ProductPiece& piece : of_server) {
        if (piece.back && piece.variable == product.variable && piece.out == product.out)
          piece.out = sum.parts.data() + piece.partition * sum.part_size;
      }
    }
  }
  return absl::OkStatus();
}

Buffer ProductGrouping::PullFrame(size_t server, pb::PullRequest* header) const {
  const std::vector<ProductPiece>& pieces = pieces_[server];
  header->clear_products();
  size_t bytes = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    pb::ProductKey* key = header->add_products();
    key->set_variable(pieces[i].variable);
    key->set_partition(pieces[i].partition);
    key->set_rows(static_cast<uint32_t>(pieces[i].batch));
    key->set_back(pieces[i].back);
    if (!SharesInput(pieces, i)) bytes += PaddedTo8(InputBytes(pieces[i]));
  }
  FrameWriter frame(*header, bytes);
  char* to = frame.payload;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (SharesInput(pieces, i)) continue;
    const size_t size = InputBytes(pieces[i]);
    if (pieces[i].back) {
      pieces[i].TakeColumns(pieces[i].x, to);
    } else if (size > 0) {
      std::memcpy(to, pieces[i].x, size);
    }
    std::memset(to + size, 0, PaddedTo8(size) - size);
    to += PaddedTo8(size);
  }
  return std::move(frame.buffer).Finish();
}

absl::Status ProductGrouping::TakeReply(size_t server, const Buffer& reply, pb::PullReply* header) {
  MU_ASSIGN_OR_RETURN(const absl::Span<const char> payload, ParseFrame(reply, header));
  size_t bytes = 0;
  for (const ProductPiece& piece : pieces_[server]) bytes += PaddedTo8(OutputBytes(piece));
  if (payload.size() != bytes) {
    return absl::InternalError(absl::StrCat("a parameter server answered with ", payload.size(),
                                            " bytes of products instead of ", bytes));
  }
  const char* from = payload.data();
  for (const ProductPiece& piece : pieces_[server]) {
    const size_t size = OutputBytes(piece);
    if (!piece.back) {
      piece.PutColumns(from, piece.out);
    } else if (size > 0) {
      std::memcpy(piece.out, from, size);
    }
    from += PaddedTo8(size);
  }
  return absl::OkStatus();
}

void ProductGrouping::Finish() {
  for (const Sum& sum : sums_) {
    std::fill_n(sum.out, sum.part_size, 0.0f);
    for (size_t p = 0; p < sum.count; ++p) {
      const float* const part = sum.parts.data() + p * sum.part_size;
      for (size_t i = 0; i < sum.part_size; ++i) sum.out[i] += part[i];
    }
  }
}

}  // namespace mu
