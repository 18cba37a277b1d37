#pragma once

#include <cstdint>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include "counters.hpp"
#include "row.hpp"
#include "senders.hpp"
#include "window.hpp"

/// Two threads for all actors; all else as by default.
class Config : public caf::actor_system_config {
public:
    static constexpr std::size_t threads = 2;

    Config();
};

/// The workers of one repetition behind an `actor_pool`, and the actors that send to it, in an actor system of their own.
class Pool {
public:
    Pool(const Row& row, Counters& counters);
    /// Ends all actors, whatever they wait for.
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    /// Starts an actor that sends the messages from `first` up to `end`, exclusive.
    void start_producer(Senders& senders, Window& window, std::uint64_t first, std::uint64_t end);
    /// Starts an actor that makes the calls from `first` up to `end`, exclusive, one after the other.
    void start_caller(Senders& senders, std::uint64_t first, std::uint64_t end);

private:
    Config config_;
    caf::actor_system system_;
    caf::actor pool_;
    std::vector<caf::actor> senders_;
};
