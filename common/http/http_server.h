// A small HTTP server for pages that a process makes of itself: no files, no bodies of requests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/env/tls_files.h"

namespace mu {

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

struct HttpRequest {
  std::string url;  // of the server, as the caller named it: "https://coordinator:9100"
};
using HttpPage = std::function<HttpReply(const HttpRequest&)>;

struct HttpServerOptions {
  std::string listen;  // host:port, port 0 for any
  // All empty: plain HTTP. Otherwise HTTPS; the caller must show a certificate of the same
  // authority, of whichever name. Files that change are used for connections from then on.
  TlsFiles tls;
  absl::Duration patience = absl::Seconds(2);  // with a caller who says nothing
  std::map<std::string, HttpPage> pages;       // by path; called from any thread
};

class HttpServer {
 public:
  // UNAVAILABLE if the address cannot be bound; what is wrong with the certificates.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpServerOptions options);
  ~HttpServer();  // no page is being made any more
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // With the port that was bound.
  const std::string& address() const;
  bool secure() const;
  std::string url() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace mu
