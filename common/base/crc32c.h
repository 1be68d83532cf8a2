// CRC32C (Castagnoli), as in RFC 3720 and every storage format of the field.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mu {

// Extends `crc` (0 for an empty prefix) with `size` bytes. Uses the processor's instruction
// (SSE 4.2).
uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t size);
inline uint32_t Crc32c(const void* data, size_t size) { return ExtendCrc32c(0, data, size); }

// As TFRecord files hold it, so that a checksum of bytes that hold checksums is no trivial number
// (TensorFlow, record_writer).
inline uint32_t MaskedCrc32c(const void* data, size_t size) {
  const uint32_t crc = Crc32c(data, size);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

}  // namespace mu
