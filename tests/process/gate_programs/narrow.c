/* Makes a file by a system call of the 32-bit kind, and writes "sprung" there. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char *low = mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    long fd;
    strcpy(low, argv[1]);
    __asm__ volatile("int $0x80" : "=a"(fd) : "a"(5L), "b"(low), "c"(O_WRONLY | O_CREAT), "d"(0644) : "memory");
    return fd < 0 || write((int)fd, "sprung", 6) != 6;
}
