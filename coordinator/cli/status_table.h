// A cluster's state as a table for a person.
#pragma once

#include <string>

#include "proto/coordinator.pb.h"

namespace mu {

std::string StatusTable(const muster::GetStatusReply& status);

}  // namespace mu
