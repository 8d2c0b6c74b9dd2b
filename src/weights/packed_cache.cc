#include "weights/packed_cache.h"

#include <algorithm>
#include <cstring>

#include "os/atomic_file.h"

namespace driftwood::weights {
namespace {

constexpr char kMagic[8] = {'D', 'W', 'P', 'A', 'C', 'K', '\r', '\n'};
constexpr uint32_t kCacheVersion = 1;

// Header: this, then for each section (matrices, then the vectors) offset, size, checksum as u64, then
// SHA-256 of all of it. Little-endian.
struct FixedHeader {
  char magic[8];
  uint32_t cache_version;
  uint32_t layout_version;
  uint64_t total_bytes;
  uint64_t sections;
  uint8_t fingerprint[32];  // of the fingerprint's text
  uint8_t stamp[32];        // of the source files' stamp
  uint8_t requests[32];
};
static_assert(sizeof(FixedHeader) == 128);

struct Section {
  uint64_t offset;
  uint64_t size_bytes;
  uint64_t checksum;
};
static_assert(sizeof(Section) == 24);

Sha256Digest digest_of(const std::string& text) {
  return sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

FixedHeader fixed_header(const ImagePlan& plan) {
  FixedHeader h{};
  std::memcpy(h.magic, kMagic, sizeof(kMagic));
  h.cache_version = kCacheVersion;
  h.layout_version = kPackedLayoutVersion;
  h.total_bytes = plan.total_bytes;
  h.sections = plan.matrices.size() + 1;
  const Sha256Digest fingerprint = digest_of(plan.checkpoint->fingerprint_hex());
  const Sha256Digest stamp = digest_of(plan.checkpoint->file_stamp());
  std::copy(fingerprint.begin(), fingerprint.end(), h.fingerprint);
  std::copy(stamp.begin(), stamp.end(), h.stamp);
  std::copy(plan.request_hash.begin(), plan.request_hash.end(), h.requests);
  return h;
}

std::vector<Section> sections_of(const ImagePlan& plan) {
  std::vector<Section> sections;
  for (const ImageMatrix& m : plan.matrices) sections.push_back({m.offset, m.size_bytes, 0});
  sections.push_back({plan.vectors_offset, plan.vectors_bytes, 0});
  return sections;
}

void write_header(const ImagePlan& plan, int threads, uint8_t* image) {
  const FixedHeader fixed = fixed_header(plan);
  std::vector<Section> sections = sections_of(plan);
  const std::vector<uint64_t> sums = image_checksums(plan, threads, image);
  for (size_t i = 0; i < sections.size(); ++i) sections[i].checksum = sums[i];
  std::memcpy(image, &fixed, sizeof(fixed));
  std::memcpy(image + sizeof(fixed), sections.data(), sections.size() * sizeof(Section));
  const size_t hashed = sizeof(fixed) + sections.size() * sizeof(Section);
  const Sha256Digest digest = sha256({image, hashed});
  std::memcpy(image + hashed, digest.data(), digest.size());
}

Status check_header(const ImagePlan& plan, std::span<const uint8_t> bytes, std::vector<Section>* found) {
  const FixedHeader want = fixed_header(plan);
  FixedHeader have;
  if (bytes.size() != plan.total_bytes) {
    return data_loss("it has " + std::to_string(bytes.size()) + " bytes instead of " +
                     std::to_string(plan.total_bytes));
  }
  std::memcpy(&have, bytes.data(), sizeof(have));
  if (std::memcmp(have.magic, want.magic, sizeof(have.magic)) != 0)
    return data_loss("it is not a packed cache file");
  if (have.cache_version != want.cache_version || have.layout_version != want.layout_version) {
    return failed_precondition("another version of the packed layout wrote it");
  }
  if (std::memcmp(have.fingerprint, want.fingerprint, 32) != 0)
    return failed_precondition("it is another model's");
  if (std::memcmp(have.requests, want.requests, 32) != 0)
    return failed_precondition("it holds other matrices");
  if (std::memcmp(have.stamp, want.stamp, 32) != 0) {
    return failed_precondition("the model's files were replaced or written to since");
  }
  if (have.total_bytes != want.total_bytes || have.sections != want.sections)
    return data_loss("its sizes are wrong");

  std::vector<Section> sections = sections_of(plan);
  const size_t hashed = sizeof(have) + sections.size() * sizeof(Section);
  const Sha256Digest digest = sha256(bytes.first(hashed));
  if (std::memcmp(bytes.data() + hashed, digest.data(), digest.size()) != 0) {
    return data_loss("its header's checksum is wrong");
  }
  found->resize(sections.size());
  std::memcpy(found->data(), bytes.data() + sizeof(have), sections.size() * sizeof(Section));
  for (size_t i = 0; i < sections.size(); ++i) {
    if ((*found)[i].offset != sections[i].offset || (*found)[i].size_bytes != sections[i].size_bytes) {
      return data_loss("its section " + std::to_string(i) + " lies elsewhere");
    }
  }
  return Status::ok();
}

}  // namespace

uint64_t cache_header_bytes(size_t matrices) {
  return sizeof(FixedHeader) + (matrices + 1) * sizeof(Section) + sizeof(Sha256Digest);
}

std::string cache_path(const ImagePlan& plan, const std::string& cache_dir) {
  const std::string requests = hex(plan.request_hash);
  return cache_dir + "/packed/" + plan.checkpoint->fingerprint_hex().substr(0, 32) + "-" +
         requests.substr(0, 16) + ".dwpack";
}

Result<std::shared_ptr<const os::MappedFile>> open_cache(const ImagePlan& plan, const std::string& path,
                                                         bool verify, int threads) {
  DW_ASSIGN_OR_RETURN(auto file, os::MappedFile::open(path, {.keep_descriptor = true}));
  if (file->stamp().owner != os::effective_user())
    return permission_denied(path + ": belongs to another user");
  if ((file->stamp().mode & 022u) != 0) return permission_denied(path + ": others may write to it");
  std::vector<Section> sections;
  if (Status status = check_header(plan, file->bytes(), &sections); !status.is_ok()) {
    return status.with_context(path);
  }
  if (verify) {
    const std::vector<uint64_t> sums = image_checksums(plan, threads, file->bytes().data());
    for (size_t i = 0; i < sums.size(); ++i) {
      if (sums[i] == sections[i].checksum) continue;
      const std::string what =
          i < plan.matrices.size() ? "'" + plan.matrices[i].plan.key + "'" : "the vectors";
      return data_loss(path + ": the checksum of " + what + " is wrong");
    }
  }
  return file;
}

Status write_cache(const ImagePlan& plan, const std::string& path, int threads) {
  const std::string folder = path.substr(0, path.rfind('/'));
  DW_RETURN_IF_ERROR(os::make_private_folders(folder));
  os::remove_abandoned_files(folder);  // each may have the size of a model
  DW_ASSIGN_OR_RETURN(os::AtomicFile file, os::AtomicFile::create(path, os::FileAccess::kPrivate));
  DW_ASSIGN_OR_RETURN(os::MappedMemory image, file.map_for_writing(plan.total_bytes));
  DW_RETURN_IF_ERROR(fill_image(plan, threads, image.data()));
  write_header(plan, threads, image.data());
  return file.commit();
}

}  // namespace driftwood::weights
