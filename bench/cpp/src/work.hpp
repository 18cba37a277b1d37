#pragma once

#include <cstdint>

/// Arithmetic of a known length that depends on itself, so that neither compiler nor processor can shorten it.
class Work {
public:
    /// Calibrates when it is first called.
    static Work of_nanos(unsigned nanos);
    /// Returns a number that has to be used, or the work may be left out.
    std::uint64_t run(std::uint64_t seed) const;

private:
    explicit Work(std::uint32_t turns) : turns_(turns) {}
    static double nanos_per_turn();

    std::uint32_t turns_;
};
