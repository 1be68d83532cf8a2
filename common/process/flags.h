// What the flags of all programs have in common: an environment variable each, --version.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace mu {

// "MUSTER_WORKER_ORPHAN_TIMEOUT" for --orphan_timeout of the program `worker`.
std::string EnvironmentNameOf(const std::string& program, const std::string& flag);

// Call when all flags are there: gives each, those of subcommands too, its environment variable
// (the command line goes before it), and the program --version. Numbers that are not whole have to
// be finite.
void FinishFlags(CLI::App* app, const std::string& program);

// Parses the command line. Throws what CLI11 throws; also for a flag with an empty value, `--out=`,
// whose value CLI11 would take from the next word, be that a flag.
void ParseFlags(CLI::App* app, int argc, const char* const* argv);

// "worker 0.2.0 (protocol 5)".
std::string VersionLine(const std::string& program);

}  // namespace mu
