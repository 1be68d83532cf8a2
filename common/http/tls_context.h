// What OpenSSL needs of certificates for a server whose callers show one, too: kept as new as the
// files are.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/env/tls_files.h"

namespace mu {

class TlsContext {
 public:
  explicit TlsContext(TlsFiles files) : files_(std::move(files)) {}

  // Reads the files. FAILED_PRECONDITION with the file at fault; then what was read before stays.
  absl::Status Load();
  // Of a server's context, which this object must outlive: connections use the files as they are
  // when they begin.
  bool SetUp(SSL_CTX* context);

 private:
  struct Material;
  static int OnConnection(SSL* connection, void* self);
  bool Use(SSL* connection);
  // Whether it is time to look at the files; once each time.
  bool IsDue();

  const TlsFiles files_;
  Mutex mutex_;
  std::shared_ptr<const Material> material_ ABSL_GUARDED_BY(mutex_);
  absl::Time looked_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace mu
