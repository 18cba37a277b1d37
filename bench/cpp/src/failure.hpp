#pragma once

#include <stdexcept>

/// Why a repetition has no figure, in words for whoever reads the report.
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};
