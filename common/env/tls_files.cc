#include "common/env/tls_files.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"

namespace mu {
namespace {

template <auto free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};
void FreeStack(STACK_OF(X509) * stack) { sk_X509_pop_free(stack, X509_free); }
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Chain = std::unique_ptr<STACK_OF(X509), Freed<FreeStack>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Store = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;

absl::Status Wrong(const char* flag, const std::string& path, const std::string& what,
                   const std::string& remedy) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(flag, "=", path, ": ", what, "; ", remedy));
}

absl::StatusOr<Bio> Open(const char* flag, const std::string& path, std::string* contents) {
  auto read = ReadFile(path);
  if (!read.ok())
    return Wrong(flag, path, std::string(read.status().message()), "name a file that can be read");
  *contents = *std::move(read);
  return Bio(BIO_new_mem_buf(contents->data(), static_cast<int>(contents->size())));
}

// A key with a passphrase is refused: there is nobody to ask.
int NoPassphrase(char*, int, int, void*) { return -1; }

std::string TimeText(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(bio.get(), time);
  char* text = nullptr;
  const int64_t size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

absl::Status CheckChain(const TlsFiles& files, X509* own, STACK_OF(X509) * between) {
  const Store store(X509_STORE_new());
  std::string contents;
  MU_ASSIGN_OR_RETURN(const Bio bio, Open("--tls_ca", files.ca, &contents));
  int roots = 0;
  while (const Certificate root{PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr)}) {
    X509_STORE_add_cert(store.get(), root.get());
    ++roots;
  }
  if (roots == 0) {
    return Wrong("--tls_ca", files.ca, "it holds no certificate in PEM",
                 "name the file with the certificate of the authority that signs all of a job's");
  }
  const StoreContext context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), own, between);
  if (X509_verify_cert(context.get()) == 1) return absl::OkStatus();
  const int error = X509_STORE_CTX_get_error(context.get());
  std::string what = X509_verify_cert_error_string(error);
  if (error == X509_V_ERR_CERT_HAS_EXPIRED)
    absl::StrAppend(&what, " (", TimeText(X509_get0_notAfter(own)), ")");
  if (error == X509_V_ERR_CERT_NOT_YET_VALID)
    absl::StrAppend(&what, " (", TimeText(X509_get0_notBefore(own)), ")");
  return Wrong("--tls_cert", files.cert, what,
               absl::StrCat("have a new one signed by the authority of ", files.ca));
}

}  // namespace

std::string NameOf(pb::Role role) {
  if (role == pb::ROLE_COORDINATOR) return "coordinator";
  return role == pb::ROLE_WORKER ? "worker" : "psserver";
}

std::string TlsNameOf(pb::Role role) { return absl::StrCat(NameOf(role), ".muster"); }

absl::Status CheckTlsFiles(const TlsFiles& files, pb::Role role) {
  if (!files.any()) return absl::OkStatus();
  const std::pair<const char*, const std::string*> flags[] = {
      {"--tls_cert", &files.cert}, {"--tls_key", &files.key}, {"--tls_ca", &files.ca}};
  for (const auto& [flag, path] : flags) {
    if (path->empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--tls_cert, --tls_key and --tls_ca belong together: add ", flag));
    }
  }
  std::string contents;
  MU_ASSIGN_OR_RETURN(const Bio cert, Open("--tls_cert", files.cert, &contents));
  const Certificate own(PEM_read_bio_X509(cert.get(), nullptr, NoPassphrase, nullptr));
  if (own == nullptr) {
    return Wrong("--tls_cert", files.cert, "it begins with no certificate in PEM",
                 "name the file of this process's certificate");
  }
  const Chain between(sk_X509_new_null());
  while (X509* next = PEM_read_bio_X509(cert.get(), nullptr, NoPassphrase, nullptr))
    sk_X509_push(between.get(), next);
  std::string key_contents;
  MU_ASSIGN_OR_RETURN(const Bio key_file, Open("--tls_key", files.key, &key_contents));
  const Key key(PEM_read_bio_PrivateKey(key_file.get(), nullptr, NoPassphrase, nullptr));
  if (key == nullptr) {
    return Wrong("--tls_key", files.key, "it holds no private key in PEM without a passphrase",
                 absl::StrCat("name the key of ", files.cert));
  }
  if (X509_check_private_key(own.get(), key.get()) != 1) {
    return Wrong("--tls_key", files.key, absl::StrCat("it is not the key of ", files.cert),
                 "name the two files that were made together");
  }
  MU_RETURN_IF_ERROR(CheckChain(files, own.get(), between.get()));
  if (role == pb::ROLE_UNSPECIFIED) return absl::OkStatus();
  const std::string name = TlsNameOf(role);
  if (X509_check_host(own.get(), name.c_str(), name.size(),
                      X509_CHECK_FLAG_NO_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT,
                      nullptr) != 1) {
    return Wrong("--tls_cert", files.cert,
                 absl::StrCat("it has no DNS name (subject alternative name) ", name),
                 "use the certificate that was made for this role");
  }
  return absl::OkStatus();
}

}  // namespace mu
