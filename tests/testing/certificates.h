// Certificates as deploy/make_certs.sh makes them.
#pragma once

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/env/file.h"
#include "common/env/tls_files.h"

namespace mu::testing {

class Certificates {
 public:
  explicit Certificates(int days = 2) : directory_(*TempDirectory::Create("certificates")) {
    Make(days);
  }

  // Anew, by the same authority.
  void Make(int days) const {
    const std::string made =
        absl::StrCat("deploy/make_certs.sh ", directory_.path(), " --days=", days, " >/dev/null");
    MU_CHECK(std::system(made.c_str()) == 0);
  }
  TlsFiles Of(pb::Role role) const {
    const std::string name = TlsNameOf(role);
    const std::string base = JoinPath(directory_.path(), name.substr(0, name.find('.')));
    return {.cert = base + ".crt",
            .key = base + ".key",
            .ca = JoinPath(directory_.path(), "ca.crt"),
            .reload = absl::Seconds(1)};
  }

 private:
  TempDirectory directory_;
};

}  // namespace mu::testing
