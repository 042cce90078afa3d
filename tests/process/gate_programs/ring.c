/* Makes a file by way of an io_uring, and writes "sprung" there. */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct io_uring_params p = {0};
    int ring = syscall(SYS_io_uring_setup, 2, &p);
    if (ring < 0) return 1;
    char *sq = mmap(0, p.sq_off.array + p.sq_entries * 4, 3, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    char *cq = mmap(0, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), 3, MAP_SHARED, ring,
                    IORING_OFF_CQ_RING);
    struct io_uring_sqe *sqe = mmap(0, p.sq_entries * sizeof *sqe, 3, MAP_SHARED, ring, IORING_OFF_SQES);
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = IORING_OP_OPENAT;
    sqe->fd = AT_FDCWD;
    sqe->addr = (unsigned long)argv[1];
    sqe->open_flags = O_WRONLY | O_CREAT;
    sqe->len = 0644;
    ((unsigned *)(sq + p.sq_off.array))[0] = 0;
    __atomic_store_n((unsigned *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) < 0) return 1;
    int fd = ((struct io_uring_cqe *)(cq + p.cq_off.cqes))->res;
    return fd < 0 || write(fd, "sprung", 6) != 6;
}
