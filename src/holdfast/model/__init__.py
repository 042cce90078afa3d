"""The values everything else speaks of: ids, states, errors, limits, graph. Nothing here acts."""
