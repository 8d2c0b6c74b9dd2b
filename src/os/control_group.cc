#include "os/control_group.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "os/small_file.h"

namespace driftwood::os {
namespace {

// How a version of control groups names things.
struct Version {
  const char* mount;
  const char* limit;
  const char* usage;
  const char* active_file;
  const char* inactive_file;
};
constexpr Version kVersion1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_active_file ", "total_inactive_file "};
constexpr Version kVersion2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "active_file ",
                               "inactive_file "};

constexpr size_t kMostPath = 1024;

// The text of the file that the parts of its path name together.
class SmallFile {
 public:
  SmallFile(std::initializer_list<std::string_view> parts) {
    char path[kMostPath];
    size_t length = 0;
    for (const std::string_view part : parts) {
      if (part.size() >= sizeof(path) - length) return;
      length += part.copy(path + length, part.size());
    }
    path[length] = '\0';
    text_ = read_small_file(path, space_);
  }
  std::string_view text() const { return text_; }

 private:
  char space_[4096];
  std::string_view text_;
};

void tighten(const Version& version, std::string_view root, std::string_view group, GroupMemory* memory) {
  const auto file = [&](const char* name) { return SmallFile{root, version.mount, group, "/", name}; };
  const auto limit = leading_number(file(version.limit).text());
  if (!limit.has_value() || *limit <= 0) return;
  memory->limit_bytes = std::min(memory->limit_bytes, *limit);
  const auto usage = leading_number(file(version.usage).text());
  const SmallFile stat = file("memory.stat");
  const int64_t files = number_of(stat.text(), version.active_file).value_or(0) +
                        number_of(stat.text(), version.inactive_file).value_or(0);
  const int64_t fixed = std::max<int64_t>(0, usage.value_or(0) - files);
  memory->available_bytes = std::min(memory->available_bytes, std::max<int64_t>(0, *limit - fixed));
}

// A group and all around it. A container may see its own group as the root: what is not there is skipped.
void tighten_upwards(const Version& version, std::string_view root, std::string_view group,
                     GroupMemory* memory) {
  for (size_t end = group.size(); group.starts_with('/') && end > 1; end = group.rfind('/', end - 1)) {
    tighten(version, root, group.substr(0, end), memory);
  }
  tighten(version, root, {}, memory);
}

// "4:memory:/a/b" or "6:cpu,memory:/a/b": version 1; "0::/a/b": version 2.
void read_line(std::string_view root, std::string_view line, GroupMemory* memory) {
  const size_t first = line.find(':');
  const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
  if (second == std::string_view::npos) return;
  std::string_view controllers = line.substr(first + 1, second - first - 1);
  const std::string_view group = line.substr(second + 1);
  if (controllers.empty()) return tighten_upwards(kVersion2, root, group, memory);
  while (!controllers.empty()) {
    const std::string_view one = controllers.substr(0, controllers.find(','));
    if (one == "memory") return tighten_upwards(kVersion1, root, group, memory);
    controllers.remove_prefix(std::min(controllers.size(), one.size() + 1));
  }
}

}  // namespace

GroupMemory group_memory(std::string_view root) {
  GroupMemory memory;
  const SmallFile file{root, "/proc/self/cgroup"};
  std::string_view groups = file.text();
  while (!groups.empty()) {
    const std::string_view line = groups.substr(0, groups.find('\n'));
    read_line(root, line, &memory);
    groups.remove_prefix(std::min(groups.size(), line.size() + 1));
  }
  return memory;
}

}  // namespace driftwood::os
