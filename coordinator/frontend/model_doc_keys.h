// How the docs of Muster's models are written (model_doc.h): texts for the fields of a message.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "coordinator/frontend/model_doc.h"
#include "proto/job.pb.h"

namespace mu {

// A key of a message: its type comes from the message.
struct KeyText {
  const char* key;
  const char* default_value;  // empty: required
  const char* meaning;
};

void AddKeys(const google::protobuf::Descriptor* message, const std::string& prefix,
             std::initializer_list<KeyText> texts, ModelDoc* doc);
// Those of an item of a list of features, such as "features.".
void AddFeatureKeys(const std::string& prefix, ModelDoc* doc);

// Of model_kinds.h.
std::vector<ModelDoc> ModelKindDocs();

}  // namespace mu
