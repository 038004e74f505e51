"""A client of app-servers, limner's own or the real Codex: threads and turns out, tools in."""
