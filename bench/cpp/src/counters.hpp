#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

/// What one worker has handled. It has one writer, and lines of its own: two, as processors fetch them in pairs.
class alignas(128) Counter {
public:
    void add(std::uint64_t seq, std::uint64_t result) {
        sink_ = sink_ ^ result;
        sum_.store(sum_.load(std::memory_order_relaxed) + seq, std::memory_order_release);
        handled_.store(handled_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

    std::uint64_t handled() const { return handled_.load(std::memory_order_acquire); }
    std::uint64_t sum() const { return sum_.load(std::memory_order_acquire); }

private:
    std::atomic<std::uint64_t> handled_{0};
    /// Of sequence numbers.
    std::atomic<std::uint64_t> sum_{0};
    /// Results that must not be optimized away.
    volatile std::uint64_t sink_ = 0;
};

/// One counter for each worker.
class Counters {
public:
    explicit Counters(std::size_t workers) : counters_(workers) {}

    /// The counter of a worker that has none yet.
    Counter& claim();
    std::uint64_t handled() const;
    /// Fails unless each of the messages 0 to `messages` was handled once, as far as their number and sum can tell.
    void check(std::uint64_t messages) const;

private:
    std::vector<Counter> counters_;
    std::atomic<std::size_t> claimed_{0};
};
