#include "repetition.hpp"

#include <string>
#include <thread>

#include "failure.hpp"
#include "pool.hpp"
#include "window.hpp"

using Clock = std::chrono::steady_clock;

namespace {

constexpr unsigned producers = 2;
/// How often the counters are looked at once all is sent: reading one takes its line from the worker that writes it.
constexpr std::chrono::microseconds look{200};
/// Time for a message that was sent twice to be handled twice.
constexpr std::chrono::milliseconds aftermath{5};

} // namespace

Repetition::Repetition(const Row& row, std::uint64_t messages, std::chrono::milliseconds patience)
    : row_(row),
      messages_(messages),
      patience_(patience),
      sending_(row.callers > 0 ? row.callers : producers),
      counters_(row.workers),
      senders_(sending_) {}

double Repetition::run() {
    // Outlives the pool, whose actors ask it.
    Window window(counters_);
    double nanos;
    {
        Pool pool(row_, counters_);
        try {
            nanos = time(pool, window);
        } catch (...) {
            senders_.give_up();
            throw;
        }
        std::this_thread::sleep_for(aftermath);
    }
    counters_.check(messages_);
    return row_.figure(messages_, nanos);
}

double Repetition::time(Pool& pool, Window& window) {
    auto start = Clock::now();
    start_senders(pool, window);
    await_senders();
    await_handled();
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

void Repetition::start_senders(Pool& pool, Window& window) {
    auto edge = [this](unsigned sender) { return messages_ * sender / sending_; };
    for (unsigned sender = 0; sender < sending_; ++sender) {
        if (row_.callers > 0)
            pool.start_caller(senders_, edge(sender), edge(sender + 1));
        else
            pool.start_producer(senders_, window, edge(sender), edge(sender + 1));
    }
}

void Repetition::await_senders() {
    auto seen = counters_.handled();
    while (!senders_.await(patience_)) {
        auto now = counters_.handled();
        if (now == seen)
            throw Failure("senders hang: nothing was handled for " + std::to_string(patience_.count()) + " ms after "
                          + std::to_string(now) + " of " + std::to_string(messages_) + " messages");
        seen = now;
    }
}

void Repetition::await_handled() {
    auto seen = counters_.handled();
    auto since = Clock::now();
    while (seen < messages_) {
        std::this_thread::sleep_for(look);
        auto now = counters_.handled();
        if (now > seen) {
            seen = now;
            since = Clock::now();
        } else if (Clock::now() - since > patience_) {
            throw Failure("lost: " + std::to_string(seen) + " of " + std::to_string(messages_)
                          + " messages were handled, and none for " + std::to_string(patience_.count()) + " ms");
        }
    }
}
