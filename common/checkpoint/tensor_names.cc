#include "common/checkpoint/tensor_names.h"

#include "absl/strings/str_cat.h"

namespace mu {

std::string VariableTensorName(const std::string& name, uint32_t partition,
                               const std::string& part) {
  return absl::StrCat("variables/", name, "/", partition, "/", part);
}
std::string TableTensorName(const std::string& name, uint32_t partition, const std::string& part) {
  return absl::StrCat("tables/", name, "/", partition, "/", part);
}
std::string SlotPart(size_t slot) { return absl::StrCat("slot_", slot); }
std::string MemoryTensorName(size_t number) { return absl::StrCat("memory/", number, "/steps"); }

}  // namespace mu
