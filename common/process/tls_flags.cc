#include "common/process/tls_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "common/process/daemon.h"

namespace mu {

void AddTlsFlags(CLI::App* app, TlsFiles* files) {
  app->add_option("--tls_cert,--tls-cert", files->cert,
                  "Certificate of this process's role (PEM), for mutual TLS; read again when it "
                  "changes")
      ->type_name("FILE");
  app->add_option("--tls_key,--tls-key", files->key, "Its key (PEM, no passphrase)")
      ->type_name("FILE");
  app->add_option("--tls_ca,--tls-ca", files->ca,
                  "Certificate of the authority that signs all of the job's (PEM)")
      ->type_name("FILE");
}

absl::Status CheckListening(const std::string& listen, const TlsFiles& tls, bool insecure,
                            pb::Role role) {
  MU_RETURN_IF_ERROR(CheckAddress("--listen", listen));
  MU_RETURN_IF_ERROR(CheckTlsFiles(tls, role));
  if (tls.any() || insecure || IsLoopback(listen)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--listen=", listen,
                   " is reachable from other machines, and calls would be neither encrypted nor "
                   "authenticated; add --tls_cert, --tls_key and --tls_ca, or listen on "
                   "127.0.0.1, or, in a network you trust, add --insecure"));
}

}  // namespace mu
