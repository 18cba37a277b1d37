#pragma once

#include <atomic>
#include <cstdint>

#include "counters.hpp"

/// Keeps those that send to a pool without a bound from running away: together, they have no more than a number of messages in
/// flight. They take leave for many at once, as adding up all counters takes their lines from the workers.
class Window {
public:
    /// Messages that were sent and not yet handled, at most.
    static constexpr std::uint64_t in_flight = 65'536;
    /// Messages that a sender may send at once.
    static constexpr std::uint64_t leave = 256;

    explicit Window(const Counters& counters) : counters_(counters) {}

    /// Grants leave to send `leave` messages, or does not.
    bool take();

private:
    bool has_room(std::uint64_t before);

    const Counters& counters_;
    std::atomic<std::uint64_t> granted_{0};
    std::atomic<std::uint64_t> handled_{0};
};
