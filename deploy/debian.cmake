# Two Debian packages from the components of CMakeLists.txt; deploy/deb.sh builds them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME muster)
set(CPACK_PACKAGE_VENDOR Muster)
set(CPACK_PACKAGE_CONTACT "Muster developers <muster@example.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL programs development)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME muster)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONFLICTS worker)  # a manager of files, also /usr/bin/worker
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS openssl)  # for make_certs.sh
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_SOURCE_DIR}/debian/postinst)
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION "Parameter-server training: coordinator, worker, psserver
 The three programs, systemd units, jobs and Kubernetes manifests.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libmuster-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
# What muster-config.cmake looks for, and the programs that --local starts.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "muster (= ${PROJECT_VERSION}), libabsl-dev, libprotobuf-dev, protobuf-compiler, libgrpc++-dev, protobuf-compiler-grpc, libspdlog-dev, libyaml-cpp-dev, zlib1g-dev, libssl-dev, libzstd-dev, libcpp-httplib-dev, prometheus-cpp-dev, libdnnl-dev, pkg-config")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Parameter-server training: libraries and headers
 For programs with models of their own: find_package(muster).")
include(CPack)
