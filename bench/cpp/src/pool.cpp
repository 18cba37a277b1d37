#include "pool.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include <caf/actor_pool.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <caf/scoped_execution_unit.hpp>
#include <caf/send.hpp>

#include "failure.hpp"
#include "message.hpp"
#include "work.hpp"

namespace {

using turn_atom = caf::atom_constant<caf::atom("turn")>;

/// How long a producer rests where the window is shut: too short for the workers to run out of messages.
constexpr std::chrono::microseconds nap{50};

caf::behavior counting(caf::event_based_actor*, Counter* counter, Work work) {
    return {[=](const Message& message) { counter->add(message.seq, work.run(message.seq) ^ message.pad[3]); }};
}

caf::behavior answering(caf::event_based_actor*, Counter* counter, Work work) {
    return {[=](const Message& message) {
        counter->add(message.seq, work.run(message.seq) ^ message.pad[3]);
        return message.seq + 1;
    }};
}

/// Sends while the window permits. It gives its thread back when the window is shut, and not before: by default, an actor that has
/// messages, be they from itself, is not interrupted.
class Producer : public caf::event_based_actor {
public:
    Producer(caf::actor_config& cfg, caf::actor pool, Senders& senders, Window& window, std::uint64_t first, std::uint64_t end)
        : event_based_actor(cfg), pool_(std::move(pool)), senders_(senders), window_(window), next_(first), end_(end) {}

    caf::behavior make_behavior() override {
        send(this, turn_atom::value);
        return {[this](turn_atom) { turn(); }};
    }

private:
    void turn() {
        while (next_ < end_ && window_.take())
            send_up_to(std::min(next_ + Window::leave, end_));
        if (next_ == end_) {
            senders_.finished();
            quit();
        } else if (senders_.given_up()) {
            quit();
        } else {
            delayed_send(this, nap, turn_atom::value);
        }
    }

    void send_up_to(std::uint64_t edge) {
        for (; next_ < edge; ++next_)
            send(pool_, Message::of(next_));
    }

    caf::actor pool_;
    Senders& senders_;
    Window& window_;
    std::uint64_t next_;
    std::uint64_t end_;
};

/// Makes each call once the one before is answered.
class Caller : public caf::event_based_actor {
public:
    Caller(caf::actor_config& cfg, caf::actor pool, Senders& senders, std::uint64_t first, std::uint64_t end)
        : event_based_actor(cfg), pool_(std::move(pool)), senders_(senders), next_(first), end_(end) {}

    caf::behavior make_behavior() override {
        send(this, turn_atom::value);
        return {[this](turn_atom) { turn(); }};
    }

private:
    void turn() {
        if (next_ == end_) {
            senders_.finished();
            quit();
            return;
        }
        request(pool_, caf::infinite, Message::of(next_))
            .then([this](std::uint64_t reply) { answered(reply); }, [this](const caf::error& why) { failed(why); });
    }

    void answered(std::uint64_t reply) {
        if (reply == next_ + 1) {
            ++next_;
            turn();
            return;
        }
        senders_.failed("call " + std::to_string(next_) + " got the reply " + std::to_string(reply));
        quit();
    }

    void failed(const caf::error& why) {
        senders_.failed("call " + std::to_string(next_) + " has no reply: " + system().render(why));
        quit();
    }

    caf::actor pool_;
    Senders& senders_;
    std::uint64_t next_;
    std::uint64_t end_;
};

/// Fails before there are workers, for whom the end of the actor system would wait.
void check_threads(caf::actor_system& system) {
    auto threads = system.scheduler().num_workers();
    if (threads != Config::threads)
        throw Failure("the scheduler has " + std::to_string(threads) + " threads, not " + std::to_string(Config::threads));
}

caf::actor workers(caf::actor_system& system, const Row& row, Counters& counters) {
    check_threads(system);
    auto work = Work::of_nanos(row.work_nanos);
    auto behavior = row.callers > 0 ? answering : counting;
    auto worker = [&system, &counters, work, behavior] { return system.spawn(behavior, &counters.claim(), work); };
    caf::scoped_execution_unit context{&system};
    return caf::actor_pool::make(&context, row.workers, worker, caf::actor_pool::round_robin());
}

} // namespace

Config::Config() {
    set("scheduler.max-threads", threads);
}

Pool::Pool(const Row& row, Counters& counters) : system_(config_), pool_(workers(system_, row, counters)) {}

Pool::~Pool() {
    for (auto& sender : senders_)
        caf::anon_send_exit(sender, caf::exit_reason::kill);
    caf::anon_send_exit(pool_, caf::exit_reason::kill);
}

void Pool::start_producer(Senders& senders, Window& window, std::uint64_t first, std::uint64_t end) {
    senders_.push_back(system_.spawn<Producer>(pool_, std::ref(senders), std::ref(window), first, end));
}

void Pool::start_caller(Senders& senders, std::uint64_t first, std::uint64_t end) {
    senders_.push_back(system_.spawn<Caller>(pool_, std::ref(senders), first, end));
}
