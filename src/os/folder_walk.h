// The walk beneath a folder: from a path to an open parent folder and the last name in it (see folder.h).
#pragma once

#include <string>

#include "os/descriptor.h"

namespace driftwood::os {

struct Leaf {
  Descriptor holder;   // keeps `parent` open unless that is the root itself
  int parent = -1;
  std::string name;    // one component, perhaps "."; a link only if follow_last was false
  bool folder_wanted = false;  // the path ended in a slash, "." or ".."
};

int find_leaf(int root, const std::string& path, bool follow_last, Leaf* leaf);

// Opens flags for a folder that is only walked through.
int walk_flags();

}  // namespace driftwood::os
