#include <cstdio>
#include <iostream>
#include <unistd.h>

#include <ext/stdio_filebuf.h>

#include "protocol.hpp"

/// Standard output belongs to the protocol, so what libraries print there goes to standard error.
int main() {
    int out = dup(STDOUT_FILENO);
    if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        std::perror("cannot set standard output aside");
        return 1;
    }
    __gnu_cxx::stdio_filebuf<char> buffer(out, std::ios::out);
    std::ostream lines(&buffer);
    serve(std::cin, lines);
}
