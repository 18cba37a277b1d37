#pragma once

#include <array>
#include <cstdint>

#include <caf/allowed_unsafe_message_type.hpp>

struct Message {
    std::uint64_t seq;
    std::uint64_t key;
    std::array<std::uint64_t, 4> pad;

    static Message of(std::uint64_t seq) { return {seq, seq, {seq, seq, seq, seq}}; }
};

static_assert(sizeof(Message) == 48);

// It never leaves the process.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Message)
