// Tables that are no table of the coordinator: what is said before a file is touched.
#include "coordinator/training/table_file.h"

#include <memory>

#include "common/env/file.h"
#include "common/rpc/transport.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

absl::StatusOr<std::unique_ptr<Coordinator>> WithoutServers(uint64_t job) {
  Coordinator::Options options;
  options.runtime.listen = "";
  options.runtime.job = JobId(job);
  options.runtime.start_timeout = absl::ZeroDuration();  // whoever asks servers has an error
  return Coordinator::Create(options, NewMemoryTransport());
}

TEST(TableFileTest, AnotherCoordinatorsTableIsNeitherExportedNorImported) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("muster-table"));
  const std::string path = directory.path() + "/items.safetensors";
  MU_ASSERT_OK_AND_ASSIGN(const auto coordinator, WithoutServers(1));
  MU_ASSERT_OK_AND_ASSIGN(const auto another, WithoutServers(2));
  MU_ASSERT_OK(coordinator->CreateEmbeddingTable({.name = "items", .rows = 10, .dim = 2}));
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable others,
                          another->CreateEmbeddingTable({.name = "items", .rows = 10, .dim = 1}));
  for (const EmbeddingTable& table : {EmbeddingTable(), others}) {
    const auto refused =
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(table.valid() ? "table 'items' was not created by this coordinator"
                                         : "this EmbeddingTable handle is empty"));
    EXPECT_THAT(ExportTable(*coordinator, table, path).status(), refused);
    EXPECT_FALSE(FileExists(path));
    EXPECT_THAT(ImportTable(*coordinator, table, path).status(), refused)
        << "that there is no file is not what is wrong";
  }
}

}  // namespace
}  // namespace mu
