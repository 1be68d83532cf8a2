#include "coordinator/cli/message_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/graph/nearest_name.h"
#include "coordinator/cli/scalar.h"
#include "proto/job.pb.h"

namespace mu {
namespace {

namespace protobuf = ::google::protobuf;
using Field = protobuf::FieldDescriptor;

std::string Join(const std::string& path, const std::string& key) {
  return path.empty() ? key : absl::StrCat(path, ".", key);
}

// Whether the message is one of several things.
bool HasChoice(const protobuf::Descriptor* type) { return type->real_oneof_decl_count() > 0; }

// A text only because it may be `auto`: its numbers are written as others are.
bool IsAutoOrNumber(const Field* field) {
  return field == pb::TrainingProto::descriptor()->FindFieldByName("steps_per_function") ||
         field == pb::TrainingProto::descriptor()->FindFieldByName("warmup_steps");
}

std::string TypeName(const Field* field) {
  if (IsAutoOrNumber(field)) return "auto or a whole number";
  switch (field->cpp_type()) {
    case Field::CPPTYPE_MESSAGE:
      return "a map of keys";
    case Field::CPPTYPE_STRING:
      return "a text";
    case Field::CPPTYPE_BOOL:
      return "true or false";
    case Field::CPPTYPE_FLOAT:
    case Field::CPPTYPE_DOUBLE:
      return "a number";
    default:
      return "a whole number";
  }
}

absl::StatusOr<int64_t> Within(absl::StatusOr<int64_t> value, int64_t low, int64_t high) {
  if (value.ok() && low == 0 && *value < 0)
    return absl::OutOfRangeError(absl::StrCat("must not be negative, but is ", *value));
  if (value.ok() && *value < low)
    return absl::OutOfRangeError(absl::StrCat("must be at least ", low, ", not ", *value));
  if (value.ok() && *value > high)
    return absl::OutOfRangeError(absl::StrCat("must be at most ", high, ", not ", *value));
  return value;
}

// What the field holds instead of a whole number that is out of its type's range.
std::string NearestOf(const std::string& text, const Field* field) {
  const bool negative = text[0] == '-';
  switch (field->cpp_type()) {
    case Field::CPPTYPE_INT32:
      return absl::StrCat(negative ? std::numeric_limits<int32_t>::min()
                                   : std::numeric_limits<int32_t>::max());
    case Field::CPPTYPE_UINT32:
      return negative ? "0" : absl::StrCat(std::numeric_limits<uint32_t>::max());
    default:
      return "0";
  }
}

// Parses `text` for the field and sets or adds it. OUT_OF_RANGE: a whole number that the field's
// type does not hold.
absl::Status SetScalar(const std::string& text, const Field* field, protobuf::Message* message) {
  const protobuf::Reflection* reflection = message->GetReflection();
  const bool many = field->is_repeated();
#define MU_SET(Type, expression)                     \
  {                                                  \
    const auto value = (expression);                 \
    if (!value.ok()) return value.status();          \
    if (many) {                                      \
      reflection->Add##Type(message, field, *value); \
    } else {                                         \
      reflection->Set##Type(message, field, *value); \
    }                                                \
    return absl::OkStatus();                         \
  }
  switch (field->cpp_type()) {
    case Field::CPPTYPE_BOOL:
      MU_SET(Bool, ParseBool(text))
    case Field::CPPTYPE_INT32:
      MU_SET(Int32, Within(ParseInt(text), std::numeric_limits<int32_t>::min(),
                           std::numeric_limits<int32_t>::max()))
    case Field::CPPTYPE_UINT32:
      MU_SET(UInt32, Within(ParseInt(text), 0, std::numeric_limits<uint32_t>::max()))
    case Field::CPPTYPE_INT64:
      MU_SET(Int64, ParseInt(text))
    case Field::CPPTYPE_UINT64:
      if (const auto value = ParseInt(text); value.ok() && *value < 0)
        return Within(value, 0, std::numeric_limits<int64_t>::max()).status();
      MU_SET(UInt64, ParseUint(text))
    case Field::CPPTYPE_FLOAT:
      MU_SET(Float, ParseFloat(text))
    case Field::CPPTYPE_DOUBLE:
      MU_SET(Double, ParseDouble(text))
    case Field::CPPTYPE_STRING:
      MU_SET(String, absl::StatusOr<std::string>(text))
    default:
      MU_CHECK(false);  // job.proto has no other types
  }
#undef MU_SET
  return absl::OkStatus();
}

}  // namespace

const Place& KeyPlaces::Find(std::string key) const {
  while (!key.empty()) {
    if (const auto found = places_.find(key); found != places_.end()) return found->second;
    const size_t cut = key.find_last_of(".[");
    key.resize(cut == std::string::npos ? 0 : cut);
  }
  return root_;
}

bool KeyPlaces::IsBad(const std::string& key) const {
  const auto below = [](absl::string_view inner, absl::string_view outer) {
    return absl::StartsWith(inner, outer) &&
           (inner.size() == outer.size() || inner[outer.size()] == '.' ||
            inner[outer.size()] == '[');
  };
  for (const std::string& bad : bad_) {
    if (bad.empty() || below(bad, key) || below(key, bad)) return true;
  }
  return false;
}

void MessageReader::Bad(const std::string& key, const Place& place, std::string message,
                        std::string remedy) {
  places_->MarkBad(key);
  problems_->Add(place, std::move(message), std::move(remedy));
}

// The path of a message that has a key `name`, if there is one, such as "training".
std::string MessageReader::PathOfKey(const protobuf::Descriptor* type, const std::string& name,
                                     const std::string& path) const {
  const std::vector<std::string> keys = KeysOf(type);
  if (std::find(keys.begin(), keys.end(), name) != keys.end()) return path;
  for (int i = 0; i < type->field_count(); ++i) {
    const Field* field = type->field(i);
    if (field->message_type() == nullptr) continue;
    std::string found = PathOfKey(field->message_type(), name, Join(path, field->name()));
    if (!found.empty()) return found;
  }
  return "";
}

std::vector<std::string> MessageReader::KeysOf(const protobuf::Descriptor* type) const {
  std::vector<std::string> keys;
  const bool hooked = type->full_name() == hook_.message;
  for (int i = 0; i < type->field_count(); ++i) {
    const std::string& name = type->field(i)->name();
    if (hooked && std::find(hook_.hidden.begin(), hook_.hidden.end(), name) != hook_.hidden.end())
      continue;
    keys.push_back(name);
  }
  if (hooked) keys.insert(keys.end(), hook_.keys.begin(), hook_.keys.end());
  return keys;
}

std::vector<std::string> MessageReader::OfferedKeys(const protobuf::Descriptor* type,
                                                    const std::string& path) const {
  std::vector<std::string> keys = KeysOf(type);
  if (hook_.is_refused) {
    keys.erase(
        std::remove_if(keys.begin(), keys.end(),
                       [&](const std::string& key) { return hook_.is_refused(Join(path, key)); }),
        keys.end());
  }
  return keys;
}

void MessageReader::UnknownKey(const ConfigEntry& entry, const std::string& key,
                               const protobuf::Message& message) {
  const std::vector<std::string> keys = OfferedKeys(message.GetDescriptor(), key);
  const std::string nearest = NearestName(entry.key, keys);
  std::string remedy;
  if (!nearest.empty()) {
    remedy = absl::StrCat("did you mean `", nearest, "`?");
    // Of several there may be another that was meant.
    if (HasChoice(message.GetDescriptor()) && message.GetDescriptor()->full_name() != hook_.message)
      absl::StrAppend(&remedy, " It may be one of: ", absl::StrJoin(keys, ", "));
    // It will be found missing, which is the same slip.
    places_->MarkBad(Join(key, nearest));
  } else if (const std::string home = PathOfKey(pb::JobProto::descriptor(), entry.key, "");
             !home.empty()) {
    remedy = absl::StrCat("it belongs under `", home, "`");
  } else {
    remedy = absl::StrCat("it may be one of: ", absl::StrJoin(keys, ", "));
  }
  // Where one of several is to be chosen, this is the choice that went wrong.
  if (HasChoice(message.GetDescriptor())) places_->MarkBad(key);
  problems_->Add(entry.key_place,
                 absl::StrCat("there is no key `", entry.key.substr(0, 60), "` ",
                              key.empty() ? "in a job" : absl::StrCat("under `", key, "`")),
                 remedy);
}

void MessageReader::Read(const ConfigNode& node, const std::string& key,
                         protobuf::Message* message) {
  if (node.kind == ConfigNode::kInvalid) return places_->MarkBad(key);
  if (node.kind != ConfigNode::kMap) {
    Bad(key, node.place,
        absl::StrCat(key.empty() ? "a job" : absl::StrCat("`", key, "`"),
                     " must be a map of keys, not ", node.Describe()),
        absl::StrCat("its keys are: ",
                     absl::StrJoin(OfferedKeys(message->GetDescriptor(), key), ", ")));
    return;
  }
  for (const ConfigEntry& entry : node.entries) ReadEntry(entry, key, message);
}

void MessageReader::ReadEntry(const ConfigEntry& entry, const std::string& key,
                              protobuf::Message* message) {
  const std::vector<std::string> keys = KeysOf(message->GetDescriptor());
  const std::string path = Join(key, entry.key);
  if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) {
    UnknownKey(entry, key, *message);
    return;
  }
  const Field* field = message->GetDescriptor()->FindFieldByName(entry.key);
  const bool hooked = field == nullptr;
  const bool simple = !hooked && (entry.value.kind == ConfigNode::kScalar);
  places_->Set(path, simple ? entry.value.place : entry.key_place);

  const protobuf::OneofDescriptor* oneof =
      hooked ? message->GetDescriptor()->oneof_decl(0) : field->real_containing_oneof();
  const protobuf::Reflection* reflection = message->GetReflection();
  if (oneof != nullptr && reflection->HasOneof(*message, oneof)) {
    Bad(path, entry.key_place,
        absl::StrCat("`", path, "` stands beside another choice under `", key, "`"),
        absl::StrCat("keep one of: ", absl::StrJoin(keys, ", ")));
    return;
  }
  if (hooked) {
    hook_.read(entry.key, entry.value, message);
  } else {
    ReadField(entry.value, field, path, message);
  }
}

void MessageReader::ReadField(const ConfigNode& node, const Field* field, const std::string& key,
                              protobuf::Message* message) {
  if (node.kind == ConfigNode::kNull) {
    Bad(key, places_->Find(key), absl::StrCat("`", key, "` has no value"),
        absl::StrCat("write ", field->is_repeated() ? "a list" : TypeName(field),
                     " or remove the key"));
    return;
  }
  if (!field->is_repeated()) return ReadValue(node, field, key, message);
  if (node.kind == ConfigNode::kInvalid) return places_->MarkBad(key);
  if (node.kind != ConfigNode::kList) {
    Bad(key, node.place, absl::StrCat("`", key, "` must be a list, not ", node.Describe()),
        node.kind == ConfigNode::kScalar ? absl::StrCat("write [", node.text.substr(0, 60), "]")
                                         : "write its items in [ ]");
    return;
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    const std::string item_key = absl::StrCat(key, "[", i, "]");
    places_->Set(item_key, node.items[i].place);
    ReadValue(node.items[i], field, item_key, message);
  }
}

void MessageReader::ReadValue(const ConfigNode& node, const Field* field, const std::string& key,
                              protobuf::Message* message) {
  if (node.kind == ConfigNode::kInvalid) return places_->MarkBad(key);
  if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
    const protobuf::Reflection* reflection = message->GetReflection();
    Read(node, key,
         field->is_repeated() ? reflection->AddMessage(message, field)
                              : reflection->MutableMessage(message, field));
    return;
  }
  const bool text = field->cpp_type() == Field::CPPTYPE_STRING;
  const bool number = !text || (IsAutoOrNumber(field) && ParseInt(node.text).ok());
  if (node.kind != ConfigNode::kScalar || (node.quoted && number)) {
    Bad(key, node.place,
        absl::StrCat("`", key, "` must be ", TypeName(field), ", not ", node.Describe()),
        node.kind == ConfigNode::kScalar ? "write it without quotes" : "");
    return;
  }
  const absl::Status status = SetScalar(node.text, field, message);
  if (absl::IsOutOfRange(status)) {
    const std::string nearest = NearestOf(node.text, field);
    places_->SetBeyondType(key, {node.text, nearest, std::string(status.message())});
    MU_CHECK(SetScalar(nearest, field, message).ok());
  } else if (!status.ok()) {
    Bad(key, node.place, absl::StrCat("`", key, "` ", status.message()));
  }
}

}  // namespace mu
