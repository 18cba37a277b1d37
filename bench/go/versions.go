package main

import (
	"runtime/debug"
	"strings"
)

// versionOf is that of a module that this program was built from.
func versionOf(module string) string {
	built, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dependency := range built.Deps {
		if dependency.Path != module {
			continue
		}
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		return strings.TrimPrefix(dependency.Version, "v")
	}
	return "unknown"
}
