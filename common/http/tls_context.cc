#include "common/http/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/steady_now.h"
#include "common/env/file.h"
#include "common/obs/log.h"
#include "common/obs/tls_refusals.h"

namespace mu {
namespace {

template <typename T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* object) const { Free(object); }
};
using X509Ptr = std::unique_ptr<X509, Deleter<X509, X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY, EVP_PKEY_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Deleter<X509_STORE, X509_STORE_free>>;
using BioPtr = std::unique_ptr<BIO, Deleter<BIO, BIO_free_all>>;

BioPtr Memory(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::vector<X509Ptr> Certificates(const std::string& pem) {
  std::vector<X509Ptr> found;
  const BioPtr bio = Memory(pem);
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr))
    found.emplace_back(one);
  return found;
}

// A passphrase is asked of nobody.
int NoPassphrase(char*, int, int, void*) { return 0; }

// What a fatal alert of the handshake says, whichever end has found the other one at fault.
std::string WhyRefused(const SSL* connection, bool ours, int alert) {
  if (!ours) return absl::StrCat("The caller refused ours: ", SSL_alert_desc_string_long(alert));
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  const auto verified = SSL_get_verify_result(connection);
  return absl::StrCat(
      "HTTPS: ", reason != nullptr ? reason : SSL_alert_desc_string_long(alert),
      verified == X509_V_OK ? "" : absl::StrCat(": ", X509_verify_cert_error_string(verified)));
}

void OnInfo(const SSL* connection, int what, int alert) {
  if ((what & SSL_CB_ALERT) == 0 || alert >> 8 != SSL3_AL_FATAL || !SSL_in_init(connection)) return;
  ReportRefusedByTls("http", WhyRefused(connection, (what & SSL_CB_WRITE) != 0, alert));
}

absl::Status Unusable(const std::string& file, const char* what) {
  return absl::FailedPreconditionError(absl::StrCat(file, " holds no ", what, " (PEM)"));
}

}  // namespace

struct TlsContext::Material {
  std::vector<X509Ptr> chain;  // ours first
  KeyPtr key;
  StorePtr authorities;
};

absl::Status TlsContext::Load() {
  auto material = std::make_shared<Material>();
  MU_ASSIGN_OR_RETURN(const std::string chain, ReadFile(files_.cert));
  MU_ASSIGN_OR_RETURN(const std::string key, ReadFile(files_.key));
  MU_ASSIGN_OR_RETURN(const std::string authorities, ReadFile(files_.ca));
  material->chain = Certificates(chain);
  if (material->chain.empty()) return Unusable(files_.cert, "certificate");
  material->key.reset(PEM_read_bio_PrivateKey(Memory(key).get(), nullptr, NoPassphrase, nullptr));
  if (material->key == nullptr) return Unusable(files_.key, "key");
  if (X509_check_private_key(material->chain[0].get(), material->key.get()) != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat(files_.key, " is not the key of ", files_.cert));
  }
  const std::vector<X509Ptr> trusted = Certificates(authorities);
  if (trusted.empty()) return Unusable(files_.ca, "certificate");
  material->authorities.reset(X509_STORE_new());
  for (const X509Ptr& one : trusted) X509_STORE_add_cert(material->authorities.get(), one.get());
  MutexLock lock(&mutex_);
  material_ = std::move(material);
  return absl::OkStatus();
}

bool TlsContext::SetUp(SSL_CTX* context) {
  RefusedByTls("http");
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // A session that goes on would keep a certificate that is not good any more.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_info_callback(context, &OnInfo);
  SSL_CTX_set_cert_cb(context, &TlsContext::OnConnection, this);
  return true;
}

bool TlsContext::IsDue() {
  MutexLock lock(&mutex_);
  const absl::Time now = SteadyNow();
  if (now - looked_ < files_.reload) return false;
  looked_ = now;
  return true;
}

int TlsContext::OnConnection(SSL* connection, void* self) {
  return static_cast<TlsContext*>(self)->Use(connection) ? 1 : 0;
}

bool TlsContext::Use(SSL* connection) {
  // Half of a renewal is no reason to end; a later connection sees the whole of it.
  if (IsDue()) {
    if (const absl::Status loaded = Load(); !loaded.ok())
      MU_LOG(WARN, "HTTPS goes on with the certificate that it had: {}", loaded.message());
  }
  std::shared_ptr<const Material> material;
  {
    MutexLock lock(&mutex_);
    material = material_;
  }
  // What reading left in the queue of errors would be taken for one of this connection.
  ERR_clear_error();
  SSL_certs_clear(connection);
  if (SSL_use_certificate(connection, material->chain[0].get()) != 1) return false;
  for (size_t i = 1; i < material->chain.size(); ++i) {
    if (SSL_add1_chain_cert(connection, material->chain[i].get()) != 1) return false;
  }
  return SSL_use_PrivateKey(connection, material->key.get()) == 1 &&
         SSL_set1_verify_cert_store(connection, material->authorities.get()) == 1;
}

}  // namespace mu
