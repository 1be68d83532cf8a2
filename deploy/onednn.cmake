# DNNL::dnnl from Debian's libdnnl-dev. Its own package file wants OpenCL's headers, which nothing here uses. OpenMP's
# runtime (gomp) is what Debian's oneDNN is linked with; common/exec/onednn_conv.cc tells it to use one thread.
if(NOT TARGET DNNL::dnnl)
  find_path(DNNL_INCLUDE_DIR dnnl.hpp)
  find_library(DNNL_LIBRARY dnnl)
  if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
    add_library(DNNL::dnnl UNKNOWN IMPORTED GLOBAL)
    set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                          INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR} INTERFACE_LINK_LIBRARIES gomp)
  endif()
endif()
