// How the gRPC transport's ends prove who they are: not at all, or by mutual TLS.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>

#include "common/base/status.h"
#include "common/rpc/transport.h"

namespace mu {

class GrpcCredentials {
 public:
  explicit GrpcCredentials(const TlsFiles& files);

  bool secure() const { return files_.any(); }
  const TlsFiles& files() const { return files_; }
  std::shared_ptr<grpc::ServerCredentials> ForServer() const;
  // `arguments` gets what makes the connection fail unless the other end has the role's name.
  std::shared_ptr<grpc::ChannelCredentials> ForChannel(pb::Role callee,
                                                       grpc::ChannelArguments* arguments) const;

 private:
  const TlsFiles files_;
  std::shared_ptr<grpc::experimental::CertificateProviderInterface> provider_;  // null: not secure
};

}  // namespace mu
