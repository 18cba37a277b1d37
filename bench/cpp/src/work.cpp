#include "work.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace {

constexpr std::uint32_t calibration_turns = 2'000'000;
constexpr int measurements = 9;

} // namespace

Work Work::of_nanos(unsigned nanos) {
    static const double per_turn = nanos_per_turn();
    return Work(static_cast<std::uint32_t>(std::lround(nanos / per_turn)));
}

std::uint64_t Work::run(std::uint64_t seed) const {
    auto x = seed;
    for (std::uint32_t turn = 0; turn < turns_; ++turn) {
        x = (x ^ turn) * 6'364'136'223'846'793'005u;
        x = x << 17 | x >> 47;
    }
    return x;
}

/// The best of several measurements, as all that disturbs makes it longer.
double Work::nanos_per_turn() {
    using Clock = std::chrono::steady_clock;
    auto best = std::numeric_limits<double>::infinity();
    volatile std::uint64_t result = 1;
    for (int measurement = 0; measurement < measurements; ++measurement) {
        auto start = Clock::now();
        result = Work(calibration_turns).run(result);
        std::chrono::duration<double, std::nano> took = Clock::now() - start;
        best = std::min(best, took.count());
    }
    return best / calibration_turns;
}
