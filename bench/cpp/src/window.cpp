#include "window.hpp"

bool Window::take() {
    auto before = granted_.load();
    return has_room(before) && granted_.compare_exchange_strong(before, before + leave);
}

bool Window::has_room(std::uint64_t before) {
    if (before + leave <= handled_.load() + in_flight)
        return true;
    auto handled = counters_.handled();
    handled_.store(handled);
    return before + leave <= handled + in_flight;
}
