/* Preloaded into CRIU (ld.so --preload). Three repairs, each for a failure seen on real machines:
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
 *
 * Everything else goes to libc untouched.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
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

pid_t setsid(void)
{
	pid_t session = real_setsid();
	int saved = errno;
	const char *wish = getenv("HOLDFAST_CTTY");
	const char *path = wish ? strchr(wish, ':') : NULL;
	if (session > 0 && path && atoi(wish) == session) {
		int fd = open(path + 1, O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (fd >= 0) {
			ioctl(fd, TIOCSCTTY, 0);
			close(fd);
		}
	}
	errno = saved;
	return session;
}
