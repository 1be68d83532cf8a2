#include "common/env/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/certificates.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::Certificates;
using ::mu::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename... Part>
auto Refused(Part... parts) {
  return StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(parts)...));
}

TEST(TlsFiles, TakesWhatBelongsTogether) {
  const Certificates certificates;
  for (const pb::Role role : {pb::ROLE_COORDINATOR, pb::ROLE_WORKER, pb::ROLE_PSSERVER}) {
    MU_EXPECT_OK(CheckTlsFiles(certificates.Of(role), role));
    MU_EXPECT_OK(CheckTlsFiles(certificates.Of(role), pb::ROLE_UNSPECIFIED));
  }
  MU_EXPECT_OK(CheckTlsFiles({}, pb::ROLE_WORKER));
}

TEST(TlsFiles, WantsAllThree) {
  TlsFiles files = Certificates().Of(pb::ROLE_WORKER);
  files.ca.clear();
  EXPECT_THAT(CheckTlsFiles(files, pb::ROLE_WORKER), Refused("add --tls_ca"));
}

TEST(TlsFiles, SaysWhichFileIsNone) {
  const Certificates certificates;
  const TlsFiles good = certificates.Of(pb::ROLE_WORKER);
  TlsFiles files = good;
  files.cert = "/nowhere/worker.crt";
  EXPECT_THAT(CheckTlsFiles(files, pb::ROLE_WORKER), Refused("--tls_cert=/nowhere/worker.crt"));
  files = good;
  files.cert = files.key;
  EXPECT_THAT(CheckTlsFiles(files, pb::ROLE_WORKER), Refused("--tls_cert=", "no certificate"));
  files = good;
  files.key = files.cert;
  EXPECT_THAT(CheckTlsFiles(files, pb::ROLE_WORKER), Refused("--tls_key=", "no private key"));
  files = good;
  files.ca = files.key;
  EXPECT_THAT(CheckTlsFiles(files, pb::ROLE_WORKER), Refused("--tls_ca=", "no certificate"));
}

TEST(TlsFiles, TheKeyIsTheCertificates) {
  const Certificates certificates;
  TlsFiles files = certificates.Of(pb::ROLE_WORKER);
  files.key = certificates.Of(pb::ROLE_PSSERVER).key;
  EXPECT_THAT(CheckTlsFiles(files, pb::ROLE_WORKER), Refused("--tls_key=", "not the key of"));
}

TEST(TlsFiles, AnotherRolesCertificateIsRefused) {
  const Certificates certificates;
  EXPECT_THAT(CheckTlsFiles(certificates.Of(pb::ROLE_WORKER), pb::ROLE_PSSERVER),
              Refused("--tls_cert=", "psserver.muster"));
}

TEST(TlsFiles, AnotherAuthoritysCertificateIsRefused) {
  const Certificates certificates, others;
  TlsFiles files = certificates.Of(pb::ROLE_WORKER);
  files.ca = others.Of(pb::ROLE_WORKER).ca;
  EXPECT_THAT(CheckTlsFiles(files, pb::ROLE_WORKER), Refused("--tls_cert=", "have a new one"));
}

TEST(TlsFiles, AnExpiredCertificateIsRefusedWithItsDate) {
  const Certificates certificates(/*days=*/-1);
  EXPECT_THAT(CheckTlsFiles(certificates.Of(pb::ROLE_WORKER), pb::ROLE_WORKER),
              Refused("has expired", "GMT"));
}

}  // namespace
}  // namespace mu
