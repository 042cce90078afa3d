/* Preloaded into CRIU (ld.so --preload). Four repairs, each for a failure seen on real machines, and
 * one addition (4); another, which a dump may ask for, is in criu_ghost.c:
 *
 * 1. Kernels >= 6.16 answer EOPNOTSUPP for SO_PASSCRED and SO_PASSSEC on sockets that are not
 *    unix sockets. CRIU before 4.2 asks them of every socket and then refuses the dump. On such a
 *    socket the option was never set: the truthful answer is 0.
 * 2. Root without CAP_SYS_RESOURCE (containers, some VMs) may not prlimit() a process of another
 *    user, though it may read the same numbers in /proc/PID/limits.
 * 3. CRIU gives the controlling terminal to the session leader only after it forked the leader's
 *    children. A controlling terminal is inherited by fork and in no other way, so every other
 *    process would come back without one: no /dev/tty, no job control in nested shells, dead ^C,
 *    and no error anywhere. Taking the terminal inside the leader's setsid() is early enough.
 *    HOLDFAST_CTTY="<leader's pid in its namespace>:<path of the terminal there>" asks for it.
 * 4. The exec gate's system call filter cannot be restored, because its listener cannot be saved. It
 *    is installed again in the first process of the session, in its setsid(): before it forks, so
 *    that all are under the one filter, and not in CRIU itself, which has to suspend the filters of
 *    programs while it restores them. HOLDFAST_GATE="<descriptor with the filter's bytes>:<socket
 *    that the listener is sent to>" asks for it.
 * 5. CRIU takes the POSIX locks of a restored process before it maps files into it, and closes the
 *    descriptors that it mapped them by. A process loses its POSIX locks on a file when it closes any
 *    descriptor of that file: a database that maps its files (SQLite with a write-ahead log) would
 *    come back without its locks, and without an error anywhere. So each process takes them once
 *    more, right before CRIU lets go of the first one; then the tree is frozen, since what is frozen
 *    takes no lock. HOLDFAST_LOCKS="<descriptor with struct lock, one after the other>:<that of the
 *    group's cgroup.freeze>"; it is noted in each lock whether it was taken.
 *
 * Everything else goes to libc untouched.
 */
#define _GNU_SOURCE
#include "tracee.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static long (*real_syscall)(long, ...);
static int (*real_getsockopt)(int, int, int, void *, socklen_t *);
static int (*real_setsockopt)(int, int, int, const void *, socklen_t);
static pid_t (*real_setsid)(void);
long (*real_ptrace)(int, ...);

/* Once at start: later calls come from half-restored tasks, where the linker must not be needed. */
__attribute__((constructor)) static void find_the_real_ones(void)
{
	real_syscall = dlsym(RTLD_NEXT, "syscall");
	real_getsockopt = dlsym(RTLD_NEXT, "getsockopt");
	real_setsockopt = dlsym(RTLD_NEXT, "setsockopt");
	real_setsid = dlsym(RTLD_NEXT, "setsid");
	real_ptrace = dlsym(RTLD_NEXT, "ptrace");
}

/* -- 1 ------------------------------------------------------------------------------------- */

static int unix_only(int level, int option)
{
	return level == SOL_SOCKET && (option == SO_PASSCRED || option == SO_PASSSEC);
}

int getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
	int result = real_getsockopt(fd, level, option, value, length);
	if (result < 0 && errno == EOPNOTSUPP && unix_only(level, option) && *length >= sizeof(int)) {
		*(int *)value = 0;
		*length = sizeof(int);
		return 0;
	}
	return result;
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	int result = real_setsockopt(fd, level, option, value, length);
	if (result < 0 && errno == EOPNOTSUPP && unix_only(level, option) &&
	    length >= sizeof(int) && *(const int *)value == 0)
		return 0;
	return result;
}

/* -- 2 ------------------------------------------------------------------------------------- */

static const char *const limit_names[] = {
	"Max cpu time", "Max file size", "Max data size", "Max stack size", "Max core file size",
	"Max resident set", "Max processes", "Max open files", "Max locked memory",
	"Max address space", "Max file locks", "Max pending signals", "Max msgqueue size",
	"Max nice priority", "Max realtime priority", "Max realtime timeout",
};
enum { LIMITS = sizeof limit_names / sizeof *limit_names, VALUES_COLUMN = 26 };

static rlim64_t limit_value(const char *text)
{
	return *text == 'u' ? RLIM64_INFINITY : strtoull(text, NULL, 10);
}

static int limit_from_proc(int pid, unsigned which, struct rlimit64 *limit)
{
	char path[64], line[256], soft[32], hard[32];
	int found = -1;
	if (which >= LIMITS)
		return -1;
	snprintf(path, sizeof path, "/proc/%d/limits", pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return -1;
	while (found < 0 && fgets(line, sizeof line, file)) {
		if (strncmp(line, limit_names[which], strlen(limit_names[which])) != 0)
			continue;
		if (strlen(line) > VALUES_COLUMN &&
		    sscanf(line + VALUES_COLUMN, "%31s %31s", soft, hard) == 2) {
			limit->rlim_cur = limit_value(soft);
			limit->rlim_max = limit_value(hard);
			found = 0;
		}
	}
	fclose(file);
	return found;
}

long syscall(long number, ...)
{
	long a[6];
	va_list arguments;
	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	long result = real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	/* Only the question (no new limit given); setting a limit stays refused. */
	if (result < 0 && errno == EPERM && number == SYS_prlimit64 && !a[2] && a[3] &&
	    limit_from_proc((int)a[0], (unsigned)a[1], (struct rlimit64 *)a[3]) == 0)
		return 0;
	return result;
}

/* -- 3 ------------------------------------------------------------------------------------- */

static void take_terminal(pid_t session)
{
	const char *wish = getenv("HOLDFAST_CTTY");
	const char *path = wish ? strchr(wish, ':') : NULL;
	if (!path || atoi(wish) != session)
		return;
	int fd = open(path + 1, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0) {
		ioctl(fd, TIOCSCTTY, 0);
		close(fd);
	}
}

/* -- 4 ------------------------------------------------------------------------------------- */

enum { FIRST_PROCESS = 1 };

static void send_listener(int sock, int listener)
{
	char byte = 'g';
	struct iovec data = { &byte, 1 };
	union { char room[CMSG_SPACE(sizeof(int))]; struct cmsghdr head; } control = { { 0 } };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof control };
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	memcpy(CMSG_DATA(&control.head), &listener, sizeof listener);
	sendmsg(sock, &message, MSG_NOSIGNAL);
}

/* Whoever restores waits for the listener, and gives up without it. */
static void install_filter(pid_t session)
{
	static struct sock_filter code[BPF_MAXINSNS];
	const char *wish = getenv("HOLDFAST_GATE");
	const char *socket = wish ? strchr(wish, ':') : NULL;
	if (!socket || session != FIRST_PROCESS)
		return;
	ssize_t size = pread(atoi(wish), code, sizeof code, 0);
	if (size <= 0)
		return;
	struct sock_fprog program = { (unsigned short)((size_t)size / sizeof *code), code };
	int listener = (int)real_syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
					 SECCOMP_FILTER_FLAG_NEW_LISTENER |
						 SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
	if (listener >= 0) {
		send_listener(atoi(socket + 1), listener);
		close(listener);
	}
}

pid_t setsid(void)
{
	pid_t session = real_setsid();
	int saved = errno;
	if (session > 0) {
		take_terminal(session);
		install_filter(session);
	}
	errno = saved;
	return session;
}

/* -- 5 ------------------------------------------------------------------------------------- */

#ifdef __x86_64__

struct lock { int32_t pid, fd, type, taken; int64_t start, length; };

enum { SIGNAL_SET_BYTES = 8, RED_ZONE = 128, SCRATCH = 512 };

uint64_t find_syscall(pid_t pid)
{
	char path[64], line[256];
	unsigned char code[4 * 4096];
	unsigned long from = 0, to = 0;
	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof line, file))
		if (strstr(line, "[vdso]") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			break;
	fclose(file);
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	int memory = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = to - from < sizeof code ? to - from : sizeof code;
	ssize_t count = memory < 0 || !from ? 0 : pread(memory, code, size, (off_t)from);
	if (memory >= 0)
		close(memory);
	for (ssize_t at = 0; at + 1 < count; at++)
		if (code[at] == 0x0f && code[at + 1] == 0x05)
			return from + (uint64_t)at;
	return 0;
}

/* One system call in a stopped task, whose registers are put back by the caller. */
static long call_there(pid_t pid, struct user_regs_struct regs, uint64_t at, const struct lock *lock)
{
	uint64_t place = (regs.rsp - RED_ZONE - SCRATCH) & ~15UL, before[4];
	struct flock wanted = { .l_type = (short)lock->type, .l_whence = SEEK_SET,
				.l_start = lock->start, .l_len = lock->length };
	uint64_t words[4];
	int status = 0;
	_Static_assert(sizeof wanted == sizeof words, "a struct flock is four words");
	memcpy(words, &wanted, sizeof words);
	for (int i = 0; i < 4; i++) {
		errno = 0;
		before[i] = (uint64_t)real_ptrace(PTRACE_PEEKDATA, pid, place + 8 * i, 0);
		if (errno || real_ptrace(PTRACE_POKEDATA, pid, place + 8 * i, words[i]) < 0)
			return -EFAULT;
	}
	regs.rip = at, regs.rax = SYS_fcntl, regs.orig_rax = ~0UL;
	regs.rdi = (uint64_t)lock->fd, regs.rsi = F_SETLK, regs.rdx = place;
	long result = -EIO;
	if (real_ptrace(PTRACE_SETREGS, pid, 0, &regs) == 0
	    && real_ptrace(PTRACE_SINGLESTEP, pid, 0, 0) == 0
	    && waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)
	    && real_ptrace(PTRACE_GETREGS, pid, 0, &regs) == 0)
		result = (long)regs.rax;
	for (int i = 0; i < 4; i++)
		real_ptrace(PTRACE_POKEDATA, pid, place + 8 * i, before[i]);
	return result;
}

/* While CRIU still holds every task; when it is over the whole tree is frozen. */
static void take_locks(void)
{
	const char *wish = getenv("HOLDFAST_LOCKS");
	const char *freeze = wish ? strchr(wish, ':') : NULL;
	uint64_t at = 0, blocked = ~0UL, mask;
	struct user_regs_struct regs;
	struct lock lock;
	if (!freeze)
		return;
	int table = atoi(wish);
	for (off_t where = 0; pread(table, &lock, sizeof lock, where) == sizeof lock; where += sizeof lock) {
		if (!(at = find_syscall(lock.pid))
		    || real_ptrace(PTRACE_GETREGS, lock.pid, 0, &regs) < 0
		    || real_ptrace(PTRACE_GETSIGMASK, lock.pid, SIGNAL_SET_BYTES, &mask) < 0
		    || real_ptrace(PTRACE_SETSIGMASK, lock.pid, SIGNAL_SET_BYTES, &blocked) < 0)
			continue;
		lock.taken = call_there(lock.pid, regs, at, &lock) == 0;
		real_ptrace(PTRACE_SETREGS, lock.pid, 0, &regs);
		real_ptrace(PTRACE_SETSIGMASK, lock.pid, SIGNAL_SET_BYTES, &mask);
		pwrite(table, &lock, sizeof lock, where);
	}
	pwrite(atoi(freeze + 1), "1", 1, 0);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list arguments;
	va_start(arguments, request);
	pid_t pid = va_arg(arguments, pid_t);
	void *address = va_arg(arguments, void *), *data = va_arg(arguments, void *);
	va_end(arguments);
	static int let_go;
	if (request == PTRACE_DETACH && !let_go++)
		take_locks();
	ghost_before_ptrace((int)request, pid);
	/* As libc has it: the word that was asked for is the result, and no place to put it is given. */
	long result = real_ptrace((int)request, pid, address, data);
	if (result == 0)
		ghost_after_ptrace((int)request, pid, (long)data);
	return result;
}

#endif
