// Names of the tensors in a checkpoint's files (docs/checkpoint_format.md):
// "variables/NAME/PARTITION/PART" and "tables/NAME/PARTITION/PART".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mu {

std::string VariableTensorName(const std::string& name, uint32_t partition,
                               const std::string& part);
std::string TableTensorName(const std::string& name, uint32_t partition, const std::string& part);
std::string SlotPart(size_t slot);            // "slot_K"
std::string MemoryTensorName(size_t number);  // "memory/NUMBER/steps"

}  // namespace mu
