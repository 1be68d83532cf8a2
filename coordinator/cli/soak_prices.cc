#include "coordinator/cli/soak_prices.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/nearest_name.h"
#include "coordinator/cli/config_node.h"
#include "coordinator/cli/scalar.h"

namespace mu {
namespace {

constexpr char kExample[] = "write worker: {on_demand: 0.40, preemptible: 0.12}";

// Entries with other keys are problems.
void CheckKeys(const ConfigNode& node, const std::vector<std::string>& keys,
               ProblemList* problems) {
  for (const ConfigEntry& entry : node.entries) {
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) {
      problems->Add(entry.key_place, absl::StrCat("there is no key `", entry.key, "` here",
                                                  DidYouMean(entry.key, keys)));
    }
  }
}

std::optional<double> PriceOf(const ConfigNode& role, const std::string& key,
                              ProblemList* problems) {
  const ConfigNode* node = role.Find(key);
  if (node == nullptr) return std::nullopt;
  const auto price =
      node->kind == ConfigNode::kScalar ? ParseDouble(node->text) : absl::InvalidArgumentError("");
  if (price.ok() && *price >= 0) return *price;
  if (node->kind != ConfigNode::kInvalid) {
    problems->Add(
        node->place,
        absl::StrCat("`", key, "` must be the price of a machine for an hour, from 0, not ",
                     node->Describe()));
  }
  return std::nullopt;
}

MachinePrice RoleOf(const ConfigNode& root, const std::string& role, ProblemList* problems) {
  MachinePrice price;
  const ConfigNode* node = root.Find(role);
  if (node == nullptr) {
    problems->Add(root.place, absl::StrCat("the prices of `", role, "` are missing"), kExample);
    return price;
  }
  if (node->kind != ConfigNode::kMap) {
    if (node->kind != ConfigNode::kInvalid) {
      problems->Add(node->place, absl::StrCat("`", role, "` must be a map, not ", node->Describe()),
                    kExample);
    }
    return price;
  }
  CheckKeys(*node, {"on_demand", "preemptible"}, problems);
  if (node->Find("on_demand") == nullptr)
    problems->Add(node->place, absl::StrCat("`", role, "` lacks `on_demand`"), kExample);
  price.on_demand = PriceOf(*node, "on_demand", problems).value_or(0);
  price.preemptible = PriceOf(*node, "preemptible", problems);
  return price;
}

}  // namespace

SoakPrices ParsePrices(const std::string& text, const std::string& source, ProblemList* problems) {
  SoakPrices prices;
  const size_t before = problems->size();
  const ConfigNode root = ParseConfig(text, source, /*whole=*/false, problems);
  if (problems->size() > before && root.kind != ConfigNode::kMap) return prices;
  if (root.kind != ConfigNode::kMap) {
    problems->Add(Place{source, 1, 1}, "there are no prices", kExample);
    return prices;
  }
  CheckKeys(root, {"currency", "coordinator", "worker", "ps"}, problems);
  if (const ConfigNode* currency = root.Find("currency"); currency != nullptr) {
    if (currency->kind == ConfigNode::kScalar) {
      prices.currency = currency->text;
    } else if (currency->kind != ConfigNode::kInvalid) {
      problems->Add(currency->place,
                    absl::StrCat("`currency` must be a text, not ", currency->Describe()));
    }
  }
  prices.coordinator = RoleOf(root, "coordinator", problems);
  prices.worker = RoleOf(root, "worker", problems);
  prices.ps = RoleOf(root, "ps", problems);
  return prices;
}

}  // namespace mu
