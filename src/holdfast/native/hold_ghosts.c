/* hold-ghosts: keeps ghosts, which are address spaces without a process, of one freeze.
 *
 *     hold-ghosts SOCKET OWNER
 *
 * SOCKET: where the shim in CRIU hands a clone's address space over (native/criu_ghost.c). OWNER: to
 * whom the descriptors go by which it is read. Both are SEQPACKET sockets. When the owner closes its
 * end, or dies, this program ends, and with it all its ghosts: nothing of them can be left over.
 *
 * The kernel keeps an address space while somebody uses it, and a read of /proc/PID/mem uses it for
 * as long as the read lasts. So there is a thread per ghost that reads one byte of it, into a page of
 * ours that is registered with userfaultfd and never filled. The fault on that page proves that the
 * read has begun; from then on the process may die.
 *
 * The pages of a ghost that its session has written anew are in no process's account: the kernel
 * would end programs for want of memory and free nothing. So this one asks to be the first to go.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	GHOSTS_MAX = 256,	/* processes of one session; the others are left to CRIU */
	STACK_BYTES = 64 << 10,
	PIN_MS = 2000,		/* for a thread to begin its read */
};

struct ghost { int memory; uint64_t address; char *page; };
static struct ghost ghosts[GHOSTS_MAX];
static int ghost_count, faults;
static char *area;
static size_t page_bytes;

static int prepare(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	area = mmap(NULL, GHOSTS_MAX * page_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (area == MAP_FAILED || faults < 0 || ioctl(faults, UFFDIO_API, &api) < 0)
		return -1;
	struct uffdio_register ours = {
		.range = { (uint64_t)area, GHOSTS_MAX * page_bytes },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (score >= 0) {
		if (write(score, "1000", 4) < 0)
			perror("hold-ghosts: oom_score_adj");
		close(score);
	}
	return ioctl(faults, UFFDIO_REGISTER, &ours);
}

static void *read_for_ever(void *argument)
{
	struct ghost *ghost = argument;
	pread(ghost->memory, ghost->page, 1, (off_t)ghost->address);
	return NULL;
}

/* Whether this address space stays from now on. */
static int pin(int memory, uint64_t address)
{
	char byte;
	pthread_t thread;
	pthread_attr_t small;
	struct pollfd begun = { faults, POLLIN, 0 };
	struct uffd_msg fault;
	if (ghost_count == GHOSTS_MAX || pread(memory, &byte, 1, (off_t)address) != 1)
		return 0;
	struct ghost *ghost = &ghosts[ghost_count];
	*ghost = (struct ghost){ memory, address, area + (size_t)ghost_count * page_bytes };
	ghost_count++; /* used up, whatever comes of it: its thread may be reading */
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
	return pthread_create(&thread, &small, read_for_ever, ghost) == 0
	       && poll(&begun, 1, PIN_MS) == 1
	       && read(faults, &fault, sizeof fault) == (ssize_t)sizeof fault;
}

static int pass_on(int owner, const char *name, int fds[2])
{
	union { char room[CMSG_SPACE(2 * sizeof(int))]; struct cmsghdr head; } control = { { 0 } };
	struct iovec data = { (void *)name, strlen(name) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof control };
	control.head.cmsg_len = CMSG_LEN(2 * sizeof(int));
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	memcpy(CMSG_DATA(&control.head), fds, 2 * sizeof(int));
	return sendmsg(owner, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

/* One clone: "<pid in the session> <address> <address>" in its memory, with descriptors of its mem
 * and its pagemap. 0 when there will be no more. */
static int serve(int shim, int owner)
{
	union { char room[CMSG_SPACE(2 * sizeof(int))]; struct cmsghdr head; } control;
	char text[96] = "", name[16];
	struct iovec data = { text, sizeof text - 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof control };
	unsigned long first, second;
	int pid, fds[2];
	if (recvmsg(shim, &message, MSG_CMSG_CLOEXEC) <= 0)
		return 0;
	struct cmsghdr *sent = CMSG_FIRSTHDR(&message);
	if (!sent || sent->cmsg_type != SCM_RIGHTS || sent->cmsg_len != CMSG_LEN(sizeof fds)
	    || sscanf(text, "%d %lx %lx", &pid, &first, &second) != 3)
		return 0;
	memcpy(fds, CMSG_DATA(sent), sizeof fds);
	snprintf(name, sizeof name, "%d", pid);
	int stays = pin(fds[0], first) || pin(fds[0], second);
	if (stays)
		stays = pass_on(owner, name, fds) == 0;
	close(fds[1]);
	const char *answer = stays ? "ok" : "no";
	return send(shim, answer, strlen(answer), MSG_NOSIGNAL) > 0;
}

int main(int count, char **words)
{
	if (count != 3 || prepare() < 0) {
		perror("hold-ghosts");
		return 1;
	}
	struct pollfd ready[] = { { atoi(words[1]), POLLIN, 0 }, { atoi(words[2]), 0, 0 } };
	while (poll(ready, 2, -1) >= 0 && !ready[1].revents)
		if (ready[0].revents && !serve(ready[0].fd, ready[1].fd))
			ready[0].fd = -1; /* CRIU is done */
	return 0;
}
