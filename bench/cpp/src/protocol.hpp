#pragma once

#include <istream>
#include <ostream>

/// Lines of JSON: first what is offered, then a figure or an error for each repetition that is asked for, until the input ends.
void serve(std::istream& in, std::ostream& out);
