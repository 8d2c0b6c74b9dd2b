#include "os/folder_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>
#include <vector>

namespace driftwood::os {
namespace {

constexpr int kMaxLinks = 40;
constexpr size_t kMaxDepth = 256;
constexpr size_t kMaxExpandedBytes = 16 << 10;

// Splits off the first component of `rest` (without leading slashes).
std::string take_component(std::string* rest) {
  const size_t begin = rest->find_first_not_of('/');
  if (begin == std::string::npos) {
    rest->clear();
    return "";
  }
  const size_t end = rest->find('/', begin);
  std::string component = rest->substr(begin, end == std::string::npos ? std::string::npos : end - begin);
  rest->erase(0, end == std::string::npos ? rest->size() : end);
  return component;
}

class Walk {
 public:
  explicit Walk(int root) : root_(root) {}
  int run(const std::string& path, bool follow_last, Leaf* leaf);

 private:
  int current() const { return folders_.empty() ? root_ : folders_.back().get(); }
  int enter(const std::string& name);
  // Puts the link's target before what is left. EINVAL from the system if `name` is no link.
  int expand_link(const std::string& name);

  const int root_;
  std::vector<Descriptor> folders_;
  std::string rest_;
  int links_ = 0;
};

int Walk::expand_link(const std::string& name) {
  char target[PATH_MAX];
  const ssize_t length = readlinkat(current(), name.c_str(), target, sizeof target);
  if (length < 0) return errno;
  if (length == 0) return ENOENT;
  if (static_cast<size_t>(length) == sizeof target) return ENAMETOOLONG;
  if (++links_ > kMaxLinks) return ELOOP;
  if (target[0] == '/') return EXDEV;
  rest_ = std::string(target, static_cast<size_t>(length)) + rest_;
  return rest_.size() > kMaxExpandedBytes ? ENAMETOOLONG : 0;
}

int Walk::enter(const std::string& name) {
  if (name == "..") {
    if (folders_.empty()) return EXDEV;
    folders_.pop_back();
    return 0;
  }
  if (folders_.size() == kMaxDepth) return ENAMETOOLONG;
  Descriptor next(openat(current(), name.c_str(), walk_flags() | O_NOFOLLOW));
  if (next.is_open()) {
    folders_.push_back(std::move(next));
    return 0;
  }
  const int error = errno;
  if (error != ENOTDIR && error != ELOOP) return error;
  // A file, or a link: EINVAL says that it is no link.
  const int link_error = expand_link(name);
  return link_error == EINVAL ? ENOTDIR : link_error;
}

int Walk::run(const std::string& path, bool follow_last, Leaf* leaf) {
  if (path.empty()) return ENOENT;
  if (path[0] == '/') return EXDEV;
  rest_ = path;
  for (;;) {
    const std::string name = take_component(&rest_);
    const bool last = rest_.find_first_not_of('/') == std::string::npos;
    const bool slash_after = last && !rest_.empty();
    const bool through = name.empty() || name == "." || name == "..";
    if (through) {
      if (name == "..") {
        const int error = enter(name);
        if (error != 0) return error;
      }
      if (!last) continue;
      leaf->name = ".";
      leaf->folder_wanted = true;
      break;
    }
    if (last) {
      struct stat info;
      const bool exists = fstatat(current(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
      if (exists && S_ISLNK(info.st_mode) && (follow_last || slash_after)) {
        const int error = expand_link(name);
        if (error != 0) return error;
        continue;
      }
      leaf->name = name;
      leaf->folder_wanted = slash_after;
      break;
    }
    const int error = enter(name);
    if (error != 0) return error;
  }
  leaf->parent = current();
  if (!folders_.empty()) leaf->holder = std::move(folders_.back());
  return 0;
}

}  // namespace

int walk_flags() {
#ifdef O_PATH
  return O_PATH | O_DIRECTORY | O_CLOEXEC;
#else
  return O_RDONLY | O_DIRECTORY | O_CLOEXEC;
#endif
}

int find_leaf(int root, const std::string& path, bool follow_last, Leaf* leaf) {
  return Walk(root).run(path, follow_last, leaf);
}

}  // namespace driftwood::os
