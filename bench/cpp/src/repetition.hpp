#pragma once

#include <chrono>
#include <cstdint>

#include "counters.hpp"
#include "row.hpp"
#include "senders.hpp"

class Pool;
class Window;

/// One measurement: starts workers and senders, and waits until all has been handled.
class Repetition {
public:
    /// Fails when nothing is handled for as long as `patience`.
    Repetition(const Row& row, std::uint64_t messages, std::chrono::milliseconds patience);

    /// The figure, in the unit of the row.
    double run();

private:
    double time(Pool& pool, Window& window);
    void start_senders(Pool& pool, Window& window);
    void await_senders();
    void await_handled();

    const Row& row_;
    std::uint64_t messages_;
    std::chrono::milliseconds patience_;
    unsigned sending_;
    Counters counters_;
    Senders senders_;
};
