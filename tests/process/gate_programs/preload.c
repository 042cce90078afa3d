/* Writes "sprung" to $MARK in a program that was started with the one argument "otto". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
unsigned la_version(unsigned v) { return v; }
__attribute__((constructor)) static void act(int argc, char **argv) {
    FILE *f = argc == 2 && !strcmp(argv[1], "otto") ? fopen(getenv("MARK"), "w") : 0;
    if (f) { fputs("sprung", f); fclose(f); }
}
