// Facts on the parts that decide whether a figure may be trusted.

#include <cstdio>
#include <functional>

#include "counters.hpp"
#include "failure.hpp"
#include "repetition.hpp"
#include "row.hpp"
#include "senders.hpp"
#include "window.hpp"

namespace {

int failures = 0;

void fact(const char* name, bool holds) {
    if (holds)
        return;
    std::fprintf(stderr, "does not hold: %s\n", name);
    ++failures;
}

bool fails(const std::function<void()>& action) {
    try {
        action();
        return false;
    } catch (const Failure&) {
        return true;
    }
}

void counters_tell_lost_and_doubled_messages() {
    Counters counters(2);
    auto& first = counters.claim();
    auto& second = counters.claim();
    first.add(0, 7);
    second.add(1, 7);
    fact("all handled once passes", !fails([&] { counters.check(2); }));
    fact("a lost message fails", fails([&] { counters.check(3); }));
    second.add(1, 7);
    fact("a message handled twice fails", fails([&] { counters.check(2); }));
    fact("one lost and another handled twice fails", fails([&] { counters.check(3); }));
    fact("a third worker has no counter", fails([&] { counters.claim(); }));
}

void window_shuts_at_its_bound_and_opens_again() {
    Counters counters(1);
    auto& counter = counters.claim();
    Window window(counters);
    std::uint64_t granted = 0;
    while (window.take())
        granted += Window::leave;
    fact("the window shuts at its bound", granted == Window::in_flight);
    for (std::uint64_t seq = 0; seq < Window::leave; ++seq)
        counter.add(seq, 0);
    fact("it opens when as many are handled", window.take());
    fact("and shuts again", !window.take());
}

void senders_fail_as_soon_as_one_does() {
    using namespace std::chrono_literals;
    Senders senders(2);
    senders.finished();
    fact("one of two senders is not all", !senders.await(1ms));
    senders.failed("it would not");
    fact("a sender that fails is told", fails([&] { senders.await(1ms); }));
}

void a_repetition_that_is_given_up_ends() {
    using namespace std::chrono_literals;
    // Minutes of work, if it were not given up.
    Row row{"A4-2400ns", 4, 2'400, 0};
    fact("without patience there is no figure", fails([&] { Repetition(row, 100'000'000, 0ms).run(); }));
    fact("the next repetition has one", Repetition(row, 1'000, 10s).run() > 0);
}

void figures_are_in_the_unit_of_their_row() {
    Row sends{"A4", 4, 0, 0};
    Row calls{"D1", 4, 0, 1};
    fact("messages are millions a second", sends.figure(5'000'000, 2e9) == 2.5);
    fact("calls are nanoseconds each", calls.figure(1'000, 2e6) == 2'000);
}

} // namespace

int main() {
    counters_tell_lost_and_doubled_messages();
    window_shuts_at_its_bound_and_opens_again();
    senders_fail_as_soon_as_one_does();
    a_repetition_that_is_given_up_ends();
    figures_are_in_the_unit_of_their_row();
    return failures == 0 ? 0 : 1;
}
