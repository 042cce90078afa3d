"""The values that all packages share: ids, states, errors, limits, graph. Nothing here does I/O."""
