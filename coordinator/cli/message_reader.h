// Fills a protobuf message from a YAML tree by the message's descriptor: keys are field names.
//
// Every key that the message does not have, and every value that does not fit its field, becomes a
// problem with its place and a remedy; all else is read on, so one pass finds them all.
#pragma once

#include <google/protobuf/message.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "coordinator/cli/config_node.h"
#include "coordinator/cli/problem_list.h"

namespace mu {

// Where each key of the job was written, by its path ("model.dlrm.top_mlp[2]"), so that what is
// found wrong later has its place too.
class KeyPlaces {
 public:
  explicit KeyPlaces(Place root = {}) : root_(std::move(root)) {}
  void Set(const std::string& key, Place place) { places_[key] = std::move(place); }
  bool Has(const std::string& key) const { return places_.count(key) != 0; }
  // Of the key or, where it was not written, of the nearest one around it.
  const Place& Find(std::string key) const;

  // A key with which something is wrong already: what follows from that is not worth a word.
  void MarkBad(const std::string& key) { bad_.insert(key); }
  // It, or a key around it or below it, is bad.
  bool IsBad(const std::string& key) const;

  // A number that the field's type cannot hold. The field has the nearest one, so that the key's
  // own rule finds it wrong and names the range; where it does not, `problem` says what is wrong.
  struct BeyondType {
    std::string text, nearest;
    std::string problem;  // behind "`key` "
  };
  void SetBeyondType(const std::string& key, BeyondType number) {
    beyond_type_[key] = std::move(number);
  }
  const std::map<std::string, BeyondType>& beyond_type() const { return beyond_type_; }

 private:
  Place root_;
  std::map<std::string, Place> places_;
  std::set<std::string> bad_;
  std::map<std::string, BeyondType> beyond_type_;
};

// What a message's keys mean beside its fields; for the models of users.
struct MessageHook {
  std::string message;              // full name of the message
  std::vector<std::string> hidden;  // fields that are no keys
  std::vector<std::string> keys;    // keys that are no fields
  // By its path: a field that is refused there, though others with this message have it. It is not
  // offered where a key is wrong.
  std::function<bool(const std::string& path)> is_refused;
  std::function<void(const std::string& key, const ConfigNode& value, google::protobuf::Message*)>
      read;
};

class MessageReader {
 public:
  MessageReader(MessageHook hook, KeyPlaces* places, ProblemList* problems)
      : hook_(std::move(hook)), places_(places), problems_(problems) {}

  // `key` is the path of `node`, empty for the root.
  void Read(const ConfigNode& node, const std::string& key, google::protobuf::Message* message);

 private:
  using Field = google::protobuf::FieldDescriptor;
  std::vector<std::string> KeysOf(const google::protobuf::Descriptor* type) const;
  // Those to choose from for the message at `path`.
  std::vector<std::string> OfferedKeys(const google::protobuf::Descriptor* type,
                                       const std::string& path) const;
  std::string PathOfKey(const google::protobuf::Descriptor* type, const std::string& name,
                        const std::string& path) const;
  void Bad(const std::string& key, const Place& place, std::string message,
           std::string remedy = "");
  void UnknownKey(const ConfigEntry& entry, const std::string& key,
                  const google::protobuf::Message& message);
  void ReadEntry(const ConfigEntry& entry, const std::string& key,
                 google::protobuf::Message* message);
  void ReadField(const ConfigNode& node, const Field* field, const std::string& key,
                 google::protobuf::Message* message);
  // Reads into the singular field or, if it is repeated, adds one.
  void ReadValue(const ConfigNode& node, const Field* field, const std::string& key,
                 google::protobuf::Message* message);

  const MessageHook hook_;
  KeyPlaces* const places_;
  ProblemList* const problems_;
};

}  // namespace mu
