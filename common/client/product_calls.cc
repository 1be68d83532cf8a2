#include "common/client/product_calls.h"

#include <algorithm>

#include "common/rpc/frame.h"

namespace mu {
namespace {

bool OfOneProduct(const ProductPiece& a, const ProductPiece& b) {
  return a.variable == b.variable && a.back == b.back && a.x == b.x && a.batch == b.batch;
}

// What the last piece adds to a call.
struct Load {
  int64_t multiply_adds = 0;
  size_t bytes = 0;

  void Add(const std::vector<ProductPiece>& pieces) {
    const size_t last = pieces.size() - 1;
    multiply_adds += pieces[last].MultiplyAdds();
    bytes += PaddedTo8(OutputBytes(pieces[last]));
    if (!SharesInput(pieces, last)) bytes += PaddedTo8(InputBytes(pieces[last]));
  }
  bool Within(const ProductLimits& limits) const {
    return multiply_adds <= limits.multiply_adds && bytes <= limits.bytes;
  }
};

// Of a batch that is `whole` of something, the records that are within the limit.
int64_t Fitting(int64_t batch, int64_t whole, int64_t limit) {
  return whole <= limit ? batch : std::max<int64_t>(1, limit * batch / whole);
}

int64_t BlocksOf(const Load& whole, int64_t batch, const ProductLimits& limits) {
  if (whole.Within(limits)) return 1;
  const int64_t records = std::min(
      Fitting(batch, whole.multiply_adds, limits.multiply_adds),
      Fitting(batch, static_cast<int64_t>(whole.bytes), static_cast<int64_t>(limits.bytes)));
  return std::clamp<int64_t>((batch + records - 1) / records, 1,
                             std::max<int64_t>(1, batch / limits.least_records));
}

}  // namespace

std::vector<std::vector<ProductPiece>> CutIntoCalls(const std::vector<ProductPiece>& pieces,
                                                    const ProductLimits& limits) {
  std::vector<std::vector<ProductPiece>> calls;
  Load load;  // of the last call
  const auto append = [&](const ProductPiece& piece) {
    if (calls.empty()) calls.emplace_back();
    calls.back().push_back(piece);
    load.Add(calls.back());
    if (load.Within(limits) || calls.back().size() == 1) return;
    calls.back().pop_back();
    calls.push_back({piece});
    load = Load();
    load.Add(calls.back());
  };
  for (size_t begin = 0; begin < pieces.size();) {
    Load whole;
    std::vector<ProductPiece> product;
    for (size_t i = begin; i < pieces.size() && OfOneProduct(pieces[begin], pieces[i]); ++i) {
      product.push_back(pieces[i]);
      whole.Add(product);
    }
    const int64_t batch = product[0].batch, blocks = BlocksOf(whole, batch, limits);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t first = batch * block / blocks, end = batch * (block + 1) / blocks;
      for (const ProductPiece& piece : product) append(piece.Records(first, end - first));
    }
    begin += product.size();
  }
  return calls;
}

int64_t MultiplyAddsOf(const std::vector<ProductPiece>& pieces) {
  int64_t sum = 0;
  for (const ProductPiece& piece : pieces) sum += piece.MultiplyAdds();
  return sum;
}

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

}  // namespace mu
