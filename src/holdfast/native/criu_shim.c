/* Preloaded into CRIU (ld.so --preload). Three repairs, each for a failure seen on real machines, and
 * one addition:
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
 *
 * Everything else goes to libc untouched.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static long (*real_syscall)(long, ...);
static int (*real_getsockopt)(int, int, int, void *, socklen_t *);
static int (*real_setsockopt)(int, int, int, const void *, socklen_t);
static pid_t (*real_setsid)(void);

/* Once at start: later calls come from half-restored tasks, where the linker must not be needed. */
__attribute__((constructor)) static void find_the_real_ones(void)
{
	real_syscall = dlsym(RTLD_NEXT, "syscall");
	real_getsockopt = dlsym(RTLD_NEXT, "getsockopt");
	real_setsockopt = dlsym(RTLD_NEXT, "setsockopt");
	real_setsid = dlsym(RTLD_NEXT, "setsid");
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
