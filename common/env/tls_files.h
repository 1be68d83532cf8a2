// The files that mutual TLS needs, who their certificate speaks for, and what is wrong with them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/status.h"

namespace mu {

// Paths of PEM files. All empty: calls are neither encrypted nor authenticated.
struct TlsFiles {
  std::string cert;  // ours first, then those between it and the CA's
  std::string key;   // of the first, without a passphrase
  std::string ca;    // whose certificates are believed
  // How often they are looked at: what has changed is used for connections from then on.
  absl::Duration reload = absl::Seconds(10);

  bool any() const { return !cert.empty() || !key.empty() || !ca.empty(); }
};

// "coordinator", "worker" or "psserver": its program.
std::string NameOf(pb::Role role);

// The name that a certificate must have (DNS, subject alternative name) to speak for a role:
// "coordinator.muster", "worker.muster", "psserver.muster". Machines come and go and share their
// certificates, so it is no machine's.
std::string TlsNameOf(pb::Role role);  // of a known role

// Whether a process of this role (ROLE_UNSPECIFIED: of any) can use them now. INVALID_ARGUMENT with
// the flag or file, what is wrong (missing, no PEM, another key, expired, of another CA, without
// the role's name) and what to do. Says nothing of files that are all empty.
absl::Status CheckTlsFiles(const TlsFiles& files, pb::Role role);

}  // namespace mu
