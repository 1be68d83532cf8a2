// libFuzzer's hooks for targets whose input is a message: one to four random changes of fields,
// found by reflection. Strings stay UTF-8, since protobuf parses no others.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "tests/fuzz/structured.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace mu {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  void Mutate(Message* root) {
    for (uint64_t n = 1 + random_.Below(4); n > 0; --n) {
      messages_.clear();
      Collect(root);
      Message* const message = messages_[random_.Below(messages_.size())];
      const int fields = message->GetDescriptor()->field_count();
      if (fields == 0) continue;
      // Fields that are set are worth more than those that are not.
      std::vector<const FieldDescriptor*> set;
      message->GetReflection()->ListFields(*message, &set);
      const FieldDescriptor* const field =
          !set.empty() && random_.Below(4) != 0
              ? set[random_.Below(set.size())]
              : message->GetDescriptor()->field(static_cast<int>(random_.Below(fields)));
      if (field->is_repeated()) {
        ChangeRepeated(message, field);
      } else if (random_.Below(16) == 0) {
        message->GetReflection()->ClearField(message, field);
      } else {
        SetOne(message, field, -1);
      }
    }
  }

  // Takes a message of `other` over `root`: as another element, or in place of one of its type.
  void Cross(Message* root, Message* other) {
    if (random_.Below(3) == 0) return root->MergeFrom(*other);
    Collect(other);
    const std::vector<Message*> from = messages_;
    messages_.clear();
    Collect(root);
    for (int tries = 0; tries < 16; ++tries) {
      const Message* const a = from[random_.Below(from.size())];
      Message* const b = messages_[random_.Below(messages_.size())];
      if (b == root || a->GetDescriptor() != b->GetDescriptor()) continue;
      return b->CopyFrom(*a);
    }
  }

 private:
  void Collect(Message* message) {
    messages_.push_back(message);
    std::vector<const FieldDescriptor*> fields;
    const Reflection* const reflection = message->GetReflection();
    reflection->ListFields(*message, &fields);
    for (const FieldDescriptor* field : fields) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
      if (!field->is_repeated()) {
        Collect(reflection->MutableMessage(message, field));
        continue;
      }
      for (int i = 0; i < reflection->FieldSize(*message, field); ++i)
        Collect(reflection->MutableRepeatedMessage(message, field, i));
    }
  }

  void ChangeRepeated(Message* message, const FieldDescriptor* field) {
    const Reflection* const reflection = message->GetReflection();
    const int size = reflection->FieldSize(*message, field);
    const uint64_t what = random_.Below(size == 0 ? 1 : 5);
    const int at = size == 0 ? 0 : static_cast<int>(random_.Below(size));
    if (what == 0) {
      Add(message, field);
    } else if (what == 1) {
      reflection->SwapElements(message, field, at, size - 1);
      reflection->RemoveLast(message, field);
    } else if (what == 2) {
      reflection->SwapElements(message, field, at, static_cast<int>(random_.Below(size)));
    } else if (what == 3 && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const Message& from = reflection->GetRepeatedMessage(*message, field, at);
      reflection->AddMessage(message, field)->CopyFrom(from);
    } else {
      SetOne(message, field, at);
    }
  }

  void Add(Message* message, const FieldDescriptor* field) {
    const Reflection* const r = message->GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (const Message* like = Like(field->message_type()); like != nullptr) {
          const std::unique_ptr<Message> copy(like->New());
          copy->CopyFrom(*like);
          r->AddMessage(message, field)->CopyFrom(*copy);
        } else {
          r->AddMessage(message, field);
        }
        return;
      case FieldDescriptor::CPPTYPE_STRING:
        return r->AddString(message, field, Text(field, ""));
      case FieldDescriptor::CPPTYPE_ENUM:
        return r->AddEnumValue(message, field, Enum(field));
      case FieldDescriptor::CPPTYPE_BOOL:
        return r->AddBool(message, field, true);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return r->AddFloat(message, field, static_cast<float>(Real(1)));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return r->AddDouble(message, field, Real(1));
      case FieldDescriptor::CPPTYPE_INT32:
        return r->AddInt32(message, field, static_cast<int32_t>(Number(0)));
      case FieldDescriptor::CPPTYPE_UINT32:
        return r->AddUInt32(message, field, static_cast<uint32_t>(Number(0)));
      case FieldDescriptor::CPPTYPE_INT64:
        return r->AddInt64(message, field, static_cast<int64_t>(Number(0)));
      case FieldDescriptor::CPPTYPE_UINT64:
        return r->AddUInt64(message, field, Number(0));
    }
  }

  // The field, or element `i` of it.
  void SetOne(Message* m, const FieldDescriptor* f, int i) {
    const Reflection* const r = m->GetReflection();
    switch (f->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE: {
        // Copied first: setting a member of a oneof frees another, and it may be a part of that.
        const Message* const like = Like(f->message_type());
        const std::unique_ptr<Message> copy(like == nullptr ? nullptr : like->New());
        if (copy != nullptr) copy->CopyFrom(*like);
        Message* const to = i < 0 ? r->MutableMessage(m, f) : r->MutableRepeatedMessage(m, f, i);
        if (copy != nullptr) to->CopyFrom(*copy);
        return;
      }
      case FieldDescriptor::CPPTYPE_STRING:
        if (i < 0) return r->SetString(m, f, Text(f, r->GetString(*m, f)));
        return r->SetRepeatedString(m, f, i, Text(f, r->GetRepeatedString(*m, f, i)));
      case FieldDescriptor::CPPTYPE_ENUM:
        return i < 0 ? r->SetEnumValue(m, f, Enum(f)) : r->SetRepeatedEnumValue(m, f, i, Enum(f));
      case FieldDescriptor::CPPTYPE_BOOL:
        if (i < 0) return r->SetBool(m, f, !r->GetBool(*m, f));
        return r->SetRepeatedBool(m, f, i, !r->GetRepeatedBool(*m, f, i));
      case FieldDescriptor::CPPTYPE_FLOAT:
        if (i < 0) return r->SetFloat(m, f, static_cast<float>(Real(r->GetFloat(*m, f))));
        return r->SetRepeatedFloat(m, f, i,
                                   static_cast<float>(Real(r->GetRepeatedFloat(*m, f, i))));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        if (i < 0) return r->SetDouble(m, f, Real(r->GetDouble(*m, f)));
        return r->SetRepeatedDouble(m, f, i, Real(r->GetRepeatedDouble(*m, f, i)));
      case FieldDescriptor::CPPTYPE_INT32:
        if (i < 0) return r->SetInt32(m, f, static_cast<int32_t>(Number(r->GetInt32(*m, f))));
        return r->SetRepeatedInt32(
            m, f, i,
            static_cast<int32_t>(Number(static_cast<uint64_t>(r->GetRepeatedInt32(*m, f, i)))));
      case FieldDescriptor::CPPTYPE_UINT32:
        if (i < 0) return r->SetUInt32(m, f, static_cast<uint32_t>(Number(r->GetUInt32(*m, f))));
        return r->SetRepeatedUInt32(m, f, i,
                                    static_cast<uint32_t>(Number(r->GetRepeatedUInt32(*m, f, i))));
      case FieldDescriptor::CPPTYPE_INT64:
        if (i < 0)
          return r->SetInt64(
              m, f, static_cast<int64_t>(Number(static_cast<uint64_t>(r->GetInt64(*m, f)))));
        return r->SetRepeatedInt64(
            m, f, i,
            static_cast<int64_t>(Number(static_cast<uint64_t>(r->GetRepeatedInt64(*m, f, i)))));
      case FieldDescriptor::CPPTYPE_UINT64:
        if (i < 0) return r->SetUInt64(m, f, Number(r->GetUInt64(*m, f)));
        return r->SetRepeatedUInt64(m, f, i, Number(r->GetRepeatedUInt64(*m, f, i)));
    }
  }

  // Another message of this type; null if there is none or a new one is as good.
  const Message* Like(const google::protobuf::Descriptor* type) {
    std::vector<const Message*> found;
    for (const Message* message : messages_) {
      if (message->GetDescriptor() == type) found.push_back(message);
    }
    return found.empty() || random_.Below(4) == 0 ? nullptr : found[random_.Below(found.size())];
  }

  int Enum(const FieldDescriptor* field) {
    if (random_.Below(16) == 0) return static_cast<int>(random_.Below(64));
    const auto* type = field->enum_type();
    return type->value(static_cast<int>(random_.Below(type->value_count())))->number();
  }

  uint64_t Number(uint64_t now) {
    switch (random_.Below(6)) {
      case 0:
        return now + 1;
      case 1:
        return now - 1;
      case 2:
        return random_.Below(10);
      case 3:
        return now ^ (uint64_t{1} << random_.Below(64));
      case 4:  // around a power of two, or its negative
        return ((uint64_t{1} << random_.Below(64)) + random_.Below(3) - 1) *
               (random_.Below(3) == 0 ? ~uint64_t{0} : 1);
      default:
        return random_.Below(4) == 0 ? random_.Next() : 0;
    }
  }

  double Real(double now) {
    constexpr double kSpecial[] = {0,
                                   -0.0,
                                   1,
                                   -1,
                                   3.5e38,
                                   -3.5e38,
                                   1e-45,
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()};
    switch (random_.Below(3)) {
      case 0:
        return now * 2 * random_.Unit();
      case 1:
        return -now + 1;
      default:
        return kSpecial[random_.Below(std::size(kSpecial))];
    }
  }

  std::string Text(const FieldDescriptor* field, std::string now) {
    // Names refer to each other: often one that is elsewhere.
    if (random_.Below(3) == 0) {
      std::vector<std::string> found;
      for (const Message* message : messages_) {
        std::vector<const FieldDescriptor*> fields;
        message->GetReflection()->ListFields(*message, &fields);
        for (const FieldDescriptor* f : fields) {
          if (f->type() == field->type() && !f->is_repeated())
            found.push_back(message->GetReflection()->GetString(*message, f));
        }
      }
      if (!found.empty()) return found[random_.Below(found.size())];
    }
    const size_t before = now.size();
    now.resize(before + 64);
    now.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(now.data()), before, now.size()));
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      for (char& c : now) c = static_cast<char>(c & 0x7F);
    }
    return now;
  }

  SplitMix random_;
  std::vector<Message*> messages_;
};

size_t Write(const Message& message, uint8_t* data, size_t size, size_t max_size) {
  const size_t bytes = message.ByteSizeLong();
  if (bytes > max_size) return size;
  message.SerializeWithCachedSizesToArray(data);
  return bytes;
}

}  // namespace
}  // namespace mu

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  const std::unique_ptr<google::protobuf::Message> message(mu::FuzzPrototype().New());
  if (!message->ParseFromArray(data, static_cast<int>(size))) message->Clear();
  mu::Mutator(seed).Mutate(message.get());
  return mu::Write(*message, data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1,
                                            const uint8_t* data2, size_t size2, uint8_t* out,
                                            size_t max_out_size, unsigned int seed) {
  const std::unique_ptr<google::protobuf::Message> a(mu::FuzzPrototype().New());
  const std::unique_ptr<google::protobuf::Message> b(mu::FuzzPrototype().New());
  if (!a->ParseFromArray(data1, static_cast<int>(size1)) ||
      !b->ParseFromArray(data2, static_cast<int>(size2))) {
    return 0;
  }
  mu::Mutator(seed).Cross(a.get(), b.get());
  return mu::Write(*a, out, 0, max_out_size);
}
