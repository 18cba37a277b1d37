#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

/// All that send in one repetition: how many have yet to finish, whether one has failed, and whether they should give up.
class Senders {
public:
    explicit Senders(unsigned count) : left_(count) {}

    void finished();
    void failed(std::string why);
    void give_up() { given_up_.store(true); }
    bool given_up() const { return given_up_.load(std::memory_order_relaxed); }
    /// Waits for all to finish; false when they have not within this time. Throws what one has failed for.
    bool await(std::chrono::milliseconds patience);

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    unsigned left_;
    std::string failure_;
    std::atomic<bool> given_up_{false};
};
