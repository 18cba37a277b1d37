#include "counters.hpp"

#include <string>

#include "failure.hpp"

Counter& Counters::claim() {
    auto worker = claimed_.fetch_add(1);
    if (worker >= counters_.size())
        throw Failure("worker " + std::to_string(worker) + " was started, but there are counters for "
                      + std::to_string(counters_.size()));
    return counters_[worker];
}

std::uint64_t Counters::handled() const {
    std::uint64_t sum = 0;
    for (auto& counter : counters_)
        sum += counter.handled();
    return sum;
}

void Counters::check(std::uint64_t messages) const {
    auto seen = handled();
    if (seen != messages)
        throw Failure((seen < messages ? "lost: " : "handled twice: ") + std::to_string(seen) + " of "
                      + std::to_string(messages) + " messages were handled");
    auto expected = messages % 2 == 0 ? messages / 2 * (messages - 1) : (messages - 1) / 2 * messages;
    std::uint64_t sum = 0;
    for (auto& counter : counters_)
        sum += counter.sum();
    if (sum != expected)
        throw Failure("some messages are lost and others were handled twice: their sequence numbers add up to "
                      + std::to_string(sum) + ", not to " + std::to_string(expected));
}
