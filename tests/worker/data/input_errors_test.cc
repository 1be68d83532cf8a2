#include "worker/data/input_errors.h"

#include <errno.h>

#include "common/base/error_kind.h"
#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

TEST(InputErrors, TellWhoseFaultItIs) {
  const auto fault_of = [](int error) {
    const absl::Status status = ErrorOfInput(
        Annotate(ErrnoToStatus(error, "open", "data.csv"), "dataset \"clicks\""), /*file=*/3);
    EXPECT_EQ(KindOf(status), pb::ERROR_MACHINE) << status;
    EXPECT_EQ(InputFaultOf(status).file(), 3u);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("cannot open data.csv"));
    return InputFaultOf(status).kind();
  };
  for (const int error : {ENOENT, EACCES, EPERM, ENOTDIR, ELOOP, ENAMETOOLONG})
    EXPECT_EQ(fault_of(error), pb::InputFault::MISSING) << error;
  for (const int error : {EIO, ENOSPC, EROFS, EDQUOT, EMFILE, ENOMEM, ESTALE, ENXIO})
    EXPECT_EQ(fault_of(error), pb::InputFault::DEVICE) << error;

  const auto input_of = [](const absl::Status& status) {
    return InputFaultOf(ErrorOfInput(status, 0)).kind();
  };
  EXPECT_EQ(input_of(absl::ResourceExhaustedError("no memory")), pb::InputFault::DEVICE);
  EXPECT_EQ(input_of(absl::CancelledError("the run was stopped")), pb::InputFault::NONE);
  for (const absl::Status& contents :
       {absl::InvalidArgumentError("a.csv:7: column x"), absl::DataLossError("a.gz is truncated"),
        absl::FailedPreconditionError("a.csv has changed")}) {
    EXPECT_EQ(KindOf(ErrorOfInput(contents, 0)), pb::ERROR_USER);
    EXPECT_TRUE(DetailOf(ErrorOfInput(contents, 0)).has_value()) << "also over the wire";
  }
  MU_EXPECT_OK(ErrorOfInput(absl::OkStatus(), 0));
}

TEST(InputErrors, OfADeviceAreNeverTheDatas) {
  const absl::Status missing = ErrorOfDevice(ErrnoToStatus(ENOENT, "open", "/cache/lock"));
  EXPECT_EQ(InputFaultOf(missing).kind(), pb::InputFault::DEVICE);
  EXPECT_EQ(InputFaultOf(ErrorOfInput(missing, 0)).kind(), pb::InputFault::DEVICE)
      << "it has a kind";
  MU_EXPECT_OK(ErrorOfDevice(absl::OkStatus()));
}

}  // namespace
}  // namespace mu
