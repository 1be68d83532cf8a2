#include "common/exec/onednn_conv.h"

#include <dnnl.hpp>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

// From OpenMP's runtime, which oneDNN brings: declared here, since the rest of the code is not
// compiled for OpenMP.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int threads);
}

namespace mu {
namespace {

using Dims = dnnl::memory::dims;
using Layout = dnnl::memory::format_tag;

// oneDNN splits a primitive among OpenMP's threads. Muster's cores belong to its own threads, so
// the calling one works alone; a program's own use of OpenMP finds its number of threads as before.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

dnnl::memory::desc Floats(const Dims& dims, Layout layout) {
  return {dims, dnnl::memory::data_type::f32, layout};
}

absl::Status ToStatus(const dnnl::error& error) {
  const std::string message = absl::StrCat("oneDNN: ", error.message);
  switch (error.status) {
    case dnnl_out_of_memory:
      return absl::ResourceExhaustedError(message);
    case dnnl_unimplemented:
      return absl::UnimplementedError(message);
    case dnnl_runtime_error:
      // What it writes for the processor could not be made executable, mostly.
      return absl::InternalError(
          absl::StrCat(message, "; the process must be allowed to make memory executable, which ",
                       "MemoryDenyWriteExecute of systemd or execmem of SELinux may deny"));
    default:
      return absl::InternalError(message);
  }
}

size_t RoundedUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

struct OnednnConvolution::Primitives {
  ConvolutionPart part = ConvolutionPart::kResult;
  dnnl::engine engine;
  dnnl::primitive convolution;
  // Of a filter between Muster's order and oneDNN's; none if they are the same.
  std::optional<dnnl::reorder> reorder;
  dnnl::memory::desc images, result, filter, liked_filter, scratchpad;

  template <typename Descriptor>
  void Choose(const Descriptor& descriptor, const dnnl::memory::desc& liked) {
    convolution = dnnl::primitive(descriptor.get());
    scratchpad = descriptor.scratchpad_desc();
    liked_filter = liked;
  }
  void ChooseReorder() {
    if (liked_filter == filter) return;
    const bool from_ours = part != ConvolutionPart::kFilterGradient;
    reorder.emplace(dnnl::reorder::primitive_desc(engine, from_ours ? filter : liked_filter, engine,
                                                  from_ours ? liked_filter : filter));
  }
};

OnednnConvolution::OnednnConvolution(std::unique_ptr<Primitives> primitives)
    : primitives_(std::move(primitives)) {}
OnednnConvolution::~OnednnConvolution() = default;

absl::StatusOr<std::unique_ptr<OnednnConvolution>> OnednnConvolution::Make(
    ConvolutionPart part, const ConvolutionSizes& sizes) {
  const OneThread alone;
  const WindowAxis &y = sizes.windows.y, &x = sizes.windows.x;
  const int64_t batch = sizes.windows.batch, channels = sizes.windows.channels;
  const Dims image_dims = {batch, channels, y.input, x.input};
  const Dims result_dims = {batch, sizes.filters, y.count, x.count};
  const Dims filter_dims = {sizes.filters, channels, y.size, x.size};
  const Dims strides = {y.stride, x.stride};
  const Dims before = {y.before, x.before};
  const Dims after = {y.After(), x.After()};
  auto made = std::make_unique<Primitives>();
  made->part = part;
  try {
    made->engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
    made->images = Floats(image_dims, Layout::nhwc);
    made->result = Floats(result_dims, Layout::nhwc);
    made->filter = Floats(filter_dims, Layout::hwio);
    const auto any = Floats(filter_dims, Layout::any);
    const auto direct = dnnl::algorithm::convolution_direct;
    dnnl::primitive_attr own_memory;
    own_memory.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, direct, made->images, any, made->result, strides,
         before, after},
        own_memory, made->engine);
    switch (part) {
      case ConvolutionPart::kResult:
        made->Choose(forward, forward.weights_desc());
        break;
      case ConvolutionPart::kImagesGradient: {
        const dnnl::convolution_backward_data::primitive_desc backward(
            {direct, made->images, any, made->result, strides, before, after}, own_memory,
            made->engine, forward);
        made->Choose(backward, backward.weights_desc());
        break;
      }
      case ConvolutionPart::kFilterGradient: {
        const dnnl::convolution_backward_weights::primitive_desc backward(
            {direct, made->images, any, made->result, strides, before, after}, own_memory,
            made->engine, forward);
        made->Choose(backward, backward.diff_weights_desc());
        break;
      }
    }
    made->ChooseReorder();
  } catch (const dnnl::error& error) {
    return ToStatus(error);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory for oneDNN");
  }
  return std::unique_ptr<OnednnConvolution>(new OnednnConvolution(std::move(made)));
}

size_t OnednnConvolution::scratch_bytes() const {
  const size_t own = RoundedUp(primitives_->scratchpad.get_size());
  return own + (primitives_->reorder.has_value() ? primitives_->liked_filter.get_size() : 0);
}

absl::Status OnednnConvolution::Run(const float* first, const float* second, float* out,
                                    void* scratch) const {
  const OneThread alone;
  const Primitives& p = *primitives_;
  char* const reordered = static_cast<char*>(scratch) + RoundedUp(p.scratchpad.get_size());
  try {
    dnnl::stream stream(p.engine);
    const auto memory = [&p](const dnnl::memory::desc& what, const void* at) {
      return dnnl::memory(what, p.engine, const_cast<void*>(at));
    };
    const dnnl::memory own = memory(p.scratchpad, scratch);
    const bool to_filter = p.part == ConvolutionPart::kFilterGradient;
    const dnnl::memory filter = memory(p.filter, to_filter ? out : second);
    const dnnl::memory liked = p.reorder.has_value() ? memory(p.liked_filter, reordered) : filter;
    const auto reorder = [&](const dnnl::memory& from, const dnnl::memory& to) {
      if (p.reorder.has_value())
        p.reorder->execute(stream, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
    };
    switch (p.part) {
      case ConvolutionPart::kResult:
        reorder(filter, liked);
        p.convolution.execute(stream, {{DNNL_ARG_SRC, memory(p.images, first)},
                                       {DNNL_ARG_WEIGHTS, liked},
                                       {DNNL_ARG_DST, memory(p.result, out)},
                                       {DNNL_ARG_SCRATCHPAD, own}});
        break;
      case ConvolutionPart::kImagesGradient:
        reorder(filter, liked);
        p.convolution.execute(stream, {{DNNL_ARG_DIFF_DST, memory(p.result, first)},
                                       {DNNL_ARG_WEIGHTS, liked},
                                       {DNNL_ARG_DIFF_SRC, memory(p.images, out)},
                                       {DNNL_ARG_SCRATCHPAD, own}});
        break;
      case ConvolutionPart::kFilterGradient:
        p.convolution.execute(stream, {{DNNL_ARG_DIFF_DST, memory(p.result, first)},
                                       {DNNL_ARG_SRC, memory(p.images, second)},
                                       {DNNL_ARG_DIFF_WEIGHTS, liked},
                                       {DNNL_ARG_SCRATCHPAD, own}});
        reorder(liked, filter);
        break;
    }
    stream.wait();
  } catch (const dnnl::error& error) {
    return ToStatus(error);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory for oneDNN");
  }
  return absl::OkStatus();
}

}  // namespace mu
