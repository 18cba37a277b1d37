#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// A row of the table: what is sent, to how many workers.
struct Row {
    std::string name;
    std::size_t workers;
    unsigned work_nanos;
    /// None where messages have no reply.
    unsigned callers;

    static const std::vector<Row>& all();

    /// The figure of a repetition, in the unit of the row: M/s, or ns per call.
    double figure(std::uint64_t messages, double nanos) const;
};
