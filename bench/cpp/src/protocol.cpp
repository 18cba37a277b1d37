#include "protocol.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>

#include <caf/config.hpp>
#include <nlohmann/json.hpp>

#include "failure.hpp"
#include "repetition.hpp"

using nlohmann::json;

namespace {

constexpr auto system_name = "caf actor_pool";
/// Without a message handled for this long, those that are missing are lost, or senders hang.
constexpr std::chrono::seconds patience{10};

std::string compiler() {
#ifdef __clang__
    return __VERSION__;
#else
    return "GCC " __VERSION__;
#endif
}

std::string caf_version() {
    return std::to_string(CAF_MAJOR_VERSION) + "." + std::to_string(CAF_MINOR_VERSION) + "."
           + std::to_string(CAF_PATCH_VERSION);
}

json hello() {
    std::vector<std::string> rows;
    std::transform(Row::all().begin(), Row::all().end(), std::back_inserter(rows), [](auto& row) { return row.name; });
    json system = {{"name", system_name},
                   {"version", caf_version()},
                   {"language", "C++"},
                   {"what", "actor_pool, round robin, unbounded mailboxes, senders throttled"},
                   {"rows", rows}};
    return {{"systems", json::array({system})}, {"runtime", compiler()}};
}

const Row& row_of(const json& asked) {
    auto system = asked.at("system").get<std::string>();
    auto name = asked.at("row").get<std::string>();
    if (system != system_name)
        throw Failure("there is no system \"" + system + "\"; the first line says which there are");
    auto& rows = Row::all();
    auto row = std::find_if(rows.begin(), rows.end(), [&](auto& row) { return row.name == name; });
    if (row == rows.end())
        throw Failure("\"" + system + "\" does not offer row \"" + name + "\"");
    return *row;
}

std::uint64_t messages_of(const json& asked, const Row& row) {
    auto messages = asked.at("messages").get<std::int64_t>();
    auto least = std::max(row.callers, 1u);
    if (messages < least)
        throw Failure("\"messages\" is " + std::to_string(messages) + ", but row " + row.name + " needs at least "
                      + std::to_string(least));
    return static_cast<std::uint64_t>(messages);
}

json answer(const std::string& line) {
    try {
        auto asked = json::parse(line);
        auto& row = row_of(asked);
        return {{"value", Repetition(row, messages_of(asked, row), patience).run()}};
    } catch (const json::exception& why) {
        return {{"error", std::string("a request has to be an object with \"system\", \"row\" and \"messages\": ") + why.what()}};
    } catch (const std::exception& why) {
        return {{"error", why.what()}};
    }
}

} // namespace

void serve(std::istream& in, std::ostream& out) {
    out << hello() << std::endl;
    for (std::string line; std::getline(in, line);) {
        if (line.find_first_not_of(" \t\r") != std::string::npos)
            out << answer(line) << std::endl;
    }
}
