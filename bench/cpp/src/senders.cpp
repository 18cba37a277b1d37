#include "senders.hpp"

#include "failure.hpp"

void Senders::finished() {
    std::lock_guard guard(mutex_);
    --left_;
    changed_.notify_all();
}

void Senders::failed(std::string why) {
    std::lock_guard guard(mutex_);
    failure_ = std::move(why);
    changed_.notify_all();
}

bool Senders::await(std::chrono::milliseconds patience) {
    std::unique_lock guard(mutex_);
    auto all = changed_.wait_for(guard, patience, [this] { return left_ == 0 || !failure_.empty(); });
    if (!failure_.empty())
        throw Failure("a sender failed: " + failure_);
    return all;
}
