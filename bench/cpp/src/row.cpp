#include "row.hpp"

namespace {

std::vector<Row> rows() {
    std::vector<Row> rows;
    for (std::size_t workers : {4, 256}) {
        auto name = "A" + std::to_string(workers);
        rows.push_back({name, workers, 0, 0});
        for (unsigned nanos : {75, 460, 2'400})
            rows.push_back({name + "-" + std::to_string(nanos) + "ns", workers, nanos, 0});
    }
    rows.push_back({"D1", 4, 0, 1});
    rows.push_back({"D64", 4, 0, 64});
    return rows;
}

} // namespace

const std::vector<Row>& Row::all() {
    static const auto all = rows();
    return all;
}

double Row::figure(std::uint64_t messages, double nanos) const {
    auto count = static_cast<double>(messages);
    return callers > 0 ? nanos / count : 1'000 * count / nanos;
}
