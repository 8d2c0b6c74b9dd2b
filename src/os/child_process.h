// ChildProcess: another process of ours: its standard output is read line by line, and it can be killed at
// once.
//
// The child gets this process's environment with changes, an empty standard input, and our standard error.
// Destroying the object kills a child that still runs. One thread at a time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace driftwood::os {

// The running program's own file.
Result<std::string> executable_path();

class ChildProcess {
 public:
  // argv[0] is the program's path. `environment`: variables to set or replace.
  static Result<ChildProcess> start(const std::vector<std::string>& argv,
                                    const std::vector<std::pair<std::string, std::string>>& environment = {});
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  // The next line of its standard output, without the line break. out_of_range: there are no more;
  // deadline_exceeded.
  Result<std::string> read_line(int timeout_ms);
  // SIGKILL, and waits for its end.
  void kill_hard();
  // Waits for its end: the exit code, or 128 + the signal.
  int wait();

 private:
  ChildProcess(int pid, int output) : pid_(pid), output_(output) {}
  int pid_ = -1;
  int output_ = -1;
  std::string pending_;
};

}  // namespace driftwood::os
