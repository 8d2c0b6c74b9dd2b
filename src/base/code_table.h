// One table maps an error code to what each edge shows: HTTP status, process exit code, guest error number.
// A test walks it: every code has a row, guest numbers are distinct and negative, ok is 0 / 200.
#pragma once

#include <span>

#include "base/status.h"

namespace driftwood {

struct CodeRow {
  Code code;
  int http_status;
  int exit_code;    // sysexits where one fits
  int guest_error;  // what a host call returns to a guest; 0 for ok
};

std::span<const CodeRow> code_table();
const CodeRow& code_row(Code code);

}  // namespace driftwood
