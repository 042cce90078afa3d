"""A program that has the whole screen, as htop does: a box, bars in colour, redrawn all the time.
It says which key came last; `q` ends it."""

from __future__ import annotations

import curses

NAMES = {curses.KEY_RIGHT: "right", curses.KEY_DOWN: "down", curses.KEY_RESIZE: "resize"}
REDRAW_MS = 100


def main(screen: curses.window) -> None:
    curses.curs_set(0)
    for colour in range(1, 7):
        curses.init_pair(colour, colour, curses.COLOR_BLACK)
    screen.timeout(REDRAW_MS)
    last, drawn = "none", 0
    while True:
        screen.erase()
        screen.box()
        screen.addstr(0, 2, " full screen ", curses.A_REVERSE)
        for row in range(1, min(7, curses.LINES - 3)):
            long = (drawn * row) % max(1, curses.COLS - 20)
            screen.addstr(row, 2, f"{row:2} " + "|" * long, curses.color_pair(row))
        screen.addstr(curses.LINES - 2, 2, f"key: {last}  drawn: {drawn}", curses.A_BOLD)
        screen.refresh()
        drawn += 1
        key = screen.getch()
        if key == ord("q"):
            return
        last = NAMES.get(key, last)


if __name__ == "__main__":
    curses.wrapper(main)
