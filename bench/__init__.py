"""`make bench`: holdfast beside tmux, dtach and screen, as ratios in one run.

    measure_*.py   one file per measure: what is done, what is timed, what it must reach
    systems.py     holdfast and its peers, each started privately and ended with the run
    far.py         a host at a relay, and a client that joined it;  pages.py  a browser that did
    terminal.py    a PTY with a client in it, drained as fast as it prints
    content.py     the text that is printed, and the script that prints it inside a session
    sampling.py    interleaved repetitions, medians, percentiles
    results.py     rows, targets and verdicts: the pure part
    report.py      table, JSON, docs/benchmarks.md;  chart.py  docs/benchmarks.svg

Absolute numbers depend on the machine and on what else it does; the ratios much less, because the
systems take turns within seconds of each other. Nothing here is imported by the product.
"""
