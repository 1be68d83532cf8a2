#include "common/rpc/grpc_credentials.h"

#include <grpc/grpc.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>

namespace mu {
namespace {

template <typename Options>
void Fill(const std::shared_ptr<grpc::experimental::CertificateProviderInterface>& provider,
          Options* options) {
  options->set_certificate_provider(provider);
  options->watch_identity_key_cert_pairs();
  options->watch_root_certs();
}

}  // namespace

GrpcCredentials::GrpcCredentials(const TlsFiles& files) : files_(files) {
  if (!secure()) return;
  const auto seconds = std::max<int64_t>(1, absl::ToInt64Seconds(files.reload));
  provider_ = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      files.key, files.cert, files.ca, static_cast<unsigned>(seconds));
}

std::shared_ptr<grpc::ServerCredentials> GrpcCredentials::ForServer() const {
  if (!secure()) return grpc::InsecureServerCredentials();
  grpc::experimental::TlsServerCredentialsOptions options(provider_);
  Fill(provider_, &options);
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> GrpcCredentials::ForChannel(
    pb::Role callee, grpc::ChannelArguments* arguments) const {
  if (!secure()) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  Fill(provider_, &options);
  // gRPC checks the host's name; ours is the role's, wherever it runs.
  arguments->SetSslTargetNameOverride(TlsNameOf(callee));
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace mu
